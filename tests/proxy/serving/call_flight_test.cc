// SPDX-License-Identifier: Apache-2.0
// RunFunction end to end in one process: calls that join a flight, are released
// from it or leave it, up to the end of the daemon.
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

class CallFlightTest : public CallTest {};

TEST_F(CallFlightTest, JoinedCallersGetTheAcceptedAnswerUnderTheirOwnTags) {
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  std::vector<CallerPtr> joined;
  for (int i = 0; i < 10; ++i) {
    joined.push_back(Send(Request("a", absl::StrCat("tag", i))));
  }
  WaitForCallers(11);
  call->Answer(Response("first", "x", 60).SerializeAsString());
  ASSERT_TRUE(first->Wait().ok());
  EXPECT_EQ(first->cache_status(), "fncache; fwd=miss; stored");
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(joined[i]->Wait().ok());
    EXPECT_EQ(joined[i]->cache_status(),
              "fncache; fwd=miss; collapsed; stored");
    EXPECT_EQ(joined[i]->response().meta().tag(), absl::StrCat("tag", i));
    EXPECT_EQ(joined[i]->response().meta().ttl().seconds(), 60);
    EXPECT_EQ(joined[i]->response().results(0).message(), "x");
  }
  EXPECT_EQ(function_.calls(), 1);
  const auto summary = Counted();
  EXPECT_EQ(summary.hits, 10u);
  EXPECT_EQ(summary.misses, 1u);
}

TEST_F(CallFlightTest, JoiningTheCallForAnExpiredEntryIsStaleToo) {
  Fill(Request("a", "t"), Response("t", "x", 60));
  Proxy().clock.Advance(absl::Seconds(61));
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  auto second = Send(Request("a", "second"));
  WaitForCallers(2);
  call->Answer(Response("first", "y", 60).SerializeAsString());
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(second->Wait().ok());
  EXPECT_EQ(first->cache_status(), "fncache; fwd=stale; stored");
  EXPECT_EQ(second->cache_status(), "fncache; fwd=stale; collapsed; stored");

  // Nor does it become another reason where the answer is not shared.
  Proxy().clock.Advance(absl::Seconds(61));
  first = Send(Request("a", "first"));
  call = function_.Next();
  second = Send(Request("a", "second"));
  WaitForCallers(2);
  call->Answer(Response("first", "z", -1).SerializeAsString());
  function_.Next()->Answer(Response("second", "z", -1).SerializeAsString());
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(second->Wait().ok());
  EXPECT_EQ(first->cache_status(), "fncache; fwd=stale");
  EXPECT_EQ(second->cache_status(), "fncache; fwd=stale");
}

TEST_F(CallFlightTest, AnAnswerThatIsNotAcceptedReleasesTheRest) {
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  auto joined = Send(Request("a", "joined"));
  WaitForCallers(2);
  call->Fail(grpc::Status(grpc::StatusCode::INTERNAL, "first"));
  EXPECT_EQ(first->Wait().error_message(), "first");
  auto second = function_.Next();
  EXPECT_EQ(second->request().meta().tag(), "joined");
  // The key is not collapsed for a while: this one does not wait.
  auto third = Send(Request("a", "third"));
  auto third_call = function_.Next();
  EXPECT_EQ(third_call->request().meta().tag(), "third");
  second->Answer(Response("joined", "x", -1).SerializeAsString());
  third_call->Answer(Response("third", "y", 60).SerializeAsString());
  ASSERT_TRUE(joined->Wait().ok());
  EXPECT_EQ(joined->cache_status(), "fncache; fwd=miss");
  EXPECT_EQ(joined->response().results(0).message(), "x");
  ASSERT_TRUE(third->Wait().ok());
  EXPECT_EQ(third->cache_status(), "fncache; fwd=miss; stored");
}

TEST_F(CallFlightTest, ReleasedCallersWaitForAPlaceEachUntilItsOwnDeadline) {
  options_.policy.max_released = 1;
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  auto second = Send(Request("a", "second"));
  WaitForCallers(2);
  call->Fail(grpc::Status(grpc::StatusCode::INTERNAL, ""));
  auto running = function_.Next();
  auto impatient = Send(Request("a", "impatient"), {}, absl::Milliseconds(50));
  auto patient = Send(Request("a", "patient"));
  EXPECT_EQ(impatient->Wait().error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return proxy_->flights().queued == 1; }));
  EXPECT_EQ(function_.calls(), 2);
  // One that leaves while its call runs frees a slot for the next.
  second->context.TryCancel();
  second->Wait();
  EXPECT_TRUE(Eventually([&] { return running->cancelled(); }));
  auto last = function_.Next();
  EXPECT_EQ(last->request().meta().tag(), "patient");
  last->Answer(Response("patient", "x", -1).SerializeAsString());
  EXPECT_TRUE(patient->Wait().ok());
}

TEST_F(CallFlightTest, OneThatWaitedForAPlaceLooksAgain) {
  options_.policy.max_released = 1;
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  auto second = Send(Request("a", "second"));
  WaitForCallers(2);
  auto third = Send(Request("a", "third"));
  WaitForCallers(3);
  call->Fail(grpc::Status(grpc::StatusCode::INTERNAL, ""));
  call = function_.Next();
  absl::SleepFor(absl::Milliseconds(200));  // how slow the function is
  call->Answer(Response("x", "x", 60).SerializeAsString());
  ASSERT_TRUE(third->Wait().ok());
  ASSERT_TRUE(second->Wait().ok());
  EXPECT_EQ(function_.calls(), 2);
  // Its look-up is the one that found the entry, without the wait for it.
  const std::string exposed = proxy_->instruments.registry()->Expose();
  const auto value_of = [&exposed](absl::string_view name) {
    const std::string series =
        absl::StrCat("function_run_function_response_cache_read_seconds_", name,
                     "{function_name=\"function\"} ");
    const size_t at = exposed.find(series);
    double value = -1;
    const absl::string_view rest =
        at == std::string::npos ? "" : &exposed[at + series.size()];
    EXPECT_TRUE(absl::SimpleAtod(rest.substr(0, rest.find('\n')), &value));
    return value;
  };
  EXPECT_EQ(value_of("count"), 1);
  EXPECT_LT(value_of("sum"), 0.2);
  const std::vector<std::string> both = {second->cache_status(),
                                         third->cache_status()};
  EXPECT_THAT(both, testing::UnorderedElementsAre("fncache; fwd=miss; stored",
                                                  "fncache; hit; ttl=54"));
}

TEST_F(CallFlightTest, AJoinedCallerKeepsItsOwnDeadline) {
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  auto joined = Send(Request("a", "joined"), {}, absl::Milliseconds(30));
  EXPECT_EQ(joined->Wait().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(call->cancelled());
  call->Answer(Response("first", "x", 60).SerializeAsString());
  EXPECT_TRUE(first->Wait().ok());
}

// The client waits longer than the timeout that it sends, so that it receives
// the answer.
TEST_F(CallFlightTest, WhoeverIsLateIsToldByACacheStatusToo) {
  has_lower_ = true;
  explains_ = true;
  options_.policy.finish_abandoned = absl::Minutes(1);
  const CallTest::Metadata late = {{"grpc-timeout", "200m"}};
  // The daemon's own call is given longer than the caller is.
  auto first = Send(Request("a", "first"), late);
  store_->NextLookup()(cache::store::Found());
  auto call = function_.Next();
  auto joined = Send(Request("a", "joined"), late);
  store_->NextLookup()(cache::store::Found());
  EXPECT_EQ(first->Wait().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(first->cache_status(), "fncache; fwd=miss; detail=new");
  EXPECT_EQ(joined->Wait().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(joined->cache_status(), "fncache; fwd=miss; collapsed");
  auto below = Send(Request("b", "t"), late);
  auto lookup = store_->NextLookup();
  EXPECT_EQ(below->Wait().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(below->cache_status(), "fncache; fwd=miss");
  lookup(cache::store::Found());
  call->Answer(Response("first", "x", 60).SerializeAsString());
}

TEST_F(CallFlightTest, IfTheFirstCallerLeavesTheCallGoesOnForTheOthers) {
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  auto joined = Send(Request("a", "joined"));
  WaitForCallers(2);
  first->context.TryCancel();
  EXPECT_EQ(first->Wait().error_code(), grpc::StatusCode::CANCELLED);
  WaitForCallers(1);
  EXPECT_FALSE(call->cancelled());
  call->Answer(Response("first", "x", 60).SerializeAsString());
  ASSERT_TRUE(joined->Wait().ok());
  EXPECT_EQ(joined->response().meta().tag(), "joined");
  EXPECT_EQ(function_.calls(), 1);
}

TEST_F(CallFlightTest, TheLastOneLeavingCancelsTheUpstreamCall) {
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  auto joined = Send(Request("a", "joined"));
  WaitForCallers(2);
  first->context.TryCancel();
  WaitForCallers(1);
  EXPECT_FALSE(call->cancelled());
  joined->context.TryCancel();
  EXPECT_TRUE(Eventually([&] { return call->cancelled(); }));
  first->Wait();
  joined->Wait();
}

TEST_F(CallFlightTest,
       IfTheFirstCallersDeadlineEndsTheCallAnotherOpensTheNextFlight) {
  auto first = Send(Request("a", "first"), {}, absl::Milliseconds(300));
  auto call = function_.Next();
  EXPECT_TRUE(call->has_deadline);
  auto second = Send(Request("a", "second"));
  auto third = Send(Request("a", "third"));
  EXPECT_EQ(first->Wait().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  auto next = function_.Next();
  EXPECT_FALSE(next->has_deadline);
  WaitForCallers(2);
  next->Answer(Response("t", "x", 60).SerializeAsString());
  ASSERT_TRUE(second->Wait().ok());
  ASSERT_TRUE(third->Wait().ok());
  EXPECT_EQ(function_.calls(), 2);
  const std::vector<std::string> both = {second->cache_status(),
                                         third->cache_status()};
  EXPECT_THAT(both, testing::UnorderedElementsAre(
                        "fncache; fwd=miss; stored",
                        "fncache; fwd=miss; collapsed; stored"));
}

TEST_F(CallFlightTest, AFunctionThatSaysDeadlineExceededItselfReleasesTheRest) {
  auto first = Send(Request("a", "first"), {}, absl::Seconds(60));
  auto call = function_.Next();
  auto second = Send(Request("a", "second"));
  auto third = Send(Request("a", "third"));
  WaitForCallers(3);
  call->Fail(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "mine"));
  EXPECT_EQ(first->Wait().error_message(), "mine");
  auto a = function_.Next();
  auto b = function_.Next();
  a->Answer(Response("t", "x", -1).SerializeAsString());
  b->Answer(Response("t", "x", -1).SerializeAsString());
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_TRUE(third->Wait().ok());
}

TEST_F(CallFlightTest, NoCacheNoStoreAndBypassNeitherOpenNorJoinFlights) {
  auto first = Send(Request("a", "first"));
  auto flight = function_.Next();
  for (const auto& metadata : {Metadata{{"cache-control", "no-cache"}},
                               Metadata{{"cache-control", "no-store"}},
                               Metadata{{"authorization", "me"}}}) {
    auto caller = Send(Request("a", "alone"), metadata);
    auto call = function_.Next();
    EXPECT_EQ(proxy_->flights().callers, 1u);
    call->Answer(Response("alone", "x", -1).SerializeAsString());
    EXPECT_TRUE(caller->Wait().ok());
  }
  flight->Answer(Response("t", "x", -1).SerializeAsString());
  EXPECT_TRUE(first->Wait().ok());
}

TEST_F(CallFlightTest,
       AnAnswerOlderThanWhatWasFilledMeanwhileDoesNotReplaceIt) {
  auto first = Send(Request("a", "first"));
  auto flight = function_.Next();
  auto joined = Send(Request("a", "joined"));
  WaitForCallers(2);
  Proxy().clock.Advance(absl::Seconds(1));
  Fill(Request("a", "t"), Response("t", "newer", 60),
       {{"cache-control", "no-cache"}});
  flight->Answer(Response("first", "older", 60).SerializeAsString());
  ASSERT_TRUE(first->Wait().ok());
  EXPECT_EQ(first->cache_status(), "fncache; fwd=miss");
  EXPECT_EQ(first->response().results(0).message(), "older");
  ASSERT_TRUE(joined->Wait().ok());
  EXPECT_EQ(joined->response().results(0).message(), "newer");
  EXPECT_EQ(joined->response().meta().tag(), "joined");
  EXPECT_EQ(joined->cache_status(), "fncache; hit; ttl=54");
}

TEST_F(CallFlightTest, StoppingEndsCallsInEveryState) {
  has_lower_ = true;
  options_.policy.max_released = 1;
  std::vector<CallerPtr> callers;
  auto miss = [&](const std::string& name) {
    callers.push_back(Send(Request(name, "t")));
    store_->NextLookup()({});
  };
  miss("a");
  auto first = function_.Next();
  for (int i = 0; i < 3; ++i) miss("a");
  WaitForCallers(4);
  first->Fail(grpc::Status(grpc::StatusCode::INTERNAL, ""));  // one runs now
  function_.Next();
  miss("b");
  miss("b");
  function_.Next();
  callers.push_back(Send(Request("c", "t")));
  auto below = store_->NextLookup();
  callers.push_back(Send(Request("d", "t"), {{"authorization", ""}}));
  function_.Next();
  // The look-up below ends while the listener stops: it must not be waited for
  // in vain, nor reach a worker that is gone.
  std::thread later([&] { below({}); });
  proxy_->Stop();
  later.join();
  for (const auto& caller : callers) EXPECT_FALSE(caller->Wait().ok());
  EXPECT_TRUE(proxy_->flights().empty());
}

}  // namespace
}  // namespace fncache::proxy::serving
