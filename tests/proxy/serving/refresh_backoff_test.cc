// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/refresh_backoff.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fncache::proxy::serving {
namespace {

using cache::key::Key;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

TEST(RefreshBackoffTest, DelaysDoubleFromOneSecondToThirty) {
  RefreshBackoff backoff;
  const Key key{1, 2};
  absl::Time now = kStart;
  EXPECT_TRUE(backoff.Allows(key, now));
  for (const int seconds : {1, 2, 4, 8, 16, 30, 30, 30}) {
    backoff.Failed(key, now);
    const absl::Duration delay = absl::Seconds(seconds);
    EXPECT_FALSE(backoff.Allows(key, now + delay - absl::Nanoseconds(1)));
    EXPECT_TRUE(backoff.Allows(key, now + delay));
    EXPECT_TRUE(backoff.Allows(Key{1, 3}, now));
    now += delay;
  }
}

TEST(RefreshBackoffTest, ASuccessOrALongWhileBeginsAnew) {
  RefreshBackoff backoff;
  const Key key{1, 2};
  absl::Time now = kStart;
  for (int i = 0; i < 5; ++i) backoff.Failed(key, now);
  backoff.Succeeded(key);
  EXPECT_TRUE(backoff.Allows(key, now));
  EXPECT_EQ(backoff.keys(), 0u);
  for (int i = 0; i < 5; ++i) backoff.Failed(key, now);
  now += absl::Seconds(16 + 30);
  backoff.Failed(key, now);
  EXPECT_FALSE(backoff.Allows(key, now));
  EXPECT_TRUE(backoff.Allows(key, now + absl::Seconds(1)));
}

TEST(RefreshBackoffTest, TellsHowManyKeysWait) {
  RefreshBackoff backoff;
  EXPECT_EQ(backoff.Waiting(kStart), 0u);
  backoff.Failed(Key{1, 2}, kStart);
  backoff.Failed(Key{1, 3}, kStart);
  backoff.Failed(Key{1, 3}, kStart);
  EXPECT_EQ(backoff.Waiting(kStart), 2u);
  EXPECT_EQ(backoff.Waiting(kStart + absl::Seconds(1)), 1u);
  // Remembered, but free.
  EXPECT_EQ(backoff.Waiting(kStart + absl::Seconds(2)), 0u);
  backoff.Succeeded(Key{1, 3});
  EXPECT_EQ(backoff.Waiting(kStart), 1u);
}

TEST(RefreshBackoffTest, HoldsABoundedNumberOfKeys) {
  RefreshBackoff backoff;
  for (uint64_t i = 0; i < 3 * RefreshBackoff::kMostKeys; ++i) {
    backoff.Failed(Key{i, 7}, kStart);
    ASSERT_LE(backoff.keys(), RefreshBackoff::kMostKeys);
  }
  // The oldest are forgotten first.
  EXPECT_TRUE(backoff.Allows(Key{0, 7}, kStart));
  EXPECT_FALSE(
      backoff.Allows(Key{3 * RefreshBackoff::kMostKeys - 1, 7}, kStart));
  // And one key that fails again and again pushes out one other.
  for (uint64_t i = 0; i < 3 * RefreshBackoff::kMostKeys; ++i) {
    backoff.Failed(Key{1, 1}, kStart);
  }
  EXPECT_FALSE(backoff.Allows(Key{1, 1}, kStart + absl::Seconds(29)));
  EXPECT_FALSE(
      backoff.Allows(Key{2 * RefreshBackoff::kMostKeys + 1, 7}, kStart));
}

}  // namespace
}  // namespace fncache::proxy::serving
