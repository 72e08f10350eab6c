// SPDX-License-Identifier: Apache-2.0
// RunFunction end to end in one process: calls whose entry is looked up in the
// lower tier, and calls that meet another store.
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

class CallLowerTest : public CallTest {};

TEST_F(CallLowerTest, ALeaderLooksInMemoryOnceMore) {
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

TEST_F(CallLowerTest, AnEntryBelowIsAHit) {
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

TEST_F(CallLowerTest, AnExpiredEntryBelowIsStale) {
  has_lower_ = true;
  auto caller = Send(Request("a", "tag"));
  store_->NextLookup()({nullptr, true});
  function_.Next()->Answer(Response("tag", "x", 60).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=stale; stored");
  EXPECT_EQ(store_->fills_below, 1);
}

TEST_F(CallLowerTest, ACallerMayLeaveWhileItsEntryIsLookedUpBelow) {
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

// --------------------------------------------- A tier that others fill, too

class CallSharedTest : public CallTest {
 protected:
  CallSharedTest() { has_lower_ = true; }
  // Fills the key, and passes its time.
  absl::Time FillAndPass() {
    Proxy();
    store_->younger_below = true;
    auto caller = Send(Request("a", "t"));
    store_->NextLookup()({});
    function_.Next()->Answer(Response("t", "old", 60).SerializeAsString());
    EXPECT_TRUE(caller->Wait().ok());
    const absl::Time started = Proxy().clock.Now();
    Proxy().clock.Advance(absl::Seconds(55));
    return started;
  }
  cache::store::EntryRef Younger() {
    cache::store::EntryInfo info;
    info.started = info.arrived = Proxy().clock.Now() - absl::Seconds(10);
    info.lifetime = info.ttl.emplace(absl::Seconds(60));
    auto response = Response("", "younger", -1);
    response.clear_meta();
    return cache::store::Entry::Create(info, "",
                                       {response.SerializeAsString()});
  }
};

TEST_F(CallSharedTest, AYoungerEntryBelowAnswersForOnePastItsTime) {
  const absl::Time started = FillAndPass();
  auto caller = Send(Request("a", "t"));
  store_->NextLookup()({Younger(), false});
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->cache_status(), "fncache; hit; ttl=44");
  EXPECT_EQ(caller->response().results(0).message(), "younger");
  EXPECT_THAT(store_->thans(),
              ::testing::ElementsAre(absl::InfinitePast(), started));
}

TEST_F(CallSharedTest, WithoutAYoungerEntryBelowTheFunctionIsCalled) {
  FillAndPass();
  auto caller = Send(Request("a", "t"));
  store_->NextLookup()({});
  function_.Next()->Answer(Response("t", "new", 60).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=stale; stored");
}

TEST_F(CallSharedTest, WhileTheTierIsDownNothingIsLookedUp) {
  FillAndPass();
  store_->may_find_below = false;
  auto caller = Send(Request("a", "t"));
  function_.Next()->Answer(Response("t", "new", 60).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(store_->thans().size(), 1);
}

TEST_F(CallSharedTest, AnEntryPastItsTimeOnDiskIsNotLookedUp) {
  FillAndPass();
  store_->younger_below = false;
  auto caller = Send(Request("a", "t"));
  function_.Next()->Answer(Response("t", "new", 60).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(store_->thans().size(), 1);
}

class RefreshSharedTest : public CallSharedTest {
 protected:
  RefreshSharedTest() {
    options_.policy.stale_while_revalidate = absl::Minutes(5);
  }
};

TEST_F(RefreshSharedTest, ARefreshTakesTheYoungerEntryBelow) {
  const absl::Time started = FillAndPass();
  auto caller = Send(Request("a", "t"));
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->response().results(0).message(), "old");
  auto lookup = store_->NextLookup();
  EXPECT_EQ(store_->thans().back(), started);
  // A call past the cache does not wait for it.
  auto joined = Send(Request("a", "joined"), {{"cache-control", "no-cache"}});
  function_.Next()->Answer(Response("joined", "own", 60).SerializeAsString());
  ASSERT_TRUE(joined->Wait().ok());
  lookup({Younger(), false});
  EXPECT_TRUE(Eventually([&] { return proxy_->flights().empty(); }));
  EXPECT_EQ(function_.calls(), 2);
  EXPECT_EQ(Counted().refreshes, 0u);
}

TEST_F(RefreshSharedTest, WithoutOneItCallsTheFunction) {
  FillAndPass();
  auto caller = Send(Request("a", "t"));
  ASSERT_TRUE(caller->Wait().ok());
  store_->NextLookup()({});
  function_.Next()->Answer(Response("t", "new", 60).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return proxy_->flights().empty(); }));
  EXPECT_EQ(Counted().refreshes, 1u);
}

// The disk tier opens late: the store has another seed from then on.
TEST_F(CallLowerTest, ACallKeepsTheKeyThatItHadBeforeTheDiskTierOpened) {
  Proxy();
  auto early = Send(Request("a", "early"));
  auto flight = function_.Next();
  store_->OpenLate();

  // Another key, so there is no flight to join.
  auto late = Fill(Request("a", "late"), Response("late", "second", 60));
  EXPECT_EQ(late->cache_status(), "fncache; fwd=miss; stored");
  EXPECT_EQ(store_->fills, 1);

  flight->Answer(Response("early", "first", 60).SerializeAsString());
  ASSERT_TRUE(early->Wait().ok());
  EXPECT_EQ(early->response().results(0).message(), "first");
  EXPECT_EQ(store_->fills, 2);

  auto hit = Send(Request("a", "hit"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=54");
  EXPECT_EQ(hit->response().results(0).message(), "second");
}

}  // namespace
}  // namespace fncache::proxy::serving
