// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/history.h"

#include "gtest/gtest.h"
#include "tests/proxy/telemetry/status_testing.h"

namespace fncache::proxy::telemetry {
namespace {

class HistoryTest : public testing::Test {
 protected:
  uint64_t RecentCalls() {
    return source_.history.Read().recent.functions[0].Calls();
  }

  StatusSource source_{{"f"}};
};

TEST_F(HistoryTest, RightAfterTheStartTheLastMinuteIsSinceTheStart) {
  source_.Call(0, Outcome::kHit, absl::Milliseconds(1));
  EXPECT_EQ(RecentCalls(), 1u);
  EXPECT_EQ(source_.history.Read().recent_length, absl::ZeroDuration());
  source_.clock.Advance(absl::Seconds(7));
  EXPECT_EQ(RecentCalls(), 1u);
  EXPECT_EQ(source_.history.Read().recent_length, absl::Seconds(7));
}

TEST_F(HistoryTest, WhatIsOverAMinuteOldIsNoMoreOfTheLastMinute) {
  source_.Call(0, Outcome::kHit, absl::Milliseconds(1));
  source_.Pass(absl::Seconds(60));
  EXPECT_EQ(RecentCalls(), 1u);
  source_.Pass(absl::Seconds(10));
  EXPECT_EQ(RecentCalls(), 0u);
  EXPECT_EQ(source_.history.Read().total.functions[0].Calls(), 1u);
}

TEST_F(HistoryTest, TheLastMinuteIsAMinuteAndAtMostAnIntervalMore) {
  source_.Pass(absl::Minutes(3));
  for (int i = 0; i < 40; ++i) {
    source_.clock.Advance(absl::Milliseconds(700));
    if (i % 14 == 13) source_.history.Tick();
    const absl::Duration length = source_.history.Read().recent_length;
    EXPECT_GE(length, History::kSpan);
    EXPECT_LE(length, History::kSpan + History::kInterval);
  }
}

TEST_F(HistoryTest, LateTicksMakeTheLastMinuteLonger) {
  source_.Pass(absl::Minutes(3));
  source_.Call(0, Outcome::kHit, absl::Milliseconds(1));
  source_.clock.Advance(absl::Minutes(10));
  EXPECT_EQ(RecentCalls(), 1u);
  EXPECT_EQ(source_.history.Read().recent_length, absl::Minutes(10));
}

TEST_F(HistoryTest, PercentilesAreThoseOfTheLastMinute) {
  for (int i = 0; i < 100; ++i) {
    source_.Call(0, Outcome::kMiss, absl::Seconds(3));
  }
  source_.Pass(absl::Minutes(2));
  source_.Call(0, Outcome::kMiss, absl::Milliseconds(2900));
  source_.Call(0, Outcome::kMiss, absl::Milliseconds(20));
  const metrics::Distribution recent =
      source_.history.Read().recent.functions[0].latency[static_cast<size_t>(
          Outcome::kMiss)];
  EXPECT_EQ(recent.Count(), 2u);
  EXPECT_EQ(recent.Quantile(0.5), absl::Milliseconds(20));
  // In one part with 3 s, and still not moved by it.
  EXPECT_EQ(recent.Quantile(0.99), absl::Milliseconds(2900));
}

TEST_F(HistoryTest, TellsSinceWhenATierIsDown) {
  cache::store::StoreStats stats;
  source_.instruments.WatchTier(cache::Tier::kDisk, [&] { return stats; });
  source_.Pass(absl::Seconds(20));
  EXPECT_EQ(source_.history.Read().down_since[0], absl::nullopt);
  stats.up = false;
  EXPECT_EQ(source_.history.Read().down_since[0], source_.clock.Now());
  source_.Pass(absl::Seconds(10));
  const absl::Time since = source_.clock.Now();
  source_.Pass(absl::Seconds(50));
  EXPECT_EQ(source_.history.Read().down_since[0], since);
  stats.up = true;
  EXPECT_EQ(source_.history.Read().down_since[0], absl::nullopt);
  source_.Pass(absl::Seconds(10));
  stats.up = false;
  EXPECT_EQ(source_.history.Read().down_since[0], source_.clock.Now());
}

}  // namespace
}  // namespace fncache::proxy::telemetry
