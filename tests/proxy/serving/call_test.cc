// RunFunction end to end in one process: real gRPC callers call the listener
// and handler under test, behind which is a scripted function.
#include "proxy/serving/call.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proxy/serving/scripted.h"

namespace fncache::proxy::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CallTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (proxy_ == nullptr) return;
    // Nothing is left behind, whatever happened.
    EXPECT_TRUE(Eventually([&] { return proxy_->flights().empty(); }));
    proxy_->Stop();
    EXPECT_TRUE(proxy_->flights().empty());
    const telemetry::FunctionGauges now =
        proxy_->instruments.function(0).ReadGauges();
    EXPECT_EQ(now.in_flight, 0);
    EXPECT_EQ(now.flights, 0);
  }

  CachingProxy& Proxy() {
    if (proxy_ == nullptr) {
      store_ = std::make_unique<ScriptedStore>(has_lower_, memory_);
      proxy_ = std::make_unique<CachingProxy>(function_.target(), options_,
                                              store_.get());
      channel_ = Connect(proxy_->target());
    }
    return *proxy_;
  }

  using Metadata = std::vector<std::pair<std::string, std::string>>;
  CallerPtr Send(const std::string& request, const Metadata& metadata = {},
                 absl::Duration timeout = absl::InfiniteDuration(),
                 const std::string& path = kRunFunctionV1) {
    Proxy();
    auto caller = std::make_shared<Caller>();
    for (const auto& [key, value] : metadata) {
      caller->context.AddMetadata(key, value);
    }
    if (timeout != absl::InfiniteDuration()) {
      caller->context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    }
    caller->Start(channel_, path, request);
    return caller;
  }
  // A call that the function answers so.
  CallerPtr Fill(const std::string& request,
                 const fnv1::RunFunctionResponse& response,
                 const Metadata& metadata = {}) {
    auto caller = Send(request, metadata);
    function_.Next()->Answer(response.SerializeAsString());
    EXPECT_TRUE(caller->Wait().ok());
    return caller;
  }
  // At once: a call is counted before its caller has the answer.
  telemetry::FunctionCounts Counted() {
    const telemetry::FunctionInstruments& function =
        Proxy().instruments.function(0);
    EXPECT_EQ(function.ReadGauges().in_flight, 0);
    return function.Read();
  }
  void WaitForCallers(size_t n) {
    EXPECT_TRUE(Eventually([&] { return proxy_->flights().callers == n; }));
  }

  bool has_lower_ = false;
  cache::store::MemoryStoreOptions memory_;
  settings::FunctionOptions options_;
  ScriptedFunction function_;
  std::unique_ptr<ScriptedStore> store_;
  std::unique_ptr<CachingProxy> proxy_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(CallTest, AMissGoesToTheFunctionAndTheNextCallIsAHit) {
  const auto response = Response("tag-1", "hello", 60);
  auto miss = Fill(Request("a", "tag-1"), response);
  EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss; stored");
  EXPECT_EQ(miss->bytes(), response.SerializeAsString());

  Proxy().clock.Advance(absl::Seconds(20));
  auto hit = Send(Request("a", "tag-2"));
  ASSERT_TRUE(hit->Wait().ok());
  // 60 s less the last tenth, less 20 s of age.
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=34");
  EXPECT_EQ(hit->response().meta().tag(), "tag-2");
  EXPECT_EQ(hit->response().meta().ttl().seconds(), 40);
  EXPECT_EQ(hit->response().results(0).message(), "hello");
  EXPECT_EQ(function_.calls(), 1);

  const auto summary = Counted();
  EXPECT_EQ(summary.hits, 1u);
  EXPECT_EQ(summary.misses, 1u);
  EXPECT_EQ(summary.fills, 1u);
  EXPECT_GT(summary.saved, absl::ZeroDuration());
}

TEST_F(CallTest, TheFunctionsBytesHeadersAndTrailersPassAMissUntouched) {
  auto caller = Send(Request("a", "t"), {{"x-mine", "1"}});
  auto call = function_.Next();
  EXPECT_EQ(call->bytes, Request("a", "t"));
  EXPECT_EQ(call->metadata.find("x-mine")->second, "1");
  call->AddHeader("x-head", "h");
  call->AddTrailer("x-trail", "t");
  // Another tag, out of order, and a field that nobody knows.
  const std::string bytes = Response("", "x", -1).SerializeAsString() +
                            Response("other", "y", 60).SerializeAsString() +
                            "\xba\x3e\x02hi";
  call->Answer(bytes);
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->bytes(), bytes);
  EXPECT_THAT(caller->Headers("x-head"), ElementsAre("h"));
  EXPECT_THAT(caller->Trailers("x-trail"), ElementsAre("t"));

  auto hit = Send(Request("a", "mine"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().meta().tag(), "mine");
  EXPECT_EQ(hit->response().results_size(), 2);
  EXPECT_THAT(hit->Headers("x-head"), IsEmpty());
  EXPECT_THAT(hit->Trailers("x-trail"), IsEmpty());
}

TEST_F(CallTest, BothVersionsAreLookedUpApart) {
  Fill(Request("a", "t"), Response("t", "v1", 60));
  auto beta = Send(Request("a", "t"), {}, absl::InfiniteDuration(),
                   kRunFunctionV1beta1);
  auto call = function_.Next();
  EXPECT_EQ(call->path, kRunFunctionV1beta1);
  call->Answer(Response("t", "beta", 60).SerializeAsString());
  ASSERT_TRUE(beta->Wait().ok());
  beta = Send(Request("a", "u"), {}, absl::InfiniteDuration(),
              kRunFunctionV1beta1);
  ASSERT_TRUE(beta->Wait().ok());
  EXPECT_EQ(beta->response().results(0).message(), "beta");
  EXPECT_EQ(beta->cache_status(), "fncache; hit; ttl=54");
}

TEST_F(CallTest, AnEntryPastItsServedTimeIsStale) {
  Fill(Request("a", "t"), Response("t", "old", 60));
  Proxy().clock.Advance(absl::Seconds(54));
  auto margin = Fill(Request("a", "t"), Response("t", "new", 60));
  EXPECT_EQ(margin->cache_status(), "fncache; fwd=stale; stored");
  Proxy().clock.Advance(absl::Seconds(61));
  auto expired = Fill(Request("a", "t"), Response("t", "newer", 0));
  EXPECT_EQ(expired->cache_status(), "fncache; fwd=stale");
}

TEST_F(CallTest, AuthorizationAndBypassMetadataAreBypasses) {
  options_.bypass_metadata = {"x-skip"};
  Fill(Request("a", "t"), Response("t", "stored", 60));
  for (const auto& metadata :
       {Metadata{{"authorization", "me"}}, Metadata{{"x-skip", ""}},
        Metadata{{"authorization", "me"}, {"cache-control", "no-cache"}}}) {
    auto caller = Fill(Request("a", "t"), Response("t", "fresh", 60), metadata);
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass");
    EXPECT_EQ(caller->response().results(0).message(), "fresh");
  }
  EXPECT_EQ(store_->fills, 1);
}

TEST_F(CallTest, ModeOffIsAPureProxy) {
  options_.policy.mode = cache::Mode::kOff;
  options_.policy.requeue_ttl.kind = cache::RequeueTtl::Kind::kFixed;
  options_.policy.requeue_ttl.fixed = absl::Seconds(5);
  for (int i = 0; i < 2; ++i) {
    auto caller = Fill(Request("a", "t"), Response("t", "x", 60));
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass");
    EXPECT_EQ(caller->bytes(), Response("t", "x", 60).SerializeAsString());
  }
  EXPECT_EQ(store_->fills, 0);
}

TEST_F(CallTest, NoCacheLooksNothingUpAndStoresTheAnswer) {
  Fill(Request("a", "t"), Response("t", "old", 60));
  Proxy().clock.Advance(absl::Seconds(1));
  for (const char* text :
       {"no-cache", "max-age=0, No-Cache", "NO-CACHE=\"x\""}) {
    auto caller = Fill(Request("a", "t"), Response("t", text, 60),
                       {{"cache-control", text}});
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=request; stored");
    Proxy().clock.Advance(absl::Seconds(1));
    auto hit = Send(Request("a", "t"));
    ASSERT_TRUE(hit->Wait().ok());
    EXPECT_EQ(hit->response().results(0).message(), text);
  }
}

TEST_F(CallTest, NoStoreNeitherLooksUpNorStores) {
  Fill(Request("a", "t"), Response("t", "old", 60));
  auto caller =
      Fill(Request("a", "t"), Response("t", "new", 60),
           {{"cache-control", "no-cache"}, {"cache-control", "x, no-store"}});
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=request");
  auto hit = Send(Request("a", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().results(0).message(), "old");
  EXPECT_EQ(store_->fills, 1);
}

TEST_F(CallTest, ARequestThatCannotBeKeyedReachesTheFunctionAsItIs) {
  const std::string broken("\x0a\xff not protobuf", 15);
  for (int i = 0; i < 2; ++i) {
    auto caller = Send(broken);
    auto call = function_.Next();
    EXPECT_EQ(call->bytes, broken);
    call->Answer(Response("t", "x", 60).SerializeAsString());
    ASSERT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass");
  }
  EXPECT_EQ(store_->fills, 0);
}

TEST_F(CallTest, WhatPolicyDoesNotAcceptIsNotStored) {
  auto fatal = Response("t", "x", 60);
  fatal.mutable_results(0)->set_severity(fnv1::SEVERITY_FATAL);
  options_.policy.max_entry_bytes = 1000;
  for (const auto& response :
       {Response("t", "no TTL", -1), Response("t", "zero", 0), fatal,
        Response("t", std::string(1000, 'x'), 60)}) {
    for (int i = 0; i < 2; ++i) {
      auto caller = Fill(Request("a", "t"), response);
      EXPECT_EQ(caller->cache_status(), "fncache; fwd=miss");
      EXPECT_EQ(caller->bytes(), response.SerializeAsString());
    }
  }
  EXPECT_EQ(store_->fills, 0);
}

TEST_F(CallTest, AResponseThatCannotBeReadPassesUntouched) {
  for (int i = 0; i < 2; ++i) {
    auto caller = Send(Request("a", "t"));
    function_.Next()->Answer("\xff\xff");
    ASSERT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->bytes(), "\xff\xff");
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=miss");
  }
}

TEST_F(CallTest, AnOkWithoutAMessagePassesAsSuchAndIsNotStored) {
  // Nor is it an empty response, which these would store.
  options_.policy.ttl_default = absl::Seconds(60);
  options_.policy.ttl_override = absl::Seconds(60);
  for (const Metadata& metadata :
       {Metadata{}, Metadata{{"cache-control", "no-cache"}},
        Metadata{{"cache-control", "no-store"}},
        Metadata{{"authorization", "me"}}}) {
    auto caller = Send(Request("a", "t"), metadata);
    auto call = function_.Next();
    call->AddHeader("x-head", "h");
    call->AddTrailer("x-trail", "t");
    call->AnswerNothing();
    EXPECT_TRUE(caller->Wait().ok());
    EXPECT_FALSE(caller->has_message());
    EXPECT_THAT(caller->Headers("x-head"), ElementsAre("h"));
    EXPECT_THAT(caller->Trailers("x-trail"), ElementsAre("t"));
    EXPECT_THAT(caller->cache_status(), Not(HasSubstr("stored")));
  }
  EXPECT_EQ(Counted().fills, 0u);
}

TEST_F(CallTest, AnErrorPassesWithItsDetailsHeadersAndTrailers) {
  auto caller = Send(Request("a", "t"));
  auto call = function_.Next();
  call->AddHeader("x-head", "h");
  call->AddTrailer("x-trail", "t");
  call->Fail(grpc::Status(grpc::StatusCode::ABORTED, "why", "details"));
  const grpc::Status status = caller->Wait();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "why");
  EXPECT_EQ(status.error_details(), "details");
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=miss");
  EXPECT_THAT(caller->Headers("x-head"), ElementsAre("h"));
  EXPECT_THAT(caller->Trailers("x-trail"), ElementsAre("t"));
  EXPECT_EQ(Counted().misses, 1u);
}

TEST_F(CallTest, UnimplementedIsNoMissOfTheBuiltInsMetric) {
  auto caller = Send(Request("a", "t"));
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""));
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=miss");
  EXPECT_EQ(Counted().misses, 0u);
}

TEST_F(CallTest, ACacheBehindUsSpeaksFirst) {
  auto caller = Send(Request("a", "t"));
  auto call = function_.Next();
  call->AddHeader("cache-status", "fncache; hit; ttl=3");
  call->Answer(Response("t", "x", 60).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_THAT(caller->Headers("cache-status"),
              ElementsAre("fncache; hit; ttl=3", "fncache; fwd=miss; stored"));
}

TEST_F(CallTest, AFixedRequeueTtlIsToldOnMissesAndHits) {
  options_.policy.requeue_ttl.kind = cache::RequeueTtl::Kind::kFixed;
  options_.policy.requeue_ttl.fixed = absl::Seconds(5);
  auto miss = Fill(Request("a", "t"), Response("t", "x", 60));
  EXPECT_EQ(miss->response().meta().ttl().seconds(), 5);
  EXPECT_EQ(miss->response().meta().tag(), "t");
  EXPECT_EQ(miss->response().results(0).message(), "x");
  auto hit = Send(Request("a", "u"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().meta().ttl().seconds(), 5);
  // Not stored, but the function gave a TTL; and none where it gave none.
  auto passed = Fill(Request("b", "t"), Response("t", "x", 60),
                     {{"cache-control", "no-store"}});
  EXPECT_EQ(passed->response().meta().ttl().seconds(), 5);
  auto none = Fill(Request("c", "t"), Response("t", "x", -1));
  EXPECT_FALSE(none->response().meta().has_ttl());
}

TEST_F(CallTest, ACallWithoutARequestMessageIsAnswered) {
  Proxy();
  TestCall call(channel_, kRunFunctionV1);
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.HalfClose());
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(CallTest, ACallerThatNeverHalfClosesIsAnswered) {
  Proxy();
  TestCall call(channel_, kRunFunctionV1);
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write(Request("a", "t")));
  function_.Next()->Answer(Response("t", "x", 60).SerializeAsString());
  std::string bytes;
  ASSERT_TRUE(call.Read(&bytes));
  EXPECT_EQ(bytes, Response("t", "x", 60).SerializeAsString());
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(CallTest, JoinedCallersGetTheAcceptedAnswerUnderTheirOwnTags) {
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

TEST_F(CallTest, JoiningTheCallForAnExpiredEntryIsStaleToo) {
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

TEST_F(CallTest, AnAnswerThatIsNotAcceptedReleasesTheRest) {
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

TEST_F(CallTest, ReleasedCallersWaitForAPlaceEachUntilItsOwnDeadline) {
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
  // One that leaves while its call runs makes room for the next.
  second->context.TryCancel();
  second->Wait();
  EXPECT_TRUE(Eventually([&] { return running->cancelled(); }));
  auto last = function_.Next();
  EXPECT_EQ(last->request().meta().tag(), "patient");
  last->Answer(Response("patient", "x", -1).SerializeAsString());
  EXPECT_TRUE(patient->Wait().ok());
}

TEST_F(CallTest, OneThatWaitedForAPlaceLooksAgain) {
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

TEST_F(CallTest, WhatMemoryDoesNotTakeKeepsTheTtlThatTheFunctionGave) {
  memory_.capacity = 1 << 20;
  options_.policy.ttl_override = absl::Seconds(100);
  const auto large = Response("t", std::string(400'000, 'x'), 60);
  auto miss = Fill(Request("a", "t"), large);
  EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss");
  EXPECT_EQ(miss->bytes(), large.SerializeAsString());
  auto small = Fill(Request("b", "t"), Response("t", "x", 60));
  EXPECT_EQ(small->cache_status(), "fncache; fwd=miss; stored");
  EXPECT_EQ(small->response().meta().ttl().seconds(), 100);
}

TEST_F(CallTest, AJoinedCallerKeepsItsOwnDeadline) {
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  auto joined = Send(Request("a", "joined"), {}, absl::Milliseconds(30));
  EXPECT_EQ(joined->Wait().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(call->cancelled());
  call->Answer(Response("first", "x", 60).SerializeAsString());
  EXPECT_TRUE(first->Wait().ok());
}

TEST_F(CallTest, IfTheFirstCallerLeavesTheCallGoesOnForTheOthers) {
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

TEST_F(CallTest, TheLastOneLeavingCancelsTheUpstreamCall) {
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

TEST_F(CallTest,
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

TEST_F(CallTest, AFunctionThatSaysDeadlineExceededItselfReleasesTheRest) {
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

TEST_F(CallTest, NoCacheNoStoreAndBypassNeitherOpenNorJoinFlights) {
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

TEST_F(CallTest, AnAnswerOlderThanWhatWasFilledMeanwhileDoesNotReplaceIt) {
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

TEST_F(CallTest, ALeaderLooksInMemoryOnceMore) {
  has_lower_ = true;
  auto slow = Send(Request("a", "slow"));
  auto lookup = (Proxy(), store_->NextLookup());
  // While it looks below, others fill the key.
  Fill(Request("a", "t"), Response("t", "x", 60),
       {{"cache-control", "no-cache"}});
  lookup({});
  ASSERT_TRUE(slow->Wait().ok());
  EXPECT_EQ(slow->cache_status(), "fncache; hit; ttl=54");
  EXPECT_EQ(slow->response().meta().tag(), "slow");
}

TEST_F(CallTest, AnEntryBelowIsAHit) {
  has_lower_ = true;
  auto caller = Send(Request("a", "tag"));
  auto lookup = store_->NextLookup();
  cache::store::EntryInfo info;
  info.started = info.arrived = Proxy().clock.Now() - absl::Seconds(10);
  info.lifetime = absl::Seconds(60);
  info.ttl = absl::Seconds(60);
  auto without_meta = Response("", "below", -1);
  without_meta.clear_meta();
  lookup({cache::store::Entry::Create(info, "",
                                      {without_meta.SerializeAsString()}),
          false});
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->cache_status(), "fncache; hit; ttl=44");
  EXPECT_EQ(caller->response().meta().tag(), "tag");
  EXPECT_EQ(caller->response().meta().ttl().seconds(), 50);
  EXPECT_EQ(caller->response().results(0).message(), "below");
}

TEST_F(CallTest, AnExpiredEntryBelowIsStale) {
  has_lower_ = true;
  auto caller = Send(Request("a", "tag"));
  store_->NextLookup()({nullptr, true});
  function_.Next()->Answer(Response("tag", "x", 60).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=stale; stored");
  EXPECT_EQ(store_->fills_below, 1);
}

TEST_F(CallTest, ACallerMayLeaveWhileItsEntryIsLookedUpBelow) {
  has_lower_ = true;
  auto caller = Send(Request("a", "tag"));
  auto lookup = store_->NextLookup();
  caller->context.TryCancel();
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] {
    return proxy_->instruments.function(0).ReadGauges().in_flight == 0;
  }));
  lookup({});
  EXPECT_EQ(function_.calls(), 0);
}

// The disk tier has come after all: another store, under another seed.
TEST_F(CallTest, ACallEndsInTheStoreThatItsKeyWasMadeFor) {
  Proxy();
  ScriptedStore next(/*has_lower=*/false, {}, {4, 5, 6});
  auto early = Send(Request("a", "early"));
  auto flight = function_.Next();
  store_->HandOverTo(&next);

  // Another key, so nothing to join.
  auto late = Fill(Request("a", "late"), Response("late", "second", 60));
  EXPECT_EQ(late->cache_status(), "fncache; fwd=miss; stored");
  EXPECT_EQ(next.fills, 1);
  EXPECT_EQ(store_->fills, 0);

  flight->Answer(Response("early", "first", 60).SerializeAsString());
  ASSERT_TRUE(early->Wait().ok());
  EXPECT_EQ(early->response().results(0).message(), "first");
  EXPECT_EQ(next.fills, 1);
  EXPECT_EQ(store_->fills, 1);

  auto hit = Send(Request("a", "hit"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=54");
  EXPECT_EQ(hit->response().results(0).message(), "second");
  proxy_ = nullptr;  // before `next`
}

TEST_F(CallTest, StoppingEndsCallsInEveryState) {
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
