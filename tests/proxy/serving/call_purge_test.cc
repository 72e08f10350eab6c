// SPDX-License-Identifier: Apache-2.0
// RunFunction end to end in one process, and purges: of what is stored, and
// with calls, flights and look-ups under way.
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/purge.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = cache::store::Bans::Kind;

class CallPurgeTest : public CallTest {
 protected:
  CallPurgeTest() { options_.generation = "r1"; }

  Purger& Operator() {
    if (purger_ == nullptr) {
      Purger::Deps deps;
      deps.functions = {&Proxy().handler()};
      deps.store = store_.get();
      deps.clock = &Proxy().clock;
      deps.misses = &Proxy().misses();
      purger_ = std::make_unique<Purger>(deps);
    }
    return *purger_;
  }
  cache::key::Key KeyOf(const std::string& request) {
    LookUpOrder order;
    order.request = request;
    const auto key = Operator().KeyOf(order);
    EXPECT_TRUE(key.ok()) << key.status();
    return *key;
  }
  PurgeOrder Order(Kind kind, const std::string& request) {
    PurgeOrder order;
    order.what = kind;
    if (kind == Kind::kKey) order.key = KeyOf(request);
    if (kind == Kind::kFunction || kind == Kind::kGeneration) {
      order.function = "function";
    }
    order.generation = "r1";
    return order;
  }
  // Calls before it start before the purge; later calls start after it.
  PurgeResult Purge(const PurgeOrder& order) {
    Proxy().clock.Advance(absl::Milliseconds(1));
    const auto result = Operator().Purge(order);
    EXPECT_TRUE(result.ok()) << result.status();
    Proxy().clock.Advance(absl::Milliseconds(1));
    return *result;
  }
  size_t KeyBans() { return store_->bans().figures().keys; }

  static constexpr Kind kKinds[] = {Kind::kKey, Kind::kFunction,
                                    Kind::kGeneration, Kind::kAll};
  std::unique_ptr<Purger> purger_;
};

TEST_F(CallPurgeTest, WhatIsPurgedIsAskedForAnew) {
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    Fill(Request("a", "t"), Response("t", "before", 60),
         {{"cache-control", "no-cache"}});
    auto hit = Send(Request("a", "t"));
    ASSERT_TRUE(hit->Wait().ok());
    ASSERT_EQ(hit->response().results(0).message(), "before");
    const PurgeResult result = Purge(Order(kind, Request("a", "t")));
    EXPECT_EQ(result.removed, 1u);
    EXPECT_FALSE(result.durable) << "it is in memory alone";
    auto miss = Fill(Request("a", "t"), Response("t", "after", 60));
    EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss; stored");
    hit = Send(Request("a", "t"));
    ASSERT_TRUE(hit->Wait().ok());
    EXPECT_EQ(hit->response().results(0).message(), "after");
  }
  EXPECT_EQ(KeyBans(), 0u);
}

TEST_F(CallPurgeTest, OtherKeysStay) {
  Fill(Request("a", "t"), Response("t", "a", 60));
  Fill(Request("b", "t"), Response("t", "b", 60));
  Purge(Order(Kind::kKey, Request("a", "t")));
  auto hit = Send(Request("b", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().results(0).message(), "b");
}

TEST_F(CallPurgeTest, AnotherGenerationStays) {
  Fill(Request("a", "t"), Response("t", "a", 60));
  PurgeOrder order = Order(Kind::kGeneration, "");
  order.generation = "r0";
  EXPECT_EQ(Purge(order).removed, 0u);
  auto hit = Send(Request("a", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().results(0).message(), "a");
}

TEST_F(CallPurgeTest, ACallUnderWayIsAnsweredAndNotStored) {
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    auto first = Send(Request("a", "first"));
    auto call = function_.Next();
    EXPECT_EQ(Purge(Order(kind, Request("a", "t"))).flights, 1u);
    call->Answer(Response("first", "before", 60).SerializeAsString());
    ASSERT_TRUE(first->Wait().ok());
    EXPECT_EQ(first->response().results(0).message(), "before");
    EXPECT_EQ(first->response().meta().ttl().seconds(), 60);
    EXPECT_EQ(first->cache_status(), "fncache; fwd=miss") << "not stored";
    auto miss = Fill(Request("a", "t"), Response("t", "after", 60));
    EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss; stored");
    Purge(Order(kind, Request("a", "t")));
  }
  EXPECT_TRUE(Eventually([&] { return KeyBans() == 0; }));
}

TEST_F(CallPurgeTest, CallersOfLaterDoNotJoinAndThoseInsideAreReleased) {
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    auto first = Send(Request("a", "first"));
    auto call = function_.Next();
    auto joined = Send(Request("a", "joined"));
    WaitForCallers(2);
    Purge(Order(kind, Request("a", "t")));
    auto later = Send(Request("a", "later"));
    auto later_call = function_.Next();
    EXPECT_EQ(later_call->request().meta().tag(), "later");
    auto last = Send(Request("a", "last"));
    WaitForCallers(4);
    EXPECT_EQ(proxy_->flights().flights, 2u);
    call->Answer(Response("first", "before", 60).SerializeAsString());
    ASSERT_TRUE(first->Wait().ok());
    EXPECT_EQ(first->response().results(0).message(), "before");
    // The one that joined before is let go to ask for itself.
    auto own_call = function_.Next();
    EXPECT_EQ(own_call->request().meta().tag(), "joined");
    own_call->Answer(Response("joined", "own", 60).SerializeAsString());
    ASSERT_TRUE(joined->Wait().ok());
    EXPECT_EQ(joined->response().results(0).message(), "own");
    EXPECT_EQ(joined->cache_status(), "fncache; fwd=miss; stored");
    later_call->Answer(Response("later", "after", 60).SerializeAsString());
    ASSERT_TRUE(later->Wait().ok());
    ASSERT_TRUE(last->Wait().ok());
    EXPECT_EQ(later->response().results(0).message(), "after");
    // Whichever of the two began later, and both did after the purge.
    EXPECT_NE(last->response().results(0).message(), "before");
    EXPECT_EQ(last->cache_status().find("hit"), std::string::npos);
    Purge(Order(kind, Request("a", "t")));
  }
  EXPECT_TRUE(Eventually([&] { return KeyBans() == 0; }));
}

TEST_F(CallPurgeTest, CallsWithoutAFlightAreNotStoredEither) {
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    auto caller = Send(Request("a", "t"), {{"cache-control", "no-cache"}});
    auto call = function_.Next();
    EXPECT_EQ(Purge(Order(kind, Request("a", "t"))).flights, 0u);
    if (kind == Kind::kKey) {
      EXPECT_EQ(KeyBans(), 1u) << "as long as it runs";
    }
    call->Answer(Response("t", "before", 60).SerializeAsString());
    ASSERT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=request");
    auto miss = Fill(Request("a", "t"), Response("t", "after", 60));
    EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss; stored");
    Purge(Order(kind, Request("a", "t")));
  }
  EXPECT_TRUE(Eventually([&] { return KeyBans() == 0; }));
}

TEST_F(CallPurgeTest, AKeysBanOutlivesACallerThatLeft) {
  auto caller = Send(Request("a", "t"));
  auto call = function_.Next();
  auto joined = Send(Request("a", "joined"));
  WaitForCallers(2);
  Purge(Order(Kind::kKey, Request("a", "t")));
  caller->context.TryCancel();
  caller->Wait();
  EXPECT_EQ(KeyBans(), 1u);
  call->Answer(Response("t", "before", 60).SerializeAsString());
  function_.Next()->Answer(Response("t", "own", 60).SerializeAsString());
  ASSERT_TRUE(joined->Wait().ok());
  EXPECT_EQ(joined->response().results(0).message(), "own");
  EXPECT_TRUE(Eventually([&] { return KeyBans() == 0; }));
}

TEST_F(CallPurgeTest, ALookUpBelowThatIsUnderWayFindsNothing) {
  has_lower_ = true;
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    auto caller = Send(Request("a", "tag"));
    auto lookup = store_->NextLookup();
    cache::store::EntryInfo info;
    info.started = info.arrived = Proxy().clock.Now();
    info.lifetime = absl::Seconds(60);
    info.ttl = absl::Seconds(60);
    auto without_meta = Response("", "below", -1);
    without_meta.clear_meta();
    Purge(Order(kind, Request("a", "t")));
    lookup({cache::store::Entry::Create(info, "",
                                        {without_meta.SerializeAsString()}),
            false});
    function_.Next()->Answer(Response("tag", "after", 60).SerializeAsString());
    ASSERT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=miss; stored");
    EXPECT_EQ(caller->response().results(0).message(), "after");
    Purge(Order(kind, Request("a", "t")));
  }
  EXPECT_TRUE(Eventually([&] { return KeyBans() == 0; }));
}

// Callers that found the entry past its time hold it, to answer from it if the
// function fails. After a purge they do not, whichever way their call goes on.
TEST_F(CallPurgeTest, WhoHoldsAnOldAnswerDoesNotServeItAfterAPurge) {
  enum class Ways { kJoined, kLedLater, kReleased };
  options_.policy.stale_if_error = absl::Minutes(10);
  for (const Kind kind : kKinds) {
    for (const Ways way : {Ways::kJoined, Ways::kLedLater, Ways::kReleased}) {
      SCOPED_TRACE(static_cast<int>(kind) * 10 + static_cast<int>(way));
      Fill(Request("a", "t"), Response("t", "old", 60),
           {{"cache-control", "no-cache"}});
      Proxy().clock.Advance(absl::Seconds(55));
      const auto patience = way == Ways::kLedLater ? absl::Milliseconds(400)
                                                   : absl::InfiniteDuration();
      auto first = Send(Request("a", "t"), {}, patience);
      auto call = function_.Next();
      auto second = Send(Request("a", "t"));
      WaitForCallers(2);
      Purge(Order(kind, Request("a", "t")));
      const grpc::Status broken(grpc::StatusCode::UNAVAILABLE, "broken");
      switch (way) {
        case Ways::kJoined:
          call->Fail(broken);
          // It cannot be answered with what it holds, so it asks for itself.
          function_.Next()->Fail(broken);
          break;
        case Ways::kLedLater:
          EXPECT_FALSE(first->Wait().ok());
          function_.Next()->Fail(broken);
          break;
        case Ways::kReleased:
          call->Answer(Response("t", "zero", 0).SerializeAsString());
          function_.Next()->Fail(broken);
          break;
      }
      EXPECT_EQ(second->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
      first->Wait();
      EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
      EXPECT_TRUE(Eventually([&] { return KeyBans() == 0; }));
      Proxy().clock.Advance(absl::Seconds(2));
    }
  }
}

TEST_F(CallPurgeTest, OfSeveralGenerationsThePurgedOnesMissesSayIt) {
  explains_ = true;
  Fill(Request("a", "t"), Response("t", "x", 60));
  settings::FunctionOptions next = options_;
  next.generation = "r2";
  Proxy().handler().Replace(next);
  Fill(Request("a", "t"), Response("t", "x", 60));
  PurgeOrder order = Order(Kind::kGeneration, Request("a", "t"));
  order.generation = "r2";
  Purge(order);
  EXPECT_EQ(Fill(Request("a", "t"), Response("t", "x", 60))->cache_status(),
            "fncache; fwd=miss; stored; detail=purged");
  // The one before, which is not in force.
  Purge(Order(Kind::kGeneration, Request("a", "t")));
  auto hit = Send(Request("a", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=53");
  Proxy().handler().Replace(options_);
  EXPECT_EQ(Fill(Request("a", "t"), Response("t", "x", 60))->cache_status(),
            "fncache; fwd=miss; stored; detail=purged");
}

TEST_F(CallPurgeTest, TheNextMissSaysThatItWasPurged) {
  explains_ = true;
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    auto stored = Send(Request("a", "t"));
    function_.Next()->Answer(Response("t", "x", 60).SerializeAsString());
    ASSERT_TRUE(stored->Wait().ok());
    Purge(Order(kind, Request("a", "t")));
    auto running = Send(Request("a", "t"));
    auto call = function_.Next();
    Purge(Order(kind, Request("a", "t")));
    call->Answer(Response("t", "x", 60).SerializeAsString());
    ASSERT_TRUE(running->Wait().ok());
    EXPECT_EQ(running->cache_status(), "fncache; fwd=miss; detail=purged");
    auto next = Fill(Request("a", "t"), Response("t", "x", 60));
    EXPECT_EQ(next->cache_status(), "fncache; fwd=miss; stored; detail=purged")
        << "what was under way was purged, too";
    Purge(Order(kind, Request("a", "t")));
  }
  EXPECT_EQ(
      Counted()
          .missed[telemetry::MissReasonIndex(insight::trace::Reason::kPurged)],
      11u);
}

TEST_F(CallPurgeTest, CallersOfLaterAreToldSoWhileAnEarlierCallIsUnderWay) {
  explains_ = true;
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    auto earlier = Send(Request("a", "t"));
    auto first = function_.Next();
    Purge(Order(kind, Request("a", "t")));
    auto later = Send(Request("a", "t"));
    auto second = function_.Next();
    first->Answer(Response("t", "x", 60).SerializeAsString());
    ASSERT_TRUE(earlier->Wait().ok());
    second->Answer(Response("t", "x", 60).SerializeAsString());
    ASSERT_TRUE(later->Wait().ok());
    EXPECT_EQ(later->cache_status(),
              "fncache; fwd=miss; stored; detail=purged");
    Purge(Order(kind, Request("a", "t")));
  }
}

// ---- Soft purges

class SoftPurgeTest : public CallPurgeTest {
 protected:
  static constexpr absl::Duration kWindow = absl::Minutes(10);

  PurgeOrder Soft(Kind kind) {
    PurgeOrder order = Order(kind, Request("a", "t"));
    order.soft = true;
    return order;
  }
  void FillAnew() {
    auto filled = Fill(Request("a", "t"), Response("t", "before", 3600),
                       {{"cache-control", "no-cache"}});
    ASSERT_EQ(filled->response().results(0).message(), "before");
    auto hit = Send(Request("a", "t"));
    ASSERT_TRUE(hit->Wait().ok());
    ASSERT_EQ(hit->cache_status(), "fncache; hit; ttl=3240");
  }
  // `seconds` since the purge, rounded up.
  void ExpectOld(const CallerPtr& caller, int seconds) {
    ASSERT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->cache_status(),
              absl::StrCat("fncache; hit; ttl=-", seconds));
    EXPECT_EQ(caller->response().results(0).message(), "before");
  }
  void ExpectNew() {
    auto hit = Send(Request("a", "t"));
    ASSERT_TRUE(hit->Wait().ok());
    EXPECT_THAT(hit->cache_status(),
                ::testing::StartsWith("fncache; hit; ttl=3"));
    EXPECT_EQ(hit->response().results(0).message(), "after");
  }
};

TEST_F(SoftPurgeTest, ItIsServedStaleWhileOneRefreshIsUnderWay) {
  options_.policy.stale_while_revalidate = kWindow;
  uint64_t refreshes = 0;
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    FillAnew();
    const PurgeResult result = Purge(Soft(kind));
    EXPECT_EQ(result.removed, 0u);
    const int asked = function_.calls();
    ExpectOld(Send(Request("a", "t")), 1);
    auto refresh = function_.Next();
    ExpectOld(Send(Request("a", "t")), 1);
    EXPECT_EQ(function_.calls(), asked + 1) << "one refresh for the key";
    refresh->Answer(Response("t", "after", 3600).SerializeAsString());
    EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
    ExpectNew();
    EXPECT_EQ(Counted().refreshes, ++refreshes);
  }
}

TEST_F(SoftPurgeTest, ItsWindowCountsFromThePurge) {
  options_.policy.stale_while_revalidate = kWindow;
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    FillAnew();
    Purge(Soft(kind));
    Proxy().clock.Advance(kWindow - absl::Seconds(1));
    ExpectOld(Send(Request("a", "t")), 600);
    function_.Next()->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, ""));
    EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
    Proxy().clock.Advance(absl::Seconds(2));
    auto miss = Fill(Request("a", "t"), Response("t", "after", 3600));
    EXPECT_EQ(miss->cache_status(), "fncache; fwd=stale; stored");
    EXPECT_EQ(miss->response().results(0).message(), "after");
    ExpectNew();
  }
}

TEST_F(SoftPurgeTest, WithStaleIfErrorTheFunctionIsAskedFirst) {
  options_.policy.stale_if_error = kWindow;
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    FillAnew();
    Purge(Soft(kind));
    auto over = Send(Request("a", "t"));
    function_.Next()->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, ""));
    ExpectOld(over, 1);
    Proxy().clock.Advance(absl::Seconds(2));
    auto miss = Fill(Request("a", "t"), Response("t", "after", 3600));
    EXPECT_EQ(miss->cache_status(), "fncache; fwd=stale; stored");
    ExpectNew();
  }
}

// The record keeps the ban for as long as the entries that the other replica
// knew. This one has an entry in memory that is kept for longer.
TEST_F(SoftPurgeTest, OneThatIsLearnedLastsAsLongAsTheEntryInMemory) {
  options_.policy.stale_while_revalidate = kWindow;
  auto filled = Fill(Request("a", "t"), Response("t", "before", 3 * 3600));
  ASSERT_EQ(filled->cache_status(), "fncache; fwd=miss; stored");
  cache::store::Bans& bans = store_->bans();
  bans.Share([] { return absl::OkStatus(); }, absl::Hours(1));
  SimulatedClock& clock = Proxy().clock;
  clock.Advance(absl::Milliseconds(1));
  cache::store::StoredBans record;
  cache::store::StoredKeyBan ban;
  ban.times.stale = absl::ToUnixNanos(clock.Now());
  ban.until = absl::ToUnixNanos(clock.Now() + absl::Hours(1));
  record.keys[KeyOf(Request("a", ""))] = ban;
  record.keys[cache::key::Key{1, 2}] = ban;  // nothing of this key is here
  const uint64_t changes = bans.changes();
  Operator().OnLearned(bans.Learn(record, clock.Now()));
  EXPECT_GT(bans.changes(), changes) << "the record gets the later end";
  clock.Advance(absl::Hours(1));
  bans.Learn({}, clock.Now());
  ASSERT_EQ(KeyBans(), 1u);
  auto miss = Fill(Request("a", "t"), Response("t", "after", 3600));
  EXPECT_EQ(miss->cache_status(), "fncache; fwd=stale; stored");
  clock.Advance(absl::Hours(3));
  bans.Learn({}, clock.Now());
  EXPECT_EQ(KeyBans(), 0u);
}

TEST_F(SoftPurgeTest, AHardOneAfterItLeavesNothingToServe) {
  options_.policy.stale_while_revalidate = kWindow;
  options_.policy.stale_if_error = kWindow;
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    FillAnew();
    Purge(Soft(kind));
    Purge(Order(kind, Request("a", "t")));
    auto miss = Fill(Request("a", "t"), Response("t", "after", 3600));
    EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss; stored");
    ExpectNew();
  }
}

// The order is refused, and the entry as fresh as before.
TEST_F(SoftPurgeTest, WithoutAWindowItIsRefused) {
  FillAnew();
  for (const Kind kind : kKinds) {
    EXPECT_TRUE(
        absl::IsFailedPrecondition(Operator().Purge(Soft(kind)).status()));
  }
  auto hit = Send(Request("a", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=3240");
}

// Nor does one of before serve anything, once the windows are closed: the entry
// is there, and is not fresh any more.
TEST_F(SoftPurgeTest, WithoutAWindowWhatWasMadeStaleIsAMiss) {
  Fill(Request("a", "t"), Response("t", "before", 60));
  Proxy().clock.Advance(absl::Seconds(1));
  store_->bans().Ban(Kind::kFunction, "function", "", Proxy().clock.Now(),
                     /*soft=*/true);
  Proxy().clock.Advance(absl::Seconds(1));
  auto stale = Fill(Request("a", "t"), Response("t", "after", 60));
  EXPECT_EQ(stale->cache_status(), "fncache; fwd=stale; stored");
  auto hit = Send(Request("a", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().results(0).message(), "after");
}

// The refresh started before the purge, so its answer is not stored. But it
// does not end the old answer either, which a soft purge leaves to be served.
TEST_F(CallPurgeTest, ASoftPurgeDuringARefreshLeavesTheOldAnswer) {
  options_.policy.stale_while_revalidate = absl::Minutes(10);
  Fill(Request("a", "t"), Response("t", "before", 60));
  Proxy().clock.Advance(absl::Seconds(55));
  const auto expect_stale = [&] {
    auto stale = Send(Request("a", "t"), {}, absl::Seconds(10));
    ASSERT_TRUE(stale->Wait().ok());
    EXPECT_THAT(stale->cache_status(), HasSubstr("hit; ttl=-"));
    EXPECT_EQ(stale->response().results(0).message(), "before");
  };
  expect_stale();
  auto refresh = function_.Next();
  PurgeOrder order = Order(Kind::kKey, Request("a", "t"));
  order.soft = true;
  EXPECT_EQ(Purge(order).flights, 1u);
  refresh->Answer(Response("t", "meanwhile", 60).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return proxy_->flights().empty(); }));
  expect_stale();
  // The function did not fail, so it is asked again at once.
  function_.Next()->Answer(Response("t", "after", 60).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return proxy_->flights().empty(); }));
  auto hit = Send(Request("a", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().results(0).message(), "after");
  EXPECT_TRUE(Eventually([&] {
    return Proxy().instruments.function(0).ReadGauges().refreshes == 0;
  }));
  EXPECT_EQ(Counted().refreshes, 2u);
  EXPECT_EQ(Counted().refreshes_failed, 0u);
}

TEST_F(CallPurgeTest, TooManyGenerationsAreTheFunction) {
  Fill(Request("a", "t"), Response("t", "a", 60));
  const absl::Time before = Proxy().clock.Now() - absl::Seconds(1);
  for (size_t n = 0; n < cache::store::Bans::kMostGenerations; ++n) {
    store_->bans().Ban(Kind::kGeneration, "function", std::to_string(n), before,
                       /*soft=*/false);
  }
  PurgeOrder order = Order(Kind::kGeneration, "");
  order.generation = "0";
  EXPECT_THAT(Purge(order).widened_to, IsEmpty()) << "it is one of them";
  order.generation = "r1";
  EXPECT_THAT(Purge(order).widened_to, ElementsAre("function function"));
  auto miss = Fill(Request("a", "t"), Response("t", "after", 60));
  EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss; stored");
}

// An entry that earlier settings, or an earlier call, let in.
TEST_F(CallPurgeTest, ALookUpSaysWhenTheSettingsForbidAnEntry) {
  options_.policy.store_secrets = cache::StoreSecrets::kNone;
  const auto found = [this] {
    LookUpOrder order;
    order.request = Request("a", "t");
    return Operator().LookUp(order)->at(0);
  };
  Fill(Request("a", "t"), Response("t", "a", 60));
  EXPECT_TRUE(found().served);
  cache::store::EntryInfo info;
  info.started = info.arrived = Proxy().clock.Now() + absl::Milliseconds(1);
  info.lifetime = absl::Minutes(1);
  info.secrets = true;
  store_->Fill(KeyOf(Request("a", "t")),
               cache::store::Entry::Create(info, "", {"body"}),
               /*lower=*/false, info.arrived);
  EXPECT_FALSE(found().served);
  EXPECT_EQ(found().served_why,
            "it holds connection details, and store_secrets is none");
}

TEST_F(CallPurgeTest, TooManyKeysAtOnceAreTheFunction) {
  Fill(Request("a", "t"), Response("t", "a", 60));
  Fill(Request("b", "t"), Response("t", "b", 60));
  auto running = Send(Request("c", "t"));
  auto call = function_.Next();
  PurgeOrder order;
  for (uint64_t n = 0; n < cache::store::Bans::kMostKeys; ++n) {
    order.key = {n, n};
    ASSERT_THAT(Operator().Purge(order)->widened_to, IsEmpty());
  }
  auto hit = Send(Request("b", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().results(0).message(), "b");
  EXPECT_THAT(Purge(Order(Kind::kKey, Request("a", "t"))).widened_to,
              ElementsAre("everything"));
  auto miss = Fill(Request("b", "t"), Response("t", "after", 60));
  EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss; stored");
  call->Answer(Response("t", "c", 60).SerializeAsString());
  ASSERT_TRUE(running->Wait().ok());
  EXPECT_EQ(running->cache_status(), "fncache; fwd=miss");
  EXPECT_TRUE(Eventually([&] { return KeyBans() == 0; }));
}

}  // namespace
}  // namespace fncache::proxy::serving
