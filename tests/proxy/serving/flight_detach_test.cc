// SPDX-License-Identifier: Apache-2.0
// Flights and purges: later callers do not join, those inside stay.
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/serving/flight.h"
#include "proxy/telemetry/instruments.h"
#include "tests/common/long_form.h"

namespace fncache::proxy::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const cache::key::Key kKey{1, 2};

class FakeCall : public FlightCall {
 public:
  void Cancel() override { ++cancelled; }
  int cancelled = 0;
};

class Caller : public FlightCaller {
 public:
  explicit Caller(const cache::key::Key& key = kKey)
      : FlightCaller(key, absl::InfiniteFuture()) {}
  void OnSignal(FlightSignal signal) override {
    verdicts.push_back(signal.verdict);
  }
  std::vector<Verdict> verdicts;
};

using CallerPtr = std::shared_ptr<Caller>;

cache::store::EntryRef MakeEntry() {
  cache::store::EntryInfo info;
  info.started = info.arrived = kNow;
  info.lifetime = absl::Minutes(1);
  return cache::store::Entry::Create(info, "", {"body"});
}

class FlightDetachTest : public ::testing::Test {
 protected:
  ~FlightDetachTest() override {
    EXPECT_TRUE(table_.GetStats().empty());
    EXPECT_EQ(instruments_.function(0).ReadGauges().flights, 0);
  }
  CallerPtr Enter(Verdict expected, const cache::key::Key& key = kKey) {
    auto caller = std::make_shared<Caller>(key);
    EXPECT_EQ(table_.Enter(caller, kNow), expected);
    return caller;
  }
  std::shared_ptr<Flight> Launch(const CallerPtr& leader) {
    call_ = std::make_shared<FakeCall>();
    return table_.Launched(leader.get(), call_);
  }

  const telemetry::Instruments instruments_{{"function"}};
  FlightTable table_{{/*max_released=*/2, absl::Seconds(1)},
                     instruments_.function(0)};
  std::shared_ptr<FakeCall> call_;
};

TEST_F(FlightDetachTest, WhoComesLaterOpensAnotherFlight) {
  EXPECT_EQ(table_.Detach(kKey), 0u);
  const auto first = Enter(Verdict::kLead);
  const auto old = Launch(first);
  const auto joined = Enter(Verdict::kWait);
  EXPECT_EQ(table_.Detach(kKey), 1u);
  EXPECT_EQ(table_.Detach(kKey), 0u) << "it is detached already";
  const auto second = Enter(Verdict::kLead);
  const auto later = Enter(Verdict::kWait);
  EXPECT_EQ(table_.GetStats().flights, 2u);
  EXPECT_EQ(table_.GetStats().callers, 4u);
  const auto fresh = Launch(second);
  // Either ends for itself, whichever comes first.
  table_.Finish(old, FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(joined->verdicts, ElementsAre(Verdict::kAnswer));
  EXPECT_THAT(later->verdicts, IsEmpty());
  EXPECT_EQ(table_.GetStats().flights, 1u);
  const auto last = Enter(Verdict::kWait);
  table_.Finish(fresh, FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(later->verdicts, ElementsAre(Verdict::kAnswer));
  EXPECT_THAT(last->verdicts, ElementsAre(Verdict::kAnswer));
}

TEST_F(FlightDetachTest, TheNewFlightMayEndFirst) {
  const auto first = Enter(Verdict::kLead);
  const auto old = Launch(first);
  const auto joined = Enter(Verdict::kWait);
  table_.Detach(kKey);
  const auto second = Enter(Verdict::kLead);
  table_.Finish(Launch(second), FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(joined->verdicts, IsEmpty());
  const auto third = Enter(Verdict::kLead);
  table_.Finish(old, FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(joined->verdicts, ElementsAre(Verdict::kAnswer));
  Enter(Verdict::kWait);
  table_.Finish(Launch(third), FlightEnd::kShared, MakeEntry(), kNow);
}

TEST_F(FlightDetachTest, AnAnswerThatIsPurgedReleasesThoseInsideOnly) {
  const auto first = Enter(Verdict::kLead);
  const auto old = Launch(first);
  const auto joined = Enter(Verdict::kWait);
  table_.Detach(kKey);
  const auto second = Enter(Verdict::kLead);
  table_.Finish(old, FlightEnd::kAlone, nullptr, kNow);
  EXPECT_THAT(joined->verdicts, ElementsAre(Verdict::kRun));
  table_.Leave(joined.get());
  // The purge says nothing of whether answers can be shared.
  EXPECT_EQ(table_.GetStats().uncollapsed, 0u);
  const auto third = Enter(Verdict::kWait);
  table_.Finish(Launch(second), FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(third->verdicts, ElementsAre(Verdict::kAnswer));
  table_.FinishFound(Enter(Verdict::kLead).get(), MakeEntry(), kNow);
}

TEST_F(FlightDetachTest, WhoeverLeadsNextCallsAnewSoOthersMayJoinAgain) {
  const auto first = Enter(Verdict::kLead);
  const auto old = Launch(first);
  const auto joined = Enter(Verdict::kWait);
  table_.Detach(kKey);
  table_.Finish(old, FlightEnd::kDeadline, nullptr, kNow);
  EXPECT_THAT(joined->verdicts, ElementsAre(Verdict::kLead));
  const auto later = Enter(Verdict::kWait);
  table_.Finish(Launch(joined), FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(later->verdicts, ElementsAre(Verdict::kAnswer));
}

TEST_F(FlightDetachTest, UnlessTheyHaveAnotherFlight) {
  const auto first = Enter(Verdict::kLead);
  const auto old = Launch(first);
  const auto joined = Enter(Verdict::kWait);
  table_.Detach(kKey);
  const auto second = Enter(Verdict::kLead);
  table_.Finish(old, FlightEnd::kDeadline, nullptr, kNow);
  EXPECT_THAT(joined->verdicts, ElementsAre(Verdict::kLead));
  EXPECT_EQ(table_.GetStats().flights, 2u);
  const auto later = Enter(Verdict::kWait);
  table_.Finish(Launch(joined), FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(later->verdicts, IsEmpty()) << "it is in the other one";
  table_.Finish(Launch(second), FlightEnd::kShared, MakeEntry(), kNow);
  EXPECT_THAT(later->verdicts, ElementsAre(Verdict::kAnswer));
}

TEST_F(FlightDetachTest, TheLastOneLeavingCancelsItsOwnCall) {
  const auto first = Enter(Verdict::kLead);
  Launch(first);
  const auto old_call = call_;
  table_.Detach(kKey);
  const auto second = Enter(Verdict::kLead);
  const auto fresh = Launch(second);
  table_.Leave(first.get());
  EXPECT_EQ(old_call->cancelled, 1);
  EXPECT_EQ(call_->cancelled, 0);
  Enter(Verdict::kWait);
  table_.Finish(fresh, FlightEnd::kShared, MakeEntry(), kNow);
}

TEST_F(FlightDetachTest, ALeaderThatHasNotCalledYetIsReplacedFromInside) {
  const auto first = Enter(Verdict::kLead);
  const auto joined = Enter(Verdict::kWait);
  table_.Detach(kKey);
  const auto second = Enter(Verdict::kLead);
  table_.Leave(first.get());
  EXPECT_THAT(joined->verdicts, ElementsAre(Verdict::kLead));
  table_.Finish(Launch(joined), FlightEnd::kShared, MakeEntry(), kNow);
  table_.FinishFound(second.get(), MakeEntry(), kNow);
}

TEST_F(FlightDetachTest, AllOfAFunction) {
  std::vector<CallerPtr> leaders;
  std::vector<std::shared_ptr<Flight>> flights;
  for (uint64_t n = 0; n < 100; ++n) {
    leaders.push_back(Enter(Verdict::kLead, cache::key::Key{n, n}));
    flights.push_back(Launch(leaders.back()));
  }
  EXPECT_EQ(table_.DetachAll(), 100u);
  EXPECT_EQ(table_.DetachAll(), 0u);
  EXPECT_EQ(table_.GetStats().flights, 100u);
  for (uint64_t n = 0; n < 100; ++n) {
    const auto again = Enter(Verdict::kLead, cache::key::Key{n, n});
    table_.FinishFound(again.get(), MakeEntry(), kNow);
    table_.Finish(flights[n], FlightEnd::kShared, MakeEntry(), kNow);
  }
}

// Callers come, join, lead and leave in random order, and flights are detached
// at random. No caller gets the answer of a call that was launched before the
// last detachment before that caller came. Nothing is left at the end.
class RandomSchedule {
 public:
  RandomSchedule(uint32_t seed, FlightTable* table)
      : random_(seed), table_(*table) {}

  void Run() {
    for (int step = 0; step < 60; ++step) {
      switch (random_() % 6) {
        case 0:
        case 1:
          Enter();
          break;
        case 2:
          Launch();
          break;
        case 3:
          Finish();
          break;
        case 4:
          if (!all_.empty()) Leave(&all_[random_() % all_.size()]);
          break;
        case 5:
          Detach();
          break;
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
    for (One& one : all_) Leave(&one);
    for (const Call& call : calls_) {
      table_.Finish(call.flight, FlightEnd::kShared, MakeEntry(), kNow);
    }
    // Callers that got a verdict as others left.
    for (One& one : all_) table_.Leave(one.caller.get());
    ASSERT_TRUE(table_.GetStats().empty());
  }
  int answers() const { return answers_; }

 private:
  struct One {
    CallerPtr caller;
    int came;  // the number of detachments before it
    Verdict verdict;
    size_t heard = 0;
    bool over = false;
  };
  struct Call {
    std::shared_ptr<Flight> flight;
    int launched;  // the number of detachments before it
  };

  Verdict Enter() {
    One one;
    one.caller = std::make_shared<Caller>();
    one.came = detached_;
    one.verdict = table_.Enter(one.caller, now_);
    all_.push_back(one);
    return one.verdict;
  }
  void Launch() {
    for (One& one : all_) {
      if (one.over || one.verdict != Verdict::kLead) continue;
      one.verdict = Verdict::kAnswer;  // its call's
      calls_.push_back(
          {table_.Launched(one.caller.get(), std::make_shared<FakeCall>()),
           detached_});
      ASSERT_NE(calls_.back().flight, nullptr);
      return;
    }
  }
  void Finish() {
    if (calls_.empty()) return;
    const size_t at = random_() % calls_.size();
    const Call call = calls_[at];
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(at));
    const auto end = static_cast<FlightEnd>(random_() % 3);
    now_ += absl::Milliseconds(100);
    table_.Finish(call.flight, end,
                  end == FlightEnd::kShared ? MakeEntry() : nullptr, now_);
    Hear(&call);
  }
  void Leave(One* one) {
    table_.Leave(one->caller.get());
    one->over = true;
    Hear(nullptr);
  }
  void Detach() {
    if (random_() % 2 == 0) {
      table_.Detach(kKey);
    } else {
      table_.DetachAll();
    }
    ++detached_;
    if (table_.GetStats().uncollapsed > 0) return;
    ASSERT_EQ(Enter(), Verdict::kLead) << "there is nothing to join";
  }
  // The verdicts for callers when a call ended, or because another one left.
  void Hear(const Call* call) {
    for (One& one : all_) {
      for (; one.heard < one.caller->verdicts.size(); ++one.heard) {
        if (one.over) continue;
        one.verdict = one.caller->verdicts[one.heard];
        if (one.verdict != Verdict::kAnswer) continue;
        ASSERT_NE(call, nullptr);
        ASSERT_GE(call->launched, one.came) << "it joined an earlier flight";
        one.over = true;
        ++answers_;
      }
    }
  }

  std::mt19937 random_;
  FlightTable& table_;
  absl::Time now_ = kNow;
  int detached_ = 0;
  int answers_ = 0;
  std::vector<One> all_;
  std::vector<Call> calls_;
};

TEST_F(FlightDetachTest, RandomSchedules) {
  int answers = 0;
  constexpr uint32_t kSchedules = fncache::testing::FewerSanitized(5000);
  for (uint32_t seed = 1; seed <= kSchedules; ++seed) {
    SCOPED_TRACE(seed);
    FlightTable table({/*max_released=*/2, absl::Seconds(1)},
                      instruments_.function(0));
    RandomSchedule schedule(seed, &table);
    schedule.Run();
    if (HasFatalFailure()) return;
    answers += schedule.answers();
  }
  EXPECT_GT(answers, static_cast<int>(kSchedules));
}

}  // namespace
}  // namespace fncache::proxy::serving
