// SPDX-License-Identifier: Apache-2.0
// Each location where an entry is given to a caller, with a request of other
// drift: an unproven entry is a miss, and a proven one is a hit across drift
// (DESIGN, "Tuning"). And flights and refreshes, by key and drift.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proxy/serving/drift_testing.h"

namespace fncache::proxy::serving {
namespace {

using ::testing::HasSubstr;

constexpr char kUnproven[] =
    "fncache; fwd=miss; stored; detail=\"drift: unproven\"";

class CallDriftTest : public DriftTest {
 protected:
  // An entry of tick 3 is in memory, and the function gave its answer three
  // times. With `proven`, it has proven the answer, too.
  void Begin(bool proven) {
    if (proven) return Prove();
    // Too few drifts for questions.
    Run(Drifted(1));
    Run(Drifted(3));
  }
  static CallerPtr ExpectOk(const CallerPtr& caller) {
    EXPECT_TRUE(caller->Wait().ok());
    return caller;
  }
};

// ---- Memory.

TEST_F(CallDriftTest, AnUnprovenEntryInMemoryIsAMiss) {
  Begin(/*proven=*/false);
  EXPECT_EQ(Run(Drifted(9))->cache_status(), kUnproven);
  AnswerQuestions(Proof::kQuestions);
  EXPECT_EQ(Counted().Calls(telemetry::Outcome::kHit), 0u);
}

TEST_F(CallDriftTest, AProvenEntryInMemoryIsAHit) {
  Begin(/*proven=*/true);
  auto hit = ExpectStatus(Send(Drifted(9, "mine")),
                          "fncache; hit; ttl=54; detail=drift");
  EXPECT_EQ(hit->response().meta().tag(), "mine");
  EXPECT_EQ(hit->response().results(0).message(), "same");
  EXPECT_EQ(Figures().hits, 1u);
  // A request of its own drift does not say so.
  ExpectStatus(Send(Drifted(3)), "fncache; hit; ttl=54");
  EXPECT_EQ(Figures().hits, 1u);
}

TEST_F(CallDriftTest, AnotherWordIsAnotherRequest) {
  Begin(/*proven=*/true);
  EXPECT_EQ(Run(Drifted(9, "t", "b"))->cache_status(),
            "fncache; fwd=miss; stored");
}

TEST_F(CallDriftTest, AKindThatMovesFirstIsAMissThatNamesIt) {
  Begin(/*proven=*/true);
  EXPECT_EQ(Run(Drifted(9, "t", "a", /*event=*/1))->cache_status(),
            "fncache; fwd=miss; stored; "
            "detail=\"drift: moved status lastTransitionTime\"");
}

// The key of a large request is made on another thread.
TEST_F(CallDriftTest, LargeRequestsAreTheSame) {
  const auto large = [](int tick) {
    fnv1::RunFunctionRequest request;
    EXPECT_TRUE(request.ParseFromString(Drifted(tick)));
    (*request.mutable_context()->mutable_fields())["large"].set_string_value(
        std::string(200 << 10, 'x'));
    return request.SerializeAsString();
  };
  // A second call, so that the worker has other work.
  std::vector<CallerPtr> others;
  for (int i = 0; i < 8; ++i) {
    others.push_back(Send(Request(absl::StrCat("other", i), "t")));
  }
  std::vector<FunctionCallPtr> waiting;
  for (size_t i = 0; i < others.size(); ++i) {
    waiting.push_back(function_.Next());
  }
  for (int tick = 1; tick <= 3; ++tick) Run(large(tick));
  AnswerQuestions(Proof::kQuestions);
  EXPECT_TRUE(Eventually([&] { return Figures().keys_proven == 1; }));
  ExpectStatus(Send(large(9)), "fncache; hit; ttl=54; detail=drift");
  for (const auto& call : waiting) call->Answer(Same());
  for (const auto& other : others) EXPECT_TRUE(other->Wait().ok());
}

// ---- Lower tiers.

TEST_F(CallDriftTest, AnEntryBelowIsAHitOnlyIfItIsProven) {
  has_lower_ = true;
  Proxy();
  // Each miss looks below first, unless memory has an entry.
  const auto first = [&](const std::string& request) {
    Proxy().clock.Advance(absl::Milliseconds(10));
    auto caller = Send(request);
    store_->NextLookup()({});
    function_.Next()->Answer(Same());
    EXPECT_TRUE(caller->Wait().ok());
  };
  first(Drifted(1));
  cache::store::EntryRef entry = EntryOf(Drifted(1));
  ASSERT_TRUE(entry);
  store_->Erase(KeyOf(Drifted(1)));

  auto unproven = Send(Drifted(2));
  Proxy().clock.Advance(absl::Milliseconds(10));
  store_->NextLookup()({entry, false});
  function_.Next()->Answer(Same());
  ExpectStatus(unproven, kUnproven);

  Run(Drifted(3));
  Run(Drifted(4));
  AnswerQuestions(Proof::kQuestions);
  EXPECT_TRUE(Eventually([&] { return Figures().keys_proven == 1; }));
  entry = EntryOf(Drifted(4));
  store_->Erase(KeyOf(Drifted(4)));
  auto proven = Send(Drifted(9));
  store_->NextLookup()({entry, false});
  ExpectStatus(proven, "fncache; hit; ttl=54; detail=drift");

  // Another process filled that one, with the same answer. Nothing is known of
  // it.
  cache::store::EntryInfo info = entry->info();
  info.started += absl::Milliseconds(1);
  auto foreign = Send(Drifted(9));
  Proxy().clock.Advance(absl::Milliseconds(10));
  store_->NextLookup()(
      {cache::store::Entry::Create(info, "", {entry->body()}), false});
  function_.Next()->Answer(Same());
  ExpectStatus(foreign, kUnproven);
}

// ---- The retried look-up.

// An entry comes to memory while a caller looks below: its flight looks in
// memory once more.
TEST_F(CallDriftTest, TheLookupAfterAFlightAsksTheGate) {
  has_lower_ = true;
  Proxy();
  auto first = Send(Drifted(1));
  store_->NextLookup()({});
  function_.Next()->Answer(Same());
  ASSERT_TRUE(first->Wait().ok());
  const auto look_once_more = [&](int tick) {
    const cache::store::EntryRef entry = EntryOf(Drifted(1));
    EXPECT_TRUE(store_->Erase(KeyOf(Drifted(1))));
    Proxy().clock.Advance(absl::Milliseconds(10));
    auto caller = Send(Drifted(tick));
    auto below = store_->NextLookup();
    store_->Fill(KeyOf(Drifted(1)), entry, /*lower=*/false,
                 Proxy().clock.Now());
    below({});
    return caller;
  };
  auto unproven = look_once_more(2);
  function_.Next()->Answer(Same());
  ExpectStatus(unproven, kUnproven);
  Run(Drifted(3));
  AnswerQuestions(Proof::kQuestions);
  EXPECT_TRUE(Eventually([&] { return Figures().keys_proven == 1; }));
  const int calls = function_.calls();
  ExpectStatus(look_once_more(9), "fncache; hit; ttl=53; detail=drift");
  EXPECT_EQ(function_.calls(), calls);
}

// Three callers of tick 9 wait: the first one's call fails, the second one's
// runs, and the third one waits for its slot. Meanwhile a call of tick 4 fills.
class WaitForSlotTest : public CallDriftTest {
 protected:
  CallerPtr WaitsForSlot() {
    store_->Erase(KeyOf(Drifted(3)));
    auto first = Send(Drifted(9, "first"));
    auto call = function_.Next();
    auto second = Send(Drifted(9, "second"));
    WaitForCallers(2);
    auto third = Send(Drifted(9, "third"));
    WaitForCallers(3);
    call->Fail(grpc::Status(grpc::StatusCode::INTERNAL, "no"));
    EXPECT_FALSE(first->Wait().ok());
    call = function_.Next();
    EXPECT_EQ(call->request().meta().tag(), "second");
    EXPECT_TRUE(Eventually([&] { return proxy_->flights().queued == 1; }));
    Run(Drifted(4), Same(), {{"cache-control", "no-cache"}});
    call->Fail(grpc::Status(grpc::StatusCode::INTERNAL, "no"));
    EXPECT_FALSE(second->Wait().ok());
    return third;
  }
};

TEST_F(WaitForSlotTest, AnUnprovenEntryIsAMiss) {
  options_.policy.max_released = 1;
  Begin(/*proven=*/false);
  auto third = WaitsForSlot();
  const auto call = function_.Next();
  EXPECT_EQ(call->request().meta().tag(), "third");
  Proxy().clock.Advance(absl::Milliseconds(10));
  call->Answer(Same());
  ExpectStatus(third, kUnproven);
}

TEST_F(WaitForSlotTest, AProvenEntryIsAHit) {
  options_.policy.max_released = 1;
  Begin(/*proven=*/true);
  auto third = WaitsForSlot();
  ExpectStatus(third, "fncache; hit; ttl=54; detail=drift");
  EXPECT_EQ(third->response().meta().tag(), "third");
}

// ---- Flights.

TEST_F(CallDriftTest, JoinedCallersAreOfEqualDrift) {
  auto first = Send(Drifted(1, "first"));
  auto call = function_.Next();
  auto joined = Send(Drifted(1, "joined"));
  WaitForCallers(2);
  auto other = Send(Drifted(2, "other"));
  auto other_call = function_.Next();
  EXPECT_EQ(other_call->request().meta().tag(), "other");
  Proxy().clock.Advance(absl::Milliseconds(10));
  call->Answer(Response("t", "one", kTtl).SerializeAsString());
  ASSERT_TRUE(first->Wait().ok());
  ExpectStatus(joined, "fncache; fwd=miss; collapsed; stored");
  EXPECT_EQ(joined->response().results(0).message(), "one");
  other_call->Answer(Response("t", "two", kTtl).SerializeAsString());
  ASSERT_TRUE(other->Wait().ok());
  EXPECT_EQ(other->response().results(0).message(), "two");
  EXPECT_EQ(function_.calls(), 2);
}

// A call of tick 1 starts later than a flight of tick 9, and fills first.
class LaterFillTest : public CallDriftTest {
 protected:
  void FillLater() {
    store_->Erase(KeyOf(Drifted(3)));
    leader_ = Send(Drifted(9, "leader"));
    const auto call = function_.Next();
    joined_ = Send(Drifted(9, "joined"));
    WaitForCallers(2);
    Run(Drifted(1), Same(), {{"cache-control", "no-cache"}});
    Proxy().clock.Advance(absl::Milliseconds(10));
    call->Answer(Same());
    EXPECT_EQ(ExpectOk(leader_)->cache_status(), "fncache; fwd=miss");
  }
  CallerPtr leader_;
  CallerPtr joined_;
};

TEST_F(LaterFillTest, AnUnprovenOneOfOtherDriftIsNotForJoinedCallers) {
  Begin(/*proven=*/false);
  FillLater();
  const auto call = function_.Next();
  EXPECT_EQ(call->request().meta().tag(), "joined");
  Proxy().clock.Advance(absl::Milliseconds(10));
  call->Answer(Same());
  ExpectStatus(joined_, kUnproven);
  AnswerQuestions(Proof::kQuestions);
}

TEST_F(LaterFillTest, AProvenOneIsAHit) {
  Begin(/*proven=*/true);
  FillLater();
  ExpectStatus(joined_, "fncache; hit; ttl=53; detail=drift");
}

TEST_F(CallDriftTest, AfterAnAnswerThatIsNotSharedEachDriftCollapsesAlone) {
  auto first = Send(Drifted(1, "first"));
  auto call = function_.Next();
  call->Answer(Same(-1));
  ASSERT_TRUE(first->Wait().ok());
  std::vector<CallerPtr> callers;
  // Not collapsed: each has a call of its own.
  for (const std::string tag : {"a", "b"}) {
    callers.push_back(Send(Drifted(1, tag)));
    call = function_.Next();
    EXPECT_EQ(call->request().meta().tag(), tag);
    call->Answer(Same(-1));
  }
  callers.push_back(Send(Drifted(2, "c")));
  call = function_.Next();
  callers.push_back(Send(Drifted(2, "d")));
  WaitForCallers(2);
  Proxy().clock.Advance(absl::Milliseconds(10));
  call->Answer(Same());
  for (const auto& caller : callers) EXPECT_TRUE(caller->Wait().ok());
  EXPECT_EQ(function_.calls(), 4);
}

TEST_F(CallDriftTest, APurgeOfAKeyDetachesItsFlightsOfEveryDrift) {
  std::vector<CallerPtr> callers;
  std::vector<FunctionCallPtr> calls;
  for (const int tick : {1, 2, 3}) {
    callers.push_back(Send(Drifted(tick)));
    calls.push_back(function_.Next());
  }
  EXPECT_EQ(Proxy().handler().DetachFlight(KeyOf(Drifted(1))), 3u);
  for (const int tick : {1, 2, 3}) {
    callers.push_back(Send(Drifted(tick, "later")));
    calls.push_back(function_.Next());
    EXPECT_EQ(calls.back()->request().meta().tag(), "later");
  }
  for (const auto& call : calls) call->Answer(Same(-1));
  for (const auto& caller : callers) EXPECT_TRUE(caller->Wait().ok());
}

// ---- Entries past their time.

class StaleDriftTest : public CallDriftTest {
 protected:
  void BeginAndPass(bool proven) {
    Begin(proven);
    Proxy().clock.Advance(absl::Seconds(55));
  }
};

TEST_F(StaleDriftTest, WhileRevalidatingAnUnprovenEntryIsAMiss) {
  options_.policy.stale_while_revalidate = absl::Minutes(10);
  BeginAndPass(/*proven=*/false);
  EXPECT_EQ(Run(Drifted(9))->cache_status(), kUnproven);
  AnswerQuestions(Proof::kQuestions);
}

TEST_F(StaleDriftTest, WhileRevalidatingAProvenEntryIsAHit) {
  options_.policy.stale_while_revalidate = absl::Minutes(10);
  BeginAndPass(/*proven=*/true);
  ExpectStatus(Send(Drifted(9, "mine")), "fncache; hit; ttl=-1; detail=drift");
  const auto refresh = function_.Next();
  EXPECT_EQ(TickOf(*refresh), 9);
  EXPECT_EQ(refresh->request().meta().tag(), "mine");
  EXPECT_FALSE(IsQuestion(*refresh));
  refresh->Answer(Same());
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  ExpectStatus(Send(Drifted(9)), "fncache; hit; ttl=54");
  // The proof continues to count over the refill.
  ExpectStatus(Send(Drifted(10)), "fncache; hit; ttl=54; detail=drift");
}

TEST_F(StaleDriftTest, EachDriftHasItsRefreshAndItsBackOff) {
  options_.policy.stale_while_revalidate = absl::Minutes(10);
  BeginAndPass(/*proven=*/true);
  std::vector<FunctionCallPtr> refreshes;
  for (const int tick : {8, 9}) {
    for (int i = 0; i < 2; ++i) {
      ExpectStatus(Send(Drifted(tick)), "fncache; hit; ttl=-1; detail=drift");
    }
    refreshes.push_back(function_.Next());
    EXPECT_EQ(TickOf(*refreshes.back()), tick);
  }
  EXPECT_EQ(function_.calls(), 3 + 4 + 2);
  refreshes[0]->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no"));
  EXPECT_TRUE(Eventually([&] { return Proxy().handler().BackingOff() == 1; }));
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().flights == 1; }));
  ExpectStatus(Send(Drifted(8)), "fncache; hit; ttl=-1; detail=drift");
  ExpectStatus(Send(Drifted(10)), "fncache; hit; ttl=-1; detail=drift");
  refreshes.push_back(function_.Next());
  EXPECT_EQ(TickOf(*refreshes.back()), 10);
  EXPECT_EQ(function_.calls(), 3 + 4 + 3);
  for (const auto& refresh : refreshes) refresh->Answer(Same());
}

TEST_F(StaleDriftTest, OverAnErrorAnUnprovenEntryIsNotServed) {
  options_.policy.stale_if_error = absl::Minutes(10);
  BeginAndPass(/*proven=*/false);
  auto caller = Send(Drifted(9));
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no"));
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(StaleDriftTest, OverAnErrorAProvenEntryIsServedToJoinedCallersToo) {
  options_.policy.stale_if_error = absl::Minutes(10);
  BeginAndPass(/*proven=*/true);
  auto caller = Send(Drifted(9));
  const auto call = function_.Next();
  auto joined = Send(Drifted(9));
  WaitForCallers(2);
  call->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no"));
  ExpectStatus(caller, "fncache; hit; ttl=-1; detail=drift");
  ExpectStatus(joined, "fncache; hit; ttl=-1; detail=drift");
}

// A proof that is revoked while the function runs does not count at its end.
TEST_F(StaleDriftTest, OverAnErrorTheGateIsAskedOnceMore) {
  options_.policy.stale_if_error = absl::Minutes(10);
  BeginAndPass(/*proven=*/true);
  auto caller = Send(Drifted(9));
  const auto call = function_.Next();
  auto joined = Send(Drifted(9, "joined"));
  WaitForCallers(2);
  Proxy().tuning.evidence.Forget(KeyOf(Drifted(9)));
  call->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no"));
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
  const auto own = function_.Next();
  EXPECT_EQ(own->request().meta().tag(), "joined");
  own->Answer(Same());
  EXPECT_TRUE(joined->Wait().ok());
}

TEST_F(StaleDriftTest, AtTheEndOfPatienceAnUnprovenEntryIsNotServed) {
  options_.policy.stale_if_error = absl::Minutes(10);
  BeginAndPass(/*proven=*/false);
  auto caller = Send(Drifted(9), {}, absl::Seconds(1));
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(StaleDriftTest, AtTheEndOfPatienceAProvenEntryIsServed) {
  options_.policy.stale_if_error = absl::Minutes(10);
  BeginAndPass(/*proven=*/true);
  auto caller = Send(Drifted(9), {{"grpc-timeout", "2S"}});
  ExpectStatus(caller, "fncache; hit; ttl=-1; detail=drift");
}

// ---- Answers that are not stored.

class NotStoredDriftTest : public CallDriftTest {
 protected:
  // A call that the entry may not answer: another kind moved.
  CallerPtr SendMoved() {
    Proxy().clock.Advance(absl::Milliseconds(10));
    return Send(Drifted(9, "t", "a", /*event=*/1));
  }
  // The entry still answers its own request, and no other one.
  void ExpectNoProof() {
    ExpectStatus(Send(Drifted(3)), HitStatusNow());
    auto caller = Send(Drifted(10));
    const auto call = function_.Next();
    ASSERT_TRUE(call != nullptr);
    Proxy().clock.Advance(absl::Milliseconds(10));
    call->Answer(Same());
    ExpectStatus(caller, kUnproven);
  }
  std::string HitStatusNow() {
    const auto fresh = EntryOf(Drifted(3))->deadline() - Proxy().clock.Now() -
                       absl::Seconds(kTtl) * 0.1;
    return absl::StrCat("fncache; hit; ttl=", absl::ToInt64Seconds(fresh));
  }
};

TEST_F(NotStoredDriftTest, AnAnswerWithoutATtlEndsTheProof) {
  Begin(/*proven=*/true);
  auto caller = SendMoved();
  function_.Next()->Answer(Same(-1));
  ASSERT_TRUE(caller->Wait().ok());
  ExpectNoProof();
}

TEST_F(NotStoredDriftTest, AFatalAnswerEndsTheProof) {
  Begin(/*proven=*/true);
  auto caller = SendMoved();
  auto fatal = Response("t", "same", kTtl);
  fatal.mutable_results(0)->set_severity(fnv1::SEVERITY_FATAL);
  function_.Next()->Answer(fatal.SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  ExpectNoProof();
}

TEST_F(NotStoredDriftTest, AnAnswerThatCannotBeReadEndsTheProof) {
  Begin(/*proven=*/true);
  auto caller = SendMoved();
  function_.Next()->Answer("\xff\xff no message");
  ASSERT_TRUE(caller->Wait().ok());
  ExpectNoProof();
}

TEST_F(NotStoredDriftTest, AnErrorDoesNot) {
  Begin(/*proven=*/true);
  auto caller = SendMoved();
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no"));
  EXPECT_FALSE(caller->Wait().ok());
  EXPECT_THAT(ExpectOk(Send(Drifted(10)))->cache_status(),
              HasSubstr("detail=drift"));
}

TEST_F(NotStoredDriftTest, AnotherAnswerEndsTheProof) {
  Begin(/*proven=*/true);
  auto caller = SendMoved();
  function_.Next()->Answer(Response("t", "other", kTtl).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  // The daemon asks about that drift at once. Repeats are still missing.
  const std::string other = Response("t", "other", kTtl).SerializeAsString();
  AnswerQuestions(Proof::kQuestions, other);
  WaitForQuestions();
  const CallerPtr next = Run(Drifted(10), other);
  ExpectStatus(next, kUnproven);
}

}  // namespace
}  // namespace fncache::proxy::serving
