// SPDX-License-Identifier: Apache-2.0
#include "common/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(LatencyHistogram, OfNothingIsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Quantile(0.99), 0);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_THAT(histogram.Buckets(), IsEmpty());
}

TEST(LatencyHistogram, SmallValuesAreExact) {
  LatencyHistogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.Add(i);
  EXPECT_EQ(histogram.Quantile(0.5), 50);
  EXPECT_EQ(histogram.Quantile(0.99), 99);
  EXPECT_EQ(histogram.Quantile(1), 100);
  EXPECT_EQ(histogram.Quantile(0), 1);
  EXPECT_EQ(histogram.mean(), 50.5);
}

// Against the sorted list, over seven orders of magnitude.
TEST(LatencyHistogram, QuantilesAreWithinOnePercent) {
  bench::Random random(1);
  LatencyHistogram histogram;
  std::vector<int64_t> all;
  for (int i = 0; i < 100000; ++i) {
    const int64_t value =
        static_cast<int64_t>(random.Below(uint64_t{1000} << random.Below(24)));
    histogram.Add(value);
    all.push_back(value);
  }
  std::sort(all.begin(), all.end());
  for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(std::lround(fraction * 100000)) - 1;
    const int64_t exact = all[rank];
    EXPECT_GE(histogram.Quantile(fraction), exact) << fraction;
    EXPECT_LE(static_cast<double>(histogram.Quantile(fraction)),
              1 + static_cast<double>(exact) * 1.01)
        << fraction;
  }
  EXPECT_EQ(histogram.max(), all.back());
}

TEST(LatencyHistogram, BucketsHoldTheirUpperEnd) {
  for (int64_t value = 1; value < int64_t{1} << 39; value += value / 97 + 1) {
    LatencyHistogram histogram;
    histogram.Add(value);
    const auto buckets = histogram.Buckets();
    ASSERT_EQ(buckets.size(), 1u);
    EXPECT_GE(buckets[0].first, value);
    EXPECT_LE(static_cast<double>(buckets[0].first),
              static_cast<double>(value) * 1.008);
    // The end belongs to it, what follows does not.
    histogram.Add(buckets[0].first);
    ASSERT_EQ(histogram.Buckets().size(), 1u) << value;
    histogram.Add(buckets[0].first + 1);
    ASSERT_EQ(histogram.Buckets().size(), 2u) << value;
  }
}

TEST(LatencyHistogram, ExtremesAreCounted) {
  LatencyHistogram histogram;
  histogram.Add(-5);
  histogram.Add(int64_t{1} << 50);
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.max(), int64_t{1} << 50);
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  EXPECT_THAT(histogram.Buckets(),
              ElementsAre(Pair(0, 1), Pair((int64_t{1} << 40) - 1, 1)));
}

TEST(LatencyHistogram, ThreeDigitsAreWithinATenthOfAPercent) {
  bench::Random random(2);
  LatencyHistogram histogram(LatencyHistogram::kThreeDigits);
  std::vector<int64_t> all;
  for (int i = 0; i < 100000; ++i) {
    const int64_t value =
        static_cast<int64_t>(random.Below(uint64_t{1000} << random.Below(24)));
    histogram.Add(value);
    all.push_back(value);
  }
  std::sort(all.begin(), all.end());
  for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(std::lround(fraction * 100000)) - 1;
    const int64_t exact = all[rank];
    EXPECT_GE(histogram.Quantile(fraction), exact) << fraction;
    EXPECT_LE(static_cast<double>(histogram.Quantile(fraction)),
              1 + static_cast<double>(exact) * 1.001)
        << fraction;
  }
  EXPECT_EQ(histogram.min(), all.front());
}

TEST(LatencyHistogram, MergedIsAsIfOneHadCountedAll) {
  LatencyHistogram a, b, both;
  for (int i = 1; i <= 1000; ++i) {
    (i % 3 == 0 ? a : b).Add(i * 977);
    both.Add(i * 977);
  }
  a.Merge(b);
  EXPECT_EQ(a.Buckets(), both.Buckets());
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.max(), both.max());
  EXPECT_EQ(a.min(), both.min());
  EXPECT_EQ(a.mean(), both.mean());
  a.Clear();
  EXPECT_THAT(a.Buckets(), IsEmpty());
  EXPECT_EQ(a.min(), 0);
}

}  // namespace
}  // namespace fncache
