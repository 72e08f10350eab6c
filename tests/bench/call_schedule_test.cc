// SPDX-License-Identifier: Apache-2.0
#include "bench/call_schedule.h"

#include <algorithm>
#include <cstdint>

#include "common/latency_histogram.h"
#include "gtest/gtest.h"

namespace fncache::bench {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

TEST(CallSchedule, CallsAreDueAtTheirRate) {
  CallSchedule schedule(500, 1000, 3);
  EXPECT_FALSE(schedule.due(499));
  EXPECT_TRUE(schedule.due(500));
  EXPECT_EQ(schedule.Begin(), 500);
  EXPECT_FALSE(schedule.due(500 + kMillisecond - 1));
  EXPECT_EQ(schedule.Begin(), 500 + kMillisecond);
  EXPECT_EQ(schedule.Begin(), 500 + 2 * kMillisecond);
  EXPECT_TRUE(schedule.done());
  EXPECT_FALSE(schedule.due(INT64_MAX));
}

// Neither rounding nor a late call may shift the calls after it.
TEST(CallSchedule, DoesNotDrift) {
  CallSchedule schedule(0, 3000, 30'000'001);
  int64_t last = 0;
  for (int i = 0; i < 30'000'001; ++i) last = schedule.Begin();
  EXPECT_NEAR(static_cast<double>(last), 1e13, 1);
}

// A server that answers within a millisecond stalls once for half a second
// while a thousand calls a second are due, with one call at a time: a client
// that forgot when calls were meant to begin would see one slow call in 2,000.
TEST(CallSchedule, AStallShowsInEveryCallThatItHeldUp) {
  CallSchedule schedule(0, 1000, 2000);
  LatencyHistogram latency;
  int64_t now = 0;
  for (int i = 0; i < 2000; ++i) {
    now = std::max(now, schedule.next());
    const int64_t intended = schedule.Begin();
    now += i == 1000 ? 500 * kMillisecond : kMillisecond / 2;
    latency.Add(now - intended);
  }
  // The backlog of 500 shrinks by half a call each millisecond: the last 1,000
  // calls all waited, from 500 ms down to next to nothing.
  EXPECT_LT(latency.Quantile(0.49), 2 * kMillisecond);
  EXPECT_NEAR(static_cast<double>(latency.Quantile(0.75)), 250.0 * kMillisecond,
              5.0 * kMillisecond);
  EXPECT_NEAR(static_cast<double>(latency.Quantile(0.95)), 450.0 * kMillisecond,
              6.0 * kMillisecond);
}

}  // namespace
}  // namespace fncache::bench
