// SPDX-License-Identifier: Apache-2.0
// DESIGN's "Flights", sentence by sentence, against FlightTable alone.
#include "proxy/serving/flight.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/telemetry/instruments.h"

namespace fncache::proxy::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const cache::key::Key kKey{1, 2};

class FakeCall : public FlightCall {
 public:
  void Cancel() override { ++cancelled; }
  void OnAbandoned(uint64_t abandonment) override {
    ++abandoned;
    last = abandonment;
  }
  int cancelled = 0;
  int abandoned = 0;
  uint64_t last = 0;
};

class Caller : public FlightCaller {
 public:
  explicit Caller(const cache::key::Key& key = kKey,
                  absl::Time deadline = absl::InfiniteFuture(),
                  bool has_old = false)
      : FlightCaller(key, deadline, /*stale=*/has_old, has_old) {}
  void OnSignal(FlightSignal signal) override {
    verdicts.push_back(signal.verdict);
    last = std::move(signal);
  }
  std::vector<Verdict> verdicts;
  FlightSignal last;
};

cache::store::EntryRef MakeEntry() {
  cache::store::EntryInfo info;
  info.started = kNow;
  info.arrived = kNow;
  info.lifetime = absl::Minutes(1);
  return cache::store::Entry::Create(info, "", {"body"});
}

class FlightTest : public ::testing::Test {
 protected:
  explicit FlightTest(int max_released = 2)
      : table_({max_released, absl::Seconds(1)}, instruments_.function(0)) {}
  ~FlightTest() override {
    for (const auto& caller : all_) table_.Leave(caller.get());
    EXPECT_TRUE(table_.GetStats().empty());
  }

  std::shared_ptr<Caller> Make(const cache::key::Key& key = kKey,
                               absl::Time deadline = absl::InfiniteFuture()) {
    auto caller = std::make_shared<Caller>(key, deadline);
    all_.push_back(caller);
    return caller;
  }
  std::shared_ptr<Caller> Join() {
    auto caller = Make();
    EXPECT_EQ(table_.Enter(caller, kNow), Verdict::kWait);
    return caller;
  }
  // A leader whose upstream call runs.
  std::shared_ptr<Caller> Open(absl::Time deadline = absl::InfiniteFuture()) {
    auto leader = Make(kKey, deadline);
    EXPECT_EQ(table_.Enter(leader, kNow), Verdict::kLead);
    Launch(leader);
    return leader;
  }
  void Launch(const std::shared_ptr<Caller>& leader, bool outlives = false) {
    call_ = std::make_shared<FakeCall>();
    flight_ = table_.Launched(leader.get(), call_, outlives);
    ASSERT_NE(flight_, nullptr);
  }

  const telemetry::Instruments instruments_{{"function"}};
  FlightTable table_;
  std::vector<std::shared_ptr<Caller>> all_;
  std::shared_ptr<FakeCall> call_;
  std::shared_ptr<Flight> flight_;
};

TEST_F(FlightTest, TheFirstMissOpensAFlightAndLaterOnesJoinIt) {
  Open(kNow + absl::Seconds(1));
  auto shorter = Make(kKey, kNow + absl::Milliseconds(1));
  auto longer = Make(kKey, kNow + absl::Hours(1));
  EXPECT_EQ(table_.Enter(shorter, kNow), Verdict::kWait);
  EXPECT_EQ(table_.Enter(longer, kNow), Verdict::kWait);
  EXPECT_EQ(table_.GetStats().flights, 1u);
  EXPECT_EQ(table_.GetStats().callers, 3u);
}

TEST_F(FlightTest, OtherKeysHaveFlightsOfTheirOwn) {
  Open();
  EXPECT_EQ(table_.Enter(Make(cache::key::Key{1, 3}), kNow), Verdict::kLead);
  EXPECT_EQ(table_.Enter(Make(cache::key::Key{2, 2}), kNow), Verdict::kLead);
}

TEST_F(FlightTest, AnAcceptedAnswerIsSharedWithAllWhoJoined) {
  auto leader = Open();
  auto a = Join();
  auto b = Join();
  const cache::store::EntryRef entry = MakeEntry();
  table_.Finish(flight_, FlightEnd::kShared, entry, kNow);
  for (const auto& caller : {a, b}) {
    EXPECT_THAT(caller->verdicts, ElementsAre(Verdict::kAnswer));
    EXPECT_EQ(caller->last.entry.get(), entry.get());
    EXPECT_FALSE(caller->last.found);
  }
  // The leader has the answer already.
  EXPECT_THAT(leader->verdicts, IsEmpty());
  // The next miss flies anew.
  EXPECT_EQ(table_.Enter(Make(), kNow), Verdict::kLead);
}

TEST_F(FlightTest, AnEntryThatTheLeaderFindsInMemoryIsShared) {
  auto leader = Make();
  ASSERT_EQ(table_.Enter(leader, kNow), Verdict::kLead);
  auto joined = Join();
  table_.FinishFound(leader.get(), MakeEntry(), kNow);
  EXPECT_THAT(joined->verdicts, ElementsAre(Verdict::kAnswer));
  EXPECT_TRUE(joined->last.found);
  EXPECT_TRUE(table_.GetStats().empty());
}

TEST_F(FlightTest, AnyOtherOutcomeReleasesTheRest) {
  auto leader = Open();
  auto a = Join();
  table_.Finish(flight_, FlightEnd::kAlone, nullptr, kNow);
  EXPECT_THAT(leader->verdicts, IsEmpty());
  EXPECT_THAT(a->verdicts, ElementsAre(Verdict::kRun));
  EXPECT_FALSE(a->last.queued);
}

TEST_F(FlightTest, MissesOfThatKeyWithinTheNextSecondAreNotCollapsed) {
  Open();
  table_.Finish(flight_, FlightEnd::kAlone, nullptr, kNow);
  auto a = Make();
  EXPECT_EQ(table_.Enter(a, kNow), Verdict::kRun);
  EXPECT_EQ(table_.Enter(Make(), kNow + absl::Milliseconds(999)),
            Verdict::kRun);
  // Nor does one that ended meanwhile change that.
  table_.Leave(a.get());
  EXPECT_EQ(table_.Enter(Make(), kNow + absl::Milliseconds(999)),
            Verdict::kRun);
  EXPECT_EQ(table_.Enter(Make(cache::key::Key{1, 3}), kNow), Verdict::kLead);
  EXPECT_EQ(table_.Enter(Make(), kNow + absl::Seconds(1)), Verdict::kLead);
  EXPECT_EQ(table_.GetStats().uncollapsed, 0u);
}

TEST_F(FlightTest, AtMostMaxReleasedRunAndMoreWaitInOrderOfArrival) {
  Open();
  auto a = Join();
  auto b = Join();
  auto c = Join();
  auto d = Join();
  table_.Finish(flight_, FlightEnd::kAlone, nullptr, kNow);
  auto e = Make();
  EXPECT_EQ(table_.Enter(e, kNow), Verdict::kWait);
  EXPECT_THAT(a->verdicts, ElementsAre(Verdict::kRun));
  EXPECT_THAT(b->verdicts, ElementsAre(Verdict::kRun));
  EXPECT_THAT(c->verdicts, IsEmpty());
  EXPECT_EQ(table_.GetStats().running, 2);
  EXPECT_EQ(table_.GetStats().queued, 3);
  table_.Leave(b.get());
  EXPECT_THAT(c->verdicts, ElementsAre(Verdict::kRun));
  EXPECT_TRUE(c->last.queued);
  EXPECT_THAT(d->verdicts, IsEmpty());
  // One that leaves the queue frees no capacity.
  table_.Leave(d.get());
  EXPECT_THAT(e->verdicts, IsEmpty());
  table_.Leave(a.get());
  EXPECT_THAT(d->verdicts, IsEmpty());
  EXPECT_THAT(e->verdicts, ElementsAre(Verdict::kRun));
}

TEST_F(FlightTest, MaxReleasedIsOfTheFunctionNotOfAKey) {
  Open();
  auto a = Join();
  auto b = Join();
  table_.Finish(flight_, FlightEnd::kAlone, nullptr, kNow);
  auto other = Make(cache::key::Key{5, 5});
  ASSERT_EQ(table_.Enter(other, kNow), Verdict::kLead);
  auto waiting = Make(cache::key::Key{5, 5});
  ASSERT_EQ(table_.Enter(waiting, kNow), Verdict::kWait);
  Launch(other);
  table_.Finish(flight_, FlightEnd::kAlone, nullptr, kNow);
  EXPECT_THAT(waiting->verdicts, IsEmpty());
  table_.Leave(a.get());
  EXPECT_THAT(waiting->verdicts, ElementsAre(Verdict::kRun));
}

TEST_F(FlightTest, AnEarlierArrivalIsReleasedBeforeALaterOneThatQueuedFirst) {
  // The key's flight lasts longer, but its caller arrived earlier.
  Open();
  auto early = Join();
  const auto slow = flight_;
  auto other = Make(cache::key::Key{5, 5});
  ASSERT_EQ(table_.Enter(other, kNow), Verdict::kLead);
  std::vector<std::shared_ptr<Caller>> later;
  for (int i = 0; i < 3; ++i) {
    later.push_back(Make(cache::key::Key{5, 5}));
    table_.Enter(later.back(), kNow);
  }
  Launch(other);
  table_.Finish(flight_, FlightEnd::kAlone, nullptr, kNow);
  EXPECT_THAT(later[2]->verdicts, IsEmpty());
  table_.Finish(slow, FlightEnd::kAlone, nullptr, kNow);
  EXPECT_THAT(early->verdicts, IsEmpty());
  table_.Leave(later[0].get());
  EXPECT_THAT(early->verdicts, ElementsAre(Verdict::kRun));
  EXPECT_THAT(later[2]->verdicts, IsEmpty());
}

TEST_F(FlightTest, AJoinedCallerMayLeaveAtAnyTime) {
  Open();
  auto a = Join();
  auto b = Join();
  table_.Leave(a.get());
  table_.Leave(a.get());
  EXPECT_EQ(call_->cancelled, 0);
  table_.Finish(flight_, FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(a->verdicts, IsEmpty());
  EXPECT_THAT(b->verdicts, ElementsAre(Verdict::kAnswer));
}

TEST_F(FlightTest, IfTheFirstCallerLeavesTheCallGoesOnWhileAnyoneWaits) {
  auto leader = Open();
  auto a = Join();
  table_.Leave(leader.get());
  EXPECT_EQ(call_->cancelled, 0);
  auto b = Join();  // still joined
  table_.Finish(flight_, FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(leader->verdicts, IsEmpty());
  EXPECT_THAT(a->verdicts, ElementsAre(Verdict::kAnswer));
  EXPECT_THAT(b->verdicts, ElementsAre(Verdict::kAnswer));
}

TEST_F(FlightTest, AnotherOutcomeAfterTheFirstCallerLeftGoesToNobody) {
  auto leader = Open();
  auto a = Join();
  table_.Leave(leader.get());
  table_.Finish(flight_, FlightEnd::kAlone, nullptr, kNow);
  EXPECT_THAT(leader->verdicts, IsEmpty());
  EXPECT_THAT(a->verdicts, ElementsAre(Verdict::kRun));
}

TEST_F(FlightTest, IfTheFirstCallersDeadlineEndsTheCallOneOpensTheNextFlight) {
  auto leader = Open(kNow + absl::Seconds(1));
  auto a = Make(kKey, kNow + absl::Seconds(2));
  auto b = Make(kKey, kNow + absl::Seconds(3));
  auto c = Make(kKey, kNow + absl::Seconds(2));
  for (const auto& caller : {a, b, c}) table_.Enter(caller, kNow);
  const auto first = flight_;
  table_.Finish(first, FlightEnd::kDeadline, nullptr, kNow);
  EXPECT_THAT(leader->verdicts, IsEmpty());
  EXPECT_THAT(b->verdicts, ElementsAre(Verdict::kLead));
  EXPECT_THAT(a->verdicts, IsEmpty());
  EXPECT_THAT(c->verdicts, IsEmpty());
  // New misses join it too, whether its call has started or not.
  auto d = Join();
  Launch(b);
  // Late news of the first flight means nothing.
  table_.Finish(first, FlightEnd::kAlone, nullptr, kNow);
  table_.Leave(leader.get());
  table_.Finish(flight_, FlightEnd::kShared, MakeEntry(), kNow);
  for (const auto& caller : {a, c, d}) {
    EXPECT_THAT(caller->verdicts, ElementsAre(Verdict::kAnswer));
  }
  EXPECT_THAT(b->verdicts, ElementsAre(Verdict::kLead));
}

TEST_F(FlightTest, ADeadlineThatEndsACallForWhichNobodyElseWaitsEndsTheFlight) {
  Open(kNow + absl::Seconds(1));
  table_.Finish(flight_, FlightEnd::kDeadline, nullptr, kNow);
  EXPECT_TRUE(table_.GetStats().empty());
  // That was not the function's doing: the next miss is collapsed as ever.
  EXPECT_EQ(table_.Enter(Make(), kNow), Verdict::kLead);
}

TEST_F(FlightTest, AnElectedLeaderThatLeavesBeforeItCalledIsReplaced) {
  Open(kNow + absl::Seconds(1));
  auto a = Join();
  auto b = Join();
  table_.Finish(flight_, FlightEnd::kDeadline, nullptr, kNow);
  EXPECT_THAT(a->verdicts, ElementsAre(Verdict::kLead));
  table_.Leave(a.get());
  EXPECT_THAT(b->verdicts, ElementsAre(Verdict::kLead));
  EXPECT_EQ(table_.Launched(a.get(), std::make_shared<FakeCall>()), nullptr);
  Launch(b);
}

TEST_F(FlightTest, TheLastOneLeavingCancelsTheUpstreamCall) {
  auto leader = Open();
  auto a = Join();
  auto b = Join();
  table_.Leave(leader.get());
  table_.Leave(a.get());
  EXPECT_EQ(call_->cancelled, 0);
  table_.Leave(b.get());
  EXPECT_EQ(call_->cancelled, 1);
  EXPECT_TRUE(table_.GetStats().empty());
  // A new caller has a flight of its own, which the end of the old one does not
  // touch.
  const auto old = flight_;
  Open();
  auto c = Join();
  table_.Finish(old, FlightEnd::kAlone, nullptr, kNow);
  EXPECT_THAT(c->verdicts, IsEmpty());
}

TEST_F(FlightTest, AFirstCallerThatLeavesAloneCancelsTheUpstreamCall) {
  auto leader = Open();
  table_.Leave(leader.get());
  EXPECT_EQ(call_->cancelled, 1);
}

TEST_F(FlightTest, ACallerGivenAPlaceAfterItLeftGivesItToTheNext) {
  Open();
  auto a = Join();
  auto b = Join();
  auto c = Join();
  auto d = Join();
  table_.Finish(flight_, FlightEnd::kAlone, nullptr, kNow);
  table_.Leave(a.get());
  ASSERT_THAT(c->verdicts, ElementsAre(Verdict::kRun));
  // c never calls: it has gone.
  table_.Leave(c.get());
  EXPECT_THAT(d->verdicts, ElementsAre(Verdict::kRun));
  EXPECT_EQ(table_.GetStats().running, 2);
}

// ---- Errors over which old answers are served.

TEST_F(FlightTest, AFailureTellsThoseWhoHaveAnOldAnswerAndReleasesTheRest) {
  Open();
  auto old = std::make_shared<Caller>(kKey, absl::InfiniteFuture(),
                                      /*has_old=*/true);
  ASSERT_EQ(table_.Enter(old, kNow), Verdict::kWait);
  auto other = Join();
  table_.Finish(flight_, FlightEnd::kFailed, nullptr, kNow, /*found=*/false,
                /*code=*/14);
  EXPECT_THAT(old->verdicts, ElementsAre(Verdict::kOld));
  EXPECT_EQ(old->last.code, 14);
  EXPECT_THAT(other->verdicts, ElementsAre(Verdict::kRun));
  EXPECT_EQ(table_.GetStats().running, 1);
  EXPECT_FALSE(table_.Leave(old.get()));
  // Nothing of the key is collapsed for a while, as after any such end.
  EXPECT_EQ(table_.Enter(Make(), kNow), Verdict::kRun);
}

TEST_F(FlightTest, AnyOtherEndReleasesThoseWithAnOldAnswerToo) {
  Open();
  auto old = std::make_shared<Caller>(kKey, absl::InfiniteFuture(),
                                      /*has_old=*/true);
  ASSERT_EQ(table_.Enter(old, kNow), Verdict::kWait);
  table_.Finish(flight_, FlightEnd::kAlone, nullptr, kNow);
  EXPECT_THAT(old->verdicts, ElementsAre(Verdict::kRun));
  table_.Leave(old.get());
}

// ---- Flights without a caller.

TEST_F(FlightTest, ARefreshIsAFlightThatOthersJoin) {
  auto refresh = Make();
  ASSERT_EQ(table_.EnterToRefresh(refresh, kNow), FlightTable::Refresh::kLead);
  EXPECT_EQ(table_.GetStats().unattended, 1);
  Launch(refresh);
  auto joined = Join();
  // It is not cancelled when a caller leaves.
  EXPECT_TRUE(table_.Leave(joined.get()));
  EXPECT_EQ(call_->cancelled, 0);
  joined = Join();
  table_.Finish(flight_, FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(joined->verdicts, ElementsAre(Verdict::kAnswer));
  EXPECT_EQ(table_.GetStats().unattended, 0);
}

TEST_F(FlightTest, ThereIsNoRefreshWhereAFlightRunsOrHasJustFailed) {
  Open();
  EXPECT_EQ(table_.EnterToRefresh(Make(), kNow),
            FlightTable::Refresh::kNotNeeded);
  table_.Finish(flight_, FlightEnd::kFailed, nullptr, kNow);
  EXPECT_EQ(table_.EnterToRefresh(Make(), kNow),
            FlightTable::Refresh::kNotNeeded);
  auto refresh = Make();
  EXPECT_EQ(table_.EnterToRefresh(refresh, kNow + absl::Seconds(1)),
            FlightTable::Refresh::kLead);
  table_.FinishFound(refresh.get(), MakeEntry(), kNow);
  EXPECT_EQ(table_.GetStats().unattended, 0);
}

TEST_F(FlightTest, AFlightThatOutlivesItsCallersGoesOn) {
  auto leader = Make();
  ASSERT_EQ(table_.Enter(leader, kNow), Verdict::kLead);
  Launch(leader, /*outlives=*/true);
  table_.Leave(leader.get());
  EXPECT_EQ(call_->cancelled, 0);
  EXPECT_EQ(call_->abandoned, 1);
  EXPECT_EQ(table_.GetStats().unattended, 1);
  EXPECT_EQ(table_.GetStats().flights, 1u);
  table_.Finish(flight_, FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_EQ(table_.GetStats().unattended, 0);
}

TEST_F(FlightTest, WhoJoinsAnAbandonedFlightKeepsItAndMayAbandonItAgain) {
  auto leader = Make();
  ASSERT_EQ(table_.Enter(leader, kNow), Verdict::kLead);
  Launch(leader, /*outlives=*/true);
  table_.Leave(leader.get());
  const uint64_t first = call_->last;
  auto joined = Join();
  EXPECT_EQ(table_.GetStats().unattended, 0);
  // The time of the first abandonment is over, but a caller waits.
  table_.EndAbandoned(flight_, first);
  EXPECT_EQ(call_->cancelled, 0);
  table_.Leave(joined.get());
  EXPECT_EQ(call_->abandoned, 2);
  table_.EndAbandoned(flight_, first);
  EXPECT_EQ(call_->cancelled, 0);
  table_.EndAbandoned(flight_, call_->last);
  EXPECT_EQ(call_->cancelled, 1);
  EXPECT_TRUE(table_.GetStats().empty());
  EXPECT_EQ(table_.GetStats().unattended, 0);
  // Its result is late now.
  table_.Finish(flight_, FlightEnd::kShared, MakeEntry(), kNow);
}

TEST_F(FlightTest, BeyondSixteenCallsWithoutACallerNoneIsBegunOrGoesOn) {
  std::vector<std::shared_ptr<Caller>> refreshes;
  for (uint64_t i = 0; i < 16; ++i) {
    refreshes.push_back(Make(cache::key::Key{100 + i, 0}));
    ASSERT_EQ(table_.EnterToRefresh(refreshes.back(), kNow),
              FlightTable::Refresh::kLead);
  }
  EXPECT_EQ(table_.EnterToRefresh(Make(), kNow), FlightTable::Refresh::kFull);
  auto leader = Make();
  ASSERT_EQ(table_.Enter(leader, kNow), Verdict::kLead);
  Launch(leader, /*outlives=*/true);
  table_.Leave(leader.get());
  EXPECT_EQ(call_->cancelled, 1);
  EXPECT_EQ(call_->abandoned, 0);
  for (const auto& refresh : refreshes) {
    table_.FinishFound(refresh.get(), MakeEntry(), kNow);
  }
  EXPECT_EQ(table_.GetStats().unattended, 0);
}

}  // namespace
}  // namespace fncache::proxy::serving
