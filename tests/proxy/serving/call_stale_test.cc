// SPDX-License-Identifier: Apache-2.0
// Calls that are answered past their time (stale_while_revalidate,
// stale_if_error), and calls of the function that go on without callers
// (finish_abandoned), end to end in one process.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

// Entries of the tests: 60 s, so fresh for 54 s.
constexpr int kTtl = 60;
constexpr absl::Duration kFresh = absl::Seconds(54);

class StaleTest : public CallTest {
 protected:
  // Fills the key and lets `past` go by since its entry was fresh.
  void FillAndPass(absl::Duration past, int ttl = kTtl) {
    Fill(Request("a", "t"), Response("t", "old", ttl));
    Proxy().clock.Advance(absl::Seconds(ttl) * 0.9 + past);
  }
  // A call that has an old answer, and for how long that has not been fresh.
  CallerPtr ExpectStale(const CallerPtr& caller, int seconds) {
    EXPECT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->cache_status(),
              absl::StrCat("fncache; hit; ttl=-", seconds));
    EXPECT_EQ(caller->response().results(0).message(), "old");
    return caller;
  }
  void ExpectFresh(const std::string& text) {
    auto hit = Send(Request("a", "t"));
    ASSERT_TRUE(hit->Wait().ok());
    EXPECT_EQ(hit->response().results(0).message(), text);
    EXPECT_TRUE(absl::StrContains(hit->cache_status(), "hit; ttl=5"))
        << hit->cache_status();
  }
  telemetry::FunctionCounts Counts() {
    return Proxy().instruments.function(0).Read();
  }
  telemetry::FunctionGauges Gauges() {
    return Proxy().instruments.function(0).ReadGauges();
  }
  static grpc::Status Failure(
      grpc::StatusCode code = grpc::StatusCode::UNAVAILABLE) {
    return grpc::Status(code, "broken");
  }
};

// ---- stale_while_revalidate

class RevalidateTest : public StaleTest {
 protected:
  RevalidateTest() {
    options_.policy.stale_while_revalidate = absl::Minutes(10);
  }
};

TEST_F(RevalidateTest, AnOldAnswerComesAtOnceAndANewOneBehindIt) {
  FillAndPass(absl::Milliseconds(12'300));
  auto caller = Send(Request("a", "mine"), {{"x-mine", "1"}});
  ExpectStale(caller, 13);  // rounded away from zero
  EXPECT_EQ(caller->response().meta().tag(), "mine");
  // The refresh has the request of the call that met the old answer.
  auto refresh = function_.Next();
  EXPECT_EQ(refresh->bytes, Request("a", "mine"));
  EXPECT_EQ(refresh->path, kRunFunctionV1);
  EXPECT_EQ(refresh->metadata.find("x-mine")->second, "1");
  EXPECT_TRUE(refresh->has_deadline);
  EXPECT_EQ(Gauges().refreshes, 1);
  refresh->Answer(Response("mine", "new", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Counts().fills == 2; }));
  ExpectFresh("new");
  EXPECT_EQ(function_.calls(), 2);

  EXPECT_TRUE(Eventually([&] { return Gauges().refreshes == 0; }));
  const auto counted = Counted();
  EXPECT_EQ(counted.Calls(telemetry::Outcome::kStaleHit), 1u);
  EXPECT_EQ(counted.Calls(telemetry::Outcome::kHit), 1u);
  EXPECT_EQ(counted.hits, 2u);
  EXPECT_EQ(counted.misses, 1u);
  EXPECT_EQ(counted.refreshes, 1u);
  EXPECT_EQ(counted.refreshes_failed, 0u);
}

TEST_F(RevalidateTest, StaleBeginsWhereServingFreshEnds) {
  Fill(Request("a", "t"), Response("t", "old", kTtl));
  Proxy().clock.Advance(kFresh - absl::Nanoseconds(1));
  auto caller = Send(Request("a", "t"));
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->cache_status(), "fncache; hit; ttl=0");
  Proxy().clock.Advance(absl::Nanoseconds(1));
  ExpectStale(Send(Request("a", "t")), 1);
  function_.Next()->Fail(Failure());
}

TEST_F(RevalidateTest, TheWindowCountsFromThereAndEnds) {
  FillAndPass(absl::Minutes(10) - absl::Milliseconds(1));
  ExpectStale(Send(Request("a", "t")), 600);
  function_.Next()->Fail(Failure());
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  Proxy().clock.Advance(absl::Seconds(2));
  auto miss = Send(Request("a", "t"));
  function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
  ASSERT_TRUE(miss->Wait().ok());
  EXPECT_EQ(miss->cache_status(), "fncache; fwd=stale; stored");
}

TEST_F(RevalidateTest, TheRunnerIsToldToComeBackSoonButNotToSpin) {
  const auto told = [&](int ttl) {
    FillAndPass(absl::Seconds(1), ttl);
    auto caller = Send(Request("a", "t"));
    EXPECT_TRUE(caller->Wait().ok());
    const fnv1::ResponseMeta meta = caller->response().meta();
    EXPECT_EQ(meta.has_ttl(), ttl >= 0);
    function_.Next()->Answer(
        Response("t", "old", std::max(ttl, 1)).SerializeAsString());
    EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
    Proxy().clock.Advance(absl::Hours(5));
    return static_cast<double>(meta.ttl().seconds()) +
           1e-9 * meta.ttl().nanos();
  };
  EXPECT_THAT(told(60), AllOf(Ge(10.0), Le(11.0)));
  EXPECT_THAT(told(1000), AllOf(Ge(100.0), Le(110.0)));
}

TEST_F(RevalidateTest, ATtlOfZeroStaysZeroAndNoneStaysNone) {
  for (const int ttl : {0, -1}) {
    options_.policy.ttl_override = absl::Seconds(kTtl);
    proxy_ = nullptr;
    Fill(Request("a", "t"), Response("t", "old", ttl));
    Proxy().clock.Advance(kFresh + absl::Seconds(1));
    auto caller = ExpectStale(Send(Request("a", "t")), 1);
    EXPECT_EQ(caller->response().meta().has_ttl(), ttl == 0);
    EXPECT_EQ(caller->response().meta().ttl().seconds(), 0);
    function_.Next()->Answer(Response("t", "old", ttl).SerializeAsString());
    EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  }
}

TEST_F(RevalidateTest, ARefreshHasTwoMinutesWhateverItsCallHad) {
  for (const absl::Duration patience :
       {absl::InfiniteDuration(), absl::Duration(absl::Seconds(20)),
        absl::Duration(absl::Hours(1))}) {
    FillAndPass(absl::Seconds(1));
    ExpectStale(Send(Request("a", "t"), {}, patience), 1);
    auto refresh = function_.Next();
    EXPECT_GT(refresh->TimeLeft(), absl::Seconds(90));
    EXPECT_LE(refresh->TimeLeft(), absl::Seconds(121));
    refresh->Answer(Response("t", "new", 0).SerializeAsString());
    EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
    Proxy().clock.Advance(absl::Hours(1));
  }
}

TEST_F(RevalidateTest, ThereIsOneRefreshForAKey) {
  FillAndPass(absl::Seconds(1));
  for (int i = 0; i < 5; ++i) ExpectStale(Send(Request("a", "t")), 1);
  auto refresh = function_.Next();
  EXPECT_EQ(function_.calls(), 2);
  refresh->Answer(Response("t", "new", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  ExpectFresh("new");
  const auto counted = Counted();
  EXPECT_EQ(counted.refreshes, 1u);
  EXPECT_EQ(counted.Calls(telemetry::Outcome::kStaleHit), 5u);
}

TEST_F(RevalidateTest, WhoFindsNothingToServeJoinsTheRefresh) {
  FillAndPass(absl::Minutes(10) - absl::Seconds(1));
  ExpectStale(Send(Request("a", "t")), 599);
  auto refresh = function_.Next();
  Proxy().clock.Advance(absl::Seconds(2));  // past the window
  auto caller = Send(Request("a", "joined"));
  WaitForCallers(2);
  refresh->Answer(Response("t", "new", kTtl).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=stale; collapsed; stored");
  EXPECT_EQ(caller->response().meta().tag(), "joined");
  EXPECT_EQ(caller->response().results(0).message(), "new");
  EXPECT_EQ(function_.calls(), 2);
}

TEST_F(RevalidateTest, ARefreshThatFailsIsTriedAgainLater) {
  FillAndPass(absl::Seconds(1));
  absl::Duration delay = absl::Seconds(1);
  int calls = 1;
  for (int failures = 0; failures < 7; ++failures) {
    Send(Request("a", "t"))->Wait();
    function_.Next()->Fail(Failure());
    ++calls;
    EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
    EXPECT_TRUE(Eventually([&] {
      return Counts().refreshes_failed == static_cast<uint64_t>(failures) + 1;
    }));
    // Nothing is asked until the delay is over.
    Proxy().clock.Advance(delay - absl::Milliseconds(1));
    auto caller = Send(Request("a", "t"));
    EXPECT_TRUE(caller->Wait().ok());
    EXPECT_TRUE(absl::StrContains(caller->cache_status(), "hit; ttl=-"));
    EXPECT_EQ(function_.calls(), calls);
    Proxy().clock.Advance(absl::Milliseconds(1));
    delay = std::min(2 * delay, absl::Seconds(30));
  }
  Send(Request("a", "t"))->Wait();
  function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  ExpectFresh("new");
}

TEST_F(RevalidateTest, AnAnswerThatIsNotToBeStoredEndsTheOldOne) {
  auto fatal = Response("t", "fatal", kTtl);
  fatal.mutable_results(0)->set_severity(fnv1::SEVERITY_FATAL);
  for (const auto& answer : {fatal, Response("t", "zero", 0)}) {
    Fill(Request("a", "t"), Response("t", "old", kTtl),
         {{"cache-control", "no-cache"}});
    Proxy().clock.Advance(kFresh + absl::Seconds(1));
    ExpectStale(Send(Request("a", "t")), 1);
    const uint64_t superseded = Counts().superseded;
    function_.Next()->Answer(answer.SerializeAsString());
    EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
    EXPECT_EQ(Counts().superseded, superseded + 1);
    // The next caller gets what the function says now.
    auto caller = Send(Request("a", "t"));
    function_.Next()->Answer(answer.SerializeAsString());
    ASSERT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=stale");
    EXPECT_EQ(caller->bytes(), answer.SerializeAsString());
    EXPECT_EQ(Counts().superseded, superseded + 1);
    Proxy().clock.Advance(absl::Minutes(1));
  }
}

TEST_F(RevalidateTest, WhoAsksForANewAnswerGetsNoOldOne) {
  FillAndPass(absl::Seconds(1));
  for (const Metadata& metadata : {Metadata{{"cache-control", "no-store"}},
                                   Metadata{{"authorization", "me"}},
                                   Metadata{{"cache-control", "no-cache"}}}) {
    auto caller = Fill(Request("a", "t"), Response("t", "new", kTtl), metadata);
    EXPECT_EQ(caller->response().results(0).message(), "new");
  }
  EXPECT_EQ(Counts().refreshes, 0u);
}

TEST_F(RevalidateTest, AtMostSixteenCallsRunWithoutACaller) {
  for (int i = 0; i < 17; ++i) {
    Fill(Request(absl::StrCat("k", i), "t"), Response("t", "old", kTtl));
  }
  Proxy().clock.Advance(kFresh + absl::Seconds(1));
  std::vector<FunctionCallPtr> refreshes;
  for (int i = 0; i < 17; ++i) {
    ExpectStale(Send(Request(absl::StrCat("k", i), "t")), 1);
    if (i < 16) refreshes.push_back(function_.Next());
  }
  EXPECT_EQ(Proxy().flights().unattended, 16);
  EXPECT_EQ(Counts().refreshes_refused, 1u);
  EXPECT_EQ(Counts().refreshes, 16u);
  for (const auto& refresh : refreshes) {
    refresh->Answer(Response("t", "new", kTtl).SerializeAsString());
  }
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().unattended == 0; }));
  ExpectStale(Send(Request("k16", "t")), 1);
  function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
}

TEST_F(RevalidateTest, AStopWaitsForNoRefresh) {
  FillAndPass(absl::Seconds(1));
  ExpectStale(Send(Request("a", "t")), 1);
  auto refresh = function_.Next();
  const absl::Time begin = absl::Now();
  Proxy().Stop();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(60));
  EXPECT_TRUE(Eventually([&] { return refresh->cancelled(); }));
}

TEST_F(RevalidateTest, OfAnEntryBelowTheSameHolds) {
  has_lower_ = true;
  Proxy();
  cache::store::EntryInfo info;
  info.started = info.arrived = Proxy().clock.Now();
  info.lifetime = absl::Seconds(kTtl);
  info.ttl = info.lifetime;
  info.retention = absl::Hours(1);
  std::string body;
  {
    auto response = Response("", "old", kTtl);
    response.clear_meta();
    body = response.SerializeAsString();
  }
  Proxy().clock.Advance(kFresh + absl::Seconds(3));
  auto caller = Send(Request("a", "t"));
  store_->NextLookup()({cache::store::Entry::Create(info, "", {body}), false});
  ExpectStale(caller, 3);
  function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Counts().fills == 1; }));
  ExpectFresh("new");
}

// Other windows may come while the entry is kept: what the function has said
// since counts.
TEST_F(RevalidateTest, ItEndsTheOldAnswerWithWhateverSettings) {
  const settings::FunctionOptions now = options_;
  settings::FunctionOptions without = now;
  without.policy.stale_while_revalidate = absl::ZeroDuration();
  settings::FunctionOptions rehearsal = now;
  rehearsal.policy.mode = cache::Mode::kShadow;
  for (const auto& meanwhile : {without, rehearsal}) {
    Fill(Request("a", "t"), Response("t", "old", kTtl),
         {{"cache-control", "no-cache"}});
    Proxy().clock.Advance(kFresh + absl::Seconds(1));
    Proxy().handler().Replace(meanwhile);
    Fill(Request("a", "t"), Response("t", "zero", 0));
    Proxy().handler().Replace(now);
    auto caller = Fill(Request("a", "t"), Response("t", "zero", 0));
    EXPECT_EQ(caller->response().results(0).message(), "zero");
  }
}

// A fresh entry stays fresh: a rehearsal (shadow mode) only compares.
TEST_F(RevalidateTest, ARehearsalEndsNoFreshAnswer) {
  const settings::FunctionOptions now = options_;
  Fill(Request("a", "t"), Response("t", "old", kTtl));
  options_.policy.mode = cache::Mode::kShadow;
  Proxy().handler().Replace(options_);
  Fill(Request("a", "t"), Response("t", "zero", 0));
  Proxy().handler().Replace(now);
  ExpectFresh("old");
  Proxy().clock.Advance(kFresh + absl::Seconds(1));
  ExpectStale(Send(Request("a", "t")), 1);
  function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
}

// ---- stale_if_error

class IfErrorTest : public StaleTest {
 protected:
  IfErrorTest() { options_.policy.stale_if_error = absl::Minutes(10); }
};

TEST_F(IfErrorTest, TheFunctionIsAskedFirst) {
  FillAndPass(absl::Seconds(1));
  auto caller = Send(Request("a", "t"));
  function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=stale; stored");
  EXPECT_EQ(caller->response().results(0).message(), "new");
}

TEST_F(IfErrorTest, TheOldAnswerIsServedOverFailures) {
  FillAndPass(absl::Seconds(1));
  int failures = 0;
  for (const auto code :
       {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::INTERNAL,
        grpc::StatusCode::UNKNOWN, grpc::StatusCode::RESOURCE_EXHAUSTED,
        grpc::StatusCode::ABORTED, grpc::StatusCode::DATA_LOSS,
        grpc::StatusCode::DEADLINE_EXCEEDED}) {
    auto caller = Send(Request("a", "mine"));
    auto call = function_.Next();
    call->AddTrailer("x-trail", "t");
    call->Fail(Failure(code));
    ExpectStale(caller, 1);
    EXPECT_EQ(caller->response().meta().tag(), "mine");
    EXPECT_GE(caller->response().meta().ttl().seconds(), 10);
    EXPECT_TRUE(caller->Trailers("x-trail").empty());
    ++failures;
    const auto counted = Counted();
    EXPECT_EQ(counted.served_over[code], 1u) << code;
    EXPECT_EQ(counted.upstream[code], 1u) << code;
  }
  const auto counted = Counted();
  EXPECT_EQ(counted.Calls(telemetry::Outcome::kStaleHit),
            static_cast<uint64_t>(failures));
  EXPECT_EQ(counted.UpstreamErrors(), static_cast<uint64_t>(failures));
  EXPECT_EQ(counted.misses, 1u);
}

TEST_F(IfErrorTest, WhatTheFunctionSaysOfTheRequestOrTheCallerIsPassedOn) {
  FillAndPass(absl::Seconds(1));
  for (const auto code :
       {grpc::StatusCode::CANCELLED, grpc::StatusCode::INVALID_ARGUMENT,
        grpc::StatusCode::NOT_FOUND, grpc::StatusCode::ALREADY_EXISTS,
        grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::OUT_OF_RANGE,
        grpc::StatusCode::FAILED_PRECONDITION, grpc::StatusCode::UNIMPLEMENTED,
        grpc::StatusCode::UNAUTHENTICATED}) {
    auto caller = Send(Request("a", "t"));
    function_.Next()->Fail(Failure(code));
    EXPECT_EQ(caller->Wait().error_code(), code);
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=stale");
  }
  EXPECT_EQ(Counted().ServedOver(), 0u);
}

TEST_F(IfErrorTest, AFatalResultIsAnAnswer) {
  FillAndPass(absl::Seconds(1));
  auto fatal = Response("t", "fatal", kTtl);
  fatal.mutable_results(0)->set_severity(fnv1::SEVERITY_FATAL);
  auto caller = Fill(Request("a", "t"), fatal);
  EXPECT_EQ(caller->bytes(), fatal.SerializeAsString());
  // And the last one that the function gave: an error does not bring back what
  // was before it.
  caller = Send(Request("a", "t"));
  function_.Next()->Fail(Failure());
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(IfErrorTest, TheWindowEnds) {
  FillAndPass(absl::Minutes(10));
  auto caller = Send(Request("a", "t"));
  function_.Next()->Fail(Failure());
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(IfErrorTest, AWindowThatEndsWhileTheFunctionIsAskedIsOver) {
  FillAndPass(absl::Minutes(10) - absl::Seconds(1));
  auto caller = Send(Request("a", "t"));
  auto joined = Send(Request("a", "u"));
  WaitForCallers(2);
  auto call = function_.Next();
  Proxy().clock.Advance(absl::Seconds(2));
  call->Fail(Failure());
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
  // It asks itself, as one that never had an old answer.
  function_.Next()->Fail(Failure(grpc::StatusCode::INTERNAL));
  EXPECT_EQ(joined->Wait().error_code(), grpc::StatusCode::INTERNAL);
}

TEST_F(IfErrorTest, JoinedCallersAreServedTheOldAnswerToo) {
  FillAndPass(absl::Seconds(1));
  std::vector<CallerPtr> callers;
  for (int i = 0; i < 4; ++i) {
    callers.push_back(Send(Request("a", absl::StrCat("tag", i))));
  }
  WaitForCallers(4);
  function_.Next()->Fail(Failure());
  for (int i = 0; i < 4; ++i) {
    ExpectStale(callers[i], 1);
    EXPECT_EQ(callers[i]->response().meta().tag(), absl::StrCat("tag", i));
  }
  EXPECT_EQ(function_.calls(), 2);
  EXPECT_EQ(Counted().served_over[grpc::StatusCode::UNAVAILABLE], 4u);
}

TEST_F(IfErrorTest, NineTenthsOfACallersTimeAreEnough) {
  FillAndPass(absl::Seconds(1));
  const absl::Time begin = absl::Now();
  // These clients receive an answer that comes later, too.
  auto leader = Send(Request("a", "t"), {{"grpc-timeout", "5S"}});
  auto call = function_.Next();
  auto joined = Send(Request("a", "u"), {{"grpc-timeout", "2S"}});
  ExpectStale(joined, 1);
  EXPECT_GE(absl::Now() - begin, absl::Seconds(1.8));
  ExpectStale(leader, 1);
  EXPECT_GE(absl::Now() - begin, absl::Seconds(4.5));
  // No caller waits for it any more.
  EXPECT_TRUE(Eventually([&] { return call->cancelled(); }));
  EXPECT_EQ(Counted().served_over[grpc::StatusCode::DEADLINE_EXCEEDED], 2u);
}

TEST_F(IfErrorTest, WhoAsksForANewAnswerGetsTheError) {
  FillAndPass(absl::Seconds(1));
  for (const Metadata& metadata : {Metadata{{"cache-control", "no-store"}},
                                   Metadata{{"authorization", "me"}},
                                   Metadata{{"cache-control", "no-cache"}}}) {
    auto caller = Send(Request("a", "t"), metadata);
    function_.Next()->Fail(Failure());
    EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_F(IfErrorTest, WithoutTheSettingAnErrorIsAnError) {
  options_.policy.stale_if_error = absl::ZeroDuration();
  FillAndPass(absl::Seconds(1));
  auto caller = Send(Request("a", "t"));
  function_.Next()->Fail(Failure());
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// ---- No capacity to call the function (inflight.bytes)

// A function that hangs uses all the capacity, and the queue of misses is full.
// These tests show when an old answer is served then. DESIGN's "Under pressure"
// refuses misses with RESOURCE_EXHAUSTED. Its "Policy" serves an old answer
// over that error, whatever its origin.
class NoRoomTest : public StaleTest {
 protected:
  static constexpr size_t kBytes = 64 << 10;

  NoRoomTest() { inflight_bytes_ = kBytes; }
  void TearDown() override {
    if (hanging_ != nullptr) hanging_->Fail(Failure());
    StaleTest::TearDown();
  }

  void FillAndTakeTheRoom() {
    FillAndPass(absl::Seconds(1));
    // If nothing runs, one call may take more than the capacity.
    hanging_caller_ = Send(Request(std::string(kBytes - 4096, 'h'), "t"));
    hanging_ = function_.Next();
    waiting_caller_ = Send(Request(std::string(kBytes / 8, 'w'), "t"));
    EXPECT_TRUE(
        Eventually([&] { return Proxy().inflight().waiting() >= kBytes / 8; }));
  }
  // Misses are refused only after nothing has moved for a while.
  void AwaitRefusals() {
    EXPECT_TRUE(Eventually([&] {
      auto miss = Send(Request("new", "t"), {}, absl::Milliseconds(100));
      return miss->Wait().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    }));
    EXPECT_GT(Proxy().inflight().refused(), 0u);
  }
  // Frees the capacity: the function gets the miss that waited.
  void GiveBack() {
    hanging_->Fail(Failure());
    hanging_ = nullptr;
    function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
    EXPECT_TRUE(waiting_caller_->Wait().ok());
  }

  FunctionCallPtr hanging_;
  CallerPtr hanging_caller_;
  CallerPtr waiting_caller_;
};

TEST_F(NoRoomTest, StaleIfErrorServesOverARefusalForLackOfRoom) {
  options_.policy.stale_if_error = absl::Minutes(10);
  FillAndTakeTheRoom();
  AwaitRefusals();
  const int asked = function_.calls();
  const uint64_t refused = Proxy().inflight().refused();
  auto caller = ExpectStale(Send(Request("a", "mine")), 1);
  EXPECT_EQ(caller->response().meta().tag(), "mine");
  EXPECT_GE(caller->response().meta().ttl().seconds(), 10);
  EXPECT_EQ(Proxy().inflight().refused(), refused + 1);
  EXPECT_EQ(function_.calls(), asked) << "there was no room to ask it";
  EXPECT_EQ(Counts().served_over[grpc::StatusCode::RESOURCE_EXHAUSTED], 1u);
  // A caller that may not have an old answer is refused as before.
  auto strict = Send(Request("a", "t"), {{"cache-control", "no-cache"}});
  EXPECT_EQ(strict->Wait().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  GiveBack();
}

TEST_F(NoRoomTest, WithoutAnOldAnswerARefusalIsARefusal) {
  FillAndTakeTheRoom();
  AwaitRefusals();
  auto caller = Send(Request("a", "t"));
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=stale");
  EXPECT_EQ(Counts().ServedOver(), 0u);
  GiveBack();
}

// Before misses are refused they wait, for nine tenths of their time at most.
TEST_F(NoRoomTest, StaleIfErrorServesWhoWaitsForRoomInVain) {
  options_.policy.stale_if_error = absl::Minutes(10);
  FillAndTakeTheRoom();
  const int asked = function_.calls();
  auto caller = Send(Request("a", "t"), {{"grpc-timeout", "2S"}});
  ExpectStale(caller, 1);
  EXPECT_EQ(function_.calls(), asked);
  EXPECT_EQ(Counts().served_over[grpc::StatusCode::DEADLINE_EXCEEDED], 1u);
  GiveBack();
}

// Its caller has its answer, so it neither waits for capacity nor takes any.
TEST_F(NoRoomTest, ARefreshForWhichThereIsNoRoomDoesNotBegin) {
  options_.policy.stale_while_revalidate = absl::Minutes(10);
  FillAndTakeTheRoom();
  const size_t waiting = Proxy().inflight().waiting();
  const int asked = function_.calls();
  ExpectStale(Send(Request("a", "t")), 1);
  EXPECT_EQ(Counts().refreshes_refused, 1u);
  EXPECT_EQ(Counts().refreshes, 0u);
  EXPECT_EQ(Proxy().inflight().waiting(), waiting);
  EXPECT_EQ(function_.calls(), asked);
  GiveBack();
  ExpectStale(Send(Request("a", "t")), 1);
  function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Counts().refreshes == 1; }));
}

// One that fits may run, and once misses wait, none begins.
TEST_F(NoRoomTest, ALargeRefreshMayRunAlone) {
  options_.policy.stale_while_revalidate = absl::Minutes(10);
  const std::string large = Request(std::string(kBytes * 7 / 8, 'x'), "t");
  Fill(large, Response("t", "old", kTtl));
  Proxy().clock.Advance(absl::Seconds(kTtl) * 0.9 + absl::Seconds(1));
  ExpectStale(Send(large), 1);
  function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Counts().refreshes == 1; }));
  EXPECT_EQ(Counts().refreshes_refused, 0u);
}

TEST_F(NoRoomTest, CallsWithoutACallerHaveAnEighthBetweenThem) {
  options_.policy.stale_while_revalidate = absl::Minutes(10);
  const auto large = [](int i) {
    return Request(absl::StrCat(i, std::string(kBytes / 20, 'x')), "t");
  };
  for (int i = 0; i < 5; ++i) Fill(large(i), Response("t", "old", kTtl));
  Proxy().clock.Advance(absl::Seconds(kTtl) * 0.9 + absl::Seconds(1));
  // The function hangs.
  for (int i = 0; i < 5; ++i) ExpectStale(Send(large(i)), 1);
  EXPECT_EQ(Counts().refreshes, 2u);
  EXPECT_EQ(Counts().refreshes_refused, 3u);
  EXPECT_EQ(Proxy().inflight().waiting(), 0u);
  const std::vector<FunctionCallPtr> hung = {function_.Next(),
                                             function_.Next()};
  // Others are asked for all the same.
  auto miss = Send(Request("new", "t"));
  function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
  EXPECT_TRUE(miss->Wait().ok());
  for (const auto& call : hung) call->Fail(Failure());
}

// While the queue moves, misses wait beyond its eighth, too. Hits continue.
TEST_F(NoRoomTest, MissesBeyondTheQueuesEighthWait) {
  Fill(Request("hit", "t"), Response("t", "kept", 3600));
  FillAndTakeTheRoom();
  const size_t waiting = Proxy().inflight().waiting();
  auto more = Send(Request(std::string(kBytes / 8, 'm'), "t"));
  EXPECT_TRUE(Eventually(
      [&] { return Proxy().inflight().waiting() > waiting + kBytes / 8; }));
  auto hit = Send(Request("hit", "t"));
  EXPECT_TRUE(hit->Wait().ok());
  auto leaves = Send(Request(std::string(kBytes / 8, 'l'), "t"));
  EXPECT_TRUE(Eventually(
      [&] { return Proxy().inflight().waiting() > waiting + kBytes / 4; }));
  leaves->context.TryCancel();
  leaves->Wait();
  EXPECT_TRUE(Eventually(
      [&] { return Proxy().inflight().waiting() < waiting + kBytes / 4; }));
  std::exchange(hanging_, nullptr)->Fail(Failure());
  // Both run now, and are counted there.
  for (int i = 0; i < 2; ++i) {
    function_.Next()->Answer(Response("t", "new", kTtl).SerializeAsString());
  }
  EXPECT_TRUE(waiting_caller_->Wait().ok());
  EXPECT_TRUE(more->Wait().ok());
  EXPECT_TRUE(Eventually([&] { return Proxy().inflight().reading() == 0; }));
  EXPECT_EQ(Proxy().inflight().waiting(), 0u);
}

// A request that cannot be read for lack of capacity has no key, hence no old
// answer.
TEST_F(NoRoomTest, WhatCannotBeReadIsRefusedWhateverIsStored) {
  options_.policy.stale_if_error = absl::Minutes(10);
  FillAndPass(absl::Seconds(1));
  const std::string text(15'000, 'x');
  {
    TestCall reading(channel_, kRunFunctionV1);  // and sends no request
    reading.context().AddMetadata("x-text", text);
    ASSERT_TRUE(reading.Start());
    EXPECT_TRUE(Eventually([&] { return Proxy().inflight().reading() > 1; }));
    Proxy().inflight().SetBound(1);
    ::testing::internal::CaptureStderr();
    auto caller = Send(Request("a", "t"), {{"x-text", text}});
    EXPECT_EQ(caller->Wait().error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                ::testing::HasSubstr(
                    " warning refused a call function=function "
                    "status=RESOURCE_EXHAUSTED why=\"the calls on this "
                    "connection exceed its cap of inflight.bytes"));
    EXPECT_EQ(Counts().ServedOver(), 0u);
    reading.context().TryCancel();
    reading.Finish();
  }
  EXPECT_TRUE(Eventually([&] { return Proxy().inflight().reading() == 0; }));
  auto again = Send(Request("a", "t"));
  function_.Next()->Fail(Failure());
  ExpectStale(again, 1);
}

// ---- finish_abandoned

class AbandonedTest : public StaleTest {
 protected:
  AbandonedTest() { options_.policy.finish_abandoned = absl::Seconds(30); }
  // A call whose caller runs out of patience.
  FunctionCallPtr Abandon(const std::string& name = "a") {
    // A call that a busy machine delays beyond its deadline does not reach the
    // function: the next one has more time.
    absl::Duration patience = absl::Milliseconds(300);
    for (bool reached = false; !reached && patience < absl::Minutes(1);) {
      auto caller = Send(Request(name, "t"), {}, patience);
      EXPECT_EQ(caller->Wait().error_code(),
                grpc::StatusCode::DEADLINE_EXCEEDED);
      reached = Eventually([&] { return function_.waiting() > 0; }, patience);
      patience *= 10;
    }
    return function_.Next();
  }
};

TEST_F(AbandonedTest, ACallGoesOnAndFillsWhenItsCallerHasLeft) {
  auto call = Abandon();
  EXPECT_TRUE(Eventually([&] { return Gauges().abandoned == 1; }));
  EXPECT_FALSE(call->cancelled());
  call->Answer(Response("t", "late", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Counts().fills == 1; }));
  ExpectFresh("late");
  EXPECT_EQ(function_.calls(), 1);
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  const auto counted = Counted();
  EXPECT_EQ(counted.abandoned, 1u);
  EXPECT_EQ(counted.abandoned_finished, 1u);
  EXPECT_EQ(Gauges().abandoned, 0);
}

TEST_F(AbandonedTest, LaterCallersJoinIt) {
  auto call = Abandon();
  EXPECT_TRUE(Eventually([&] { return Gauges().abandoned == 1; }));
  auto joined = Send(Request("a", "later"));
  WaitForCallers(1);
  EXPECT_EQ(Gauges().abandoned, 0);
  EXPECT_EQ(Proxy().flights().unattended, 0);
  call->Answer(Response("t", "late", kTtl).SerializeAsString());
  ASSERT_TRUE(joined->Wait().ok());
  EXPECT_EQ(joined->cache_status(), "fncache; fwd=miss; collapsed; stored");
  EXPECT_EQ(joined->response().meta().tag(), "later");
  EXPECT_EQ(function_.calls(), 1);
}

TEST_F(AbandonedTest, TheFunctionIsToldItsLongerDeadline) {
  auto caller = Send(Request("a", "t"), {}, absl::Seconds(40));
  auto call = function_.Next();
  const auto timeout = call->TimeLeft();
  EXPECT_GT(timeout, absl::Seconds(60));
  EXPECT_LE(timeout, absl::Seconds(71));  // callers round up
  call->Answer(Response("t", "x", kTtl).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
}

TEST_F(AbandonedTest, ItEndsWhenItsLongerDeadlinePasses) {
  options_.policy.finish_abandoned = absl::Milliseconds(400);
  auto call = Abandon();
  EXPECT_TRUE(Eventually([&] { return call->cancelled(); }));
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  EXPECT_EQ(Counted().abandoned_finished, 0u);
}

TEST_F(AbandonedTest, WithoutADeadlineItEndsByItself) {
  options_.policy.finish_abandoned = absl::Milliseconds(300);
  auto caller = Send(Request("a", "t"));
  auto call = function_.Next();
  caller->context.TryCancel();
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::CANCELLED);
  // The count stays; the gauge may fall before this thread reads it.
  EXPECT_TRUE(Eventually([&] { return Counts().abandoned == 1; }));
  EXPECT_TRUE(Eventually([&] { return call->cancelled(); }));
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
}

TEST_F(AbandonedTest, WhoJoinedIsNotCancelledWithIt) {
  options_.policy.finish_abandoned = absl::Seconds(1);
  auto caller = Send(Request("a", "t"));
  auto call = function_.Next();
  caller->context.TryCancel();
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Gauges().abandoned == 1; }));
  auto joined = Send(Request("a", "u"));
  WaitForCallers(1);
  absl::SleepFor(absl::Milliseconds(1100));  // the end that it had alone
  EXPECT_FALSE(call->cancelled());
  call->Answer(Response("t", "late", kTtl).SerializeAsString());
  EXPECT_TRUE(joined->Wait().ok());
}

TEST_F(AbandonedTest, AtMostSixteenGoOn) {
  std::vector<FunctionCallPtr> calls;
  std::vector<CallerPtr> callers;
  for (int i = 0; i < 17; ++i) {
    callers.push_back(Send(Request(absl::StrCat("k", i), "t")));
    calls.push_back(function_.Next());
  }
  for (const auto& caller : callers) caller->context.TryCancel();
  EXPECT_TRUE(Eventually([&] {
    const auto counts = Counts();
    return counts.abandoned == 16 && counts.abandoned_refused == 1;
  }));
  EXPECT_TRUE(Eventually([&] {
    int cancelled = 0;
    for (const auto& call : calls) cancelled += call->cancelled();
    return cancelled == 1;
  }));
  EXPECT_EQ(Proxy().flights().unattended, 16);
  for (const auto& call : calls) {
    call->Answer(Response("t", "late", kTtl).SerializeAsString());
  }
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  EXPECT_EQ(Counted().abandoned_finished, 16u);
}

// As refreshes do: a second, then twice as long, half a minute at most.
TEST_F(AbandonedTest, AfterAFailureTheNextOnesEndWithTheirCallers) {
  auto call = Abandon();
  EXPECT_TRUE(Eventually([&] { return Gauges().abandoned == 1; }));
  call->Fail(Failure());
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  call = Abandon();
  EXPECT_TRUE(Eventually([&] { return call->cancelled(); }));
  EXPECT_EQ(Counts().abandoned, 1u);
  // The failure says nothing of another key.
  call = Abandon("b");
  EXPECT_TRUE(Eventually([&] { return Gauges().abandoned == 1; }));
  call->Answer(Response("t", "late", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Counts().abandoned_finished == 1; }));
  Proxy().clock.Advance(absl::Milliseconds(1001));
  call = Abandon();
  EXPECT_TRUE(Eventually([&] { return Gauges().abandoned == 1; }));
  call->Answer(Response("t", "late", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Counts().abandoned_finished == 2; }));
}

TEST_F(AbandonedTest, AStopWaitsForNone) {
  auto call = Abandon();
  EXPECT_TRUE(Eventually([&] { return Gauges().abandoned == 1; }));
  Proxy().Stop();
  EXPECT_TRUE(Eventually([&] { return call->cancelled(); }));
}

TEST_F(AbandonedTest, WithAnOldAnswerASlowFunctionIsNoTroubleAtAll) {
  options_.policy.stale_if_error = absl::Minutes(10);
  FillAndPass(absl::Seconds(1));
  auto caller = Send(Request("a", "t"), {}, absl::Milliseconds(500));
  auto call = function_.Next();
  ExpectStale(caller, 1);
  EXPECT_FALSE(call->cancelled());
  call->Answer(Response("t", "late", kTtl).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Counts().fills == 2; }));
  ExpectFresh("late");
}

}  // namespace
}  // namespace fncache::proxy::serving
