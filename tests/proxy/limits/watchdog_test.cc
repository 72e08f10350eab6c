// SPDX-License-Identifier: Apache-2.0
#include "proxy/limits/watchdog.h"

#include "gtest/gtest.h"

namespace fncache::proxy::limits {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(WatchdogTest, ACallStallsAfterTenSecondsWithoutProgress) {
  Watchdog watchdog;
  watchdog.Restart(5 * kSecond, 0);
  EXPECT_FALSE(watchdog.Stalls(15 * kSecond - 1));
  EXPECT_TRUE(watchdog.Stalls(15 * kSecond));
  EXPECT_EQ(watchdog.Idle(7 * kSecond), absl::Seconds(2));
}

TEST(WatchdogTest, AnEighthIsProgress) {
  Watchdog watchdog;
  watchdog.Restart(0, 100);
  watchdog.Saw(9 * kSecond, 199, 800);
  EXPECT_TRUE(watchdog.Stalls(10 * kSecond));
  watchdog.Saw(9 * kSecond, 200, 800);
  EXPECT_FALSE(watchdog.Stalls(10 * kSecond));
}

TEST(WatchdogTest, BytesOfSeveralLooksAddUp) {
  Watchdog watchdog;
  watchdog.Restart(0, 0);
  for (int i = 1; i <= 100; ++i) watchdog.Saw(i * kSecond, 12 * i, 800);
  EXPECT_FALSE(watchdog.Stalls(105 * kSecond));
}

TEST(WatchdogTest, ProgressIsBetweenOneByteAnd4MiB) {
  EXPECT_EQ(Watchdog::Least(0), 1u);
  EXPECT_EQ(Watchdog::Least(80), 10u);
  EXPECT_EQ(Watchdog::Least(1 << 30), 4u << 20);
}

}  // namespace
}  // namespace fncache::proxy::limits
