// SPDX-License-Identifier: Apache-2.0
#include "metrics/histogram.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "metrics/registry.h"

namespace fncache::metrics {
namespace {

const Family& Latency() {
  static const Family* const family =
      new Family{"latency_seconds", Type::kHistogram, {}, "A latency."};
  return *family;
}

size_t SlowFind(const Buckets& buckets, uint64_t n) {
  size_t i = 0;
  while (i < buckets.bounds().size() && n > buckets.bounds()[i]) ++i;
  return i;
}

size_t BucketOf(const Buckets& buckets, uint64_t n) {
  return buckets.FindSubBucket(n) / Buckets::kSubBuckets;
}

class BucketsTest : public testing::TestWithParam<const Buckets*> {};

TEST_P(BucketsTest, BoundsAreInclusiveAndEveryDurationFindsItsBucket) {
  const Buckets& buckets = *GetParam();
  for (size_t i = 0; i < buckets.bounds().size(); ++i) {
    EXPECT_EQ(BucketOf(buckets, buckets.bounds()[i] - 1), i);
    EXPECT_EQ(BucketOf(buckets, buckets.bounds()[i]), i);
    EXPECT_EQ(BucketOf(buckets, buckets.bounds()[i] + 1), i + 1);
  }
  EXPECT_EQ(buckets.FindSubBucket(0), 0u);
  EXPECT_EQ(BucketOf(buckets, ~uint64_t{0}), buckets.bounds().size());
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t n = random() >> (random() % 64);
    ASSERT_EQ(BucketOf(buckets, n), SlowFind(buckets, n)) << n;
  }
}

TEST_P(BucketsTest, PartsFollowEachOtherAndTakeWhatTheySay) {
  const Buckets& buckets = *GetParam();
  EXPECT_EQ(buckets.Least(0), 0u);
  for (size_t sub_bucket = 0; sub_bucket < buckets.sub_buckets();
       ++sub_bucket) {
    ASSERT_LE(buckets.Least(sub_bucket), buckets.Greatest(sub_bucket));
    ASSERT_EQ(buckets.FindSubBucket(buckets.Least(sub_bucket)), sub_bucket);
    ASSERT_EQ(buckets.FindSubBucket(buckets.Greatest(sub_bucket)), sub_bucket);
    if (sub_bucket > 0) {
      ASSERT_EQ(buckets.Least(sub_bucket),
                buckets.Greatest(sub_bucket - 1) + 1);
    }
  }
  EXPECT_EQ(buckets.Greatest(buckets.sub_buckets() - 1), ~uint64_t{0});
}

TEST_P(BucketsTest, AScrapeGetsTwelveAtMost) {
  // Infinity is one more.
  EXPECT_LE(GetParam()->exposed().size() + 1, 12u);
  EXPECT_EQ(GetParam()->bounds()[GetParam()->exposed().back()],
            GetParam()->bounds().back());
}

INSTANTIATE_TEST_SUITE_P(All, BucketsTest,
                         testing::Values(&Buckets::Calls(), &Buckets::Tiers()));

TEST(BucketsTest, CallBucketsTellHitsApartAndReachTwoMinutes) {
  const Buckets& calls = Buckets::Calls();
  // Hits take 20 to 200 us: no two of these fall into one bucket.
  size_t last = BucketOf(calls, 20'000);
  for (const uint64_t us : {30, 50, 75, 100, 150, 200}) {
    EXPECT_GT(BucketOf(calls, us * 1000), last) << us;
    last = BucketOf(calls, us * 1000);
  }
  EXPECT_EQ(calls.bounds().back(), 120'000'000'000u);
}

TEST(HistogramTest, CountsSumsAndSorts) {
  Registry registry;
  const Buckets buckets({absl::Milliseconds(1), absl::Milliseconds(10)});
  const Histogram histogram = registry.AddHistogram(Latency(), {}, buckets);
  histogram.Observe(absl::Microseconds(500));
  histogram.Observe(absl::Milliseconds(1));
  histogram.Observe(absl::Milliseconds(2));
  histogram.Observe(absl::Seconds(3));
  histogram.Observe(absl::Seconds(-3));  // a clock's fault: zero
  const Distribution read = histogram.Read();
  EXPECT_EQ(read.BucketCounts(), (std::vector<uint64_t>{3, 1, 1}));
  EXPECT_EQ(read.Count(), 5u);
  EXPECT_EQ(read.Sum(), absl::Microseconds(3'003'500));
  EXPECT_EQ(read.Mean(), absl::Nanoseconds(600'700'000));
}

TEST(HistogramTest, AnUnboundHandleObservesNothing) {
  Histogram().Observe(absl::Seconds(1));
  EXPECT_EQ(Histogram().Read().Count(), 0u);
}

TEST(HistogramTest, ThreadsObserveTogether) {
  Registry registry;
  const Histogram histogram =
      registry.AddHistogram(Latency(), {}, Buckets::Calls());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) histogram.Observe(absl::Microseconds(42));
    });
  }
  // Reading meanwhile stops no writer and sees no more than there is.
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const uint64_t count = histogram.Read().Count();
    EXPECT_GE(count, last);
    EXPECT_LE(count, 80000u);
    last = count;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Read().Count(), 80000u);
  EXPECT_EQ(histogram.Read().Sum(), absl::Microseconds(42) * 80000);
}

constexpr double kQuantiles[] = {0,    0.01, 0.1,  0.25,  0.5,
                                 0.75, 0.9,  0.99, 0.999, 1};

class DistributionTest : public testing::Test {
 protected:
  // The distribution of these.
  static Distribution Of(const std::vector<absl::Duration>& durations,
                         const Buckets& buckets = Buckets::Calls()) {
    Registry registry;
    const Histogram histogram = registry.AddHistogram(Latency(), {}, buckets);
    for (const absl::Duration duration : durations) histogram.Observe(duration);
    return histogram.Read();
  }
};

TEST_F(DistributionTest, AnEmptyOneIsAllZero) {
  EXPECT_EQ(Distribution().Quantile(0.5), absl::ZeroDuration());
  EXPECT_EQ(Distribution().Mean(), absl::ZeroDuration());
  EXPECT_EQ(Distribution().Count(), 0u);
  EXPECT_EQ(Of({}).Quantile(0.5), absl::ZeroDuration());
}

TEST_F(DistributionTest, OfEqualDurationsEveryQuantileIsThatDuration) {
  for (const absl::Duration one :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Microseconds(10),
        absl::Microseconds(61), absl::Seconds(2), absl::Milliseconds(2004),
        absl::Seconds(120), absl::Hours(1)}) {
    for (const int times : {1, 2, 1000}) {
      const Distribution all =
          Of(std::vector<absl::Duration>(static_cast<size_t>(times), one));
      for (const double q : kQuantiles) EXPECT_EQ(all.Quantile(q), one) << q;
    }
  }
}

TEST_F(DistributionTest, OfTwoDurationsEachIsAQuantile) {
  const Distribution two = Of({absl::Seconds(3), absl::Milliseconds(2)});
  EXPECT_EQ(two.Quantile(0), absl::Milliseconds(2));
  EXPECT_EQ(two.Quantile(0.5), absl::Milliseconds(2));
  EXPECT_EQ(two.Quantile(0.51), absl::Seconds(3));
  EXPECT_EQ(two.Quantile(0.99), absl::Seconds(3));
  EXPECT_EQ(two.Quantile(1), absl::Seconds(3));
}

TEST_F(DistributionTest, AFewSlowOnesDoNotMoveTheMedian) {
  std::vector<absl::Duration> durations(98, absl::Seconds(2));
  durations.insert(durations.end(), 2, absl::Milliseconds(4900));
  const Distribution all = Of(durations);
  EXPECT_EQ(all.Quantile(0.5), absl::Seconds(2));
  EXPECT_EQ(all.Quantile(0.99), absl::Milliseconds(4900));
}

TEST_F(DistributionTest, AboveTheHighestBoundTheMeanIsTold) {
  const Distribution all =
      Of({absl::Seconds(1), absl::Minutes(3), absl::Minutes(5)});
  EXPECT_EQ(all.Quantile(0.3), absl::Seconds(1));
  EXPECT_EQ(all.Quantile(0.5), absl::Minutes(4));
  EXPECT_EQ(all.Quantile(1), absl::Minutes(4));
}

TEST_F(DistributionTest, ASumThatHasNotComeYetMovesNothingOutOfItsPart) {
  Distribution torn = Of({absl::Seconds(2)});
  ASSERT_EQ(torn.sub_buckets.size(), 1u);
  torn.sub_buckets[0].nanoseconds = 0;
  EXPECT_GT(torn.Quantile(0.5), absl::Milliseconds(1750));
  torn.sub_buckets[0].nanoseconds = ~uint64_t{0};
  EXPECT_EQ(torn.Quantile(0.5), absl::Seconds(2));
}

// Estimates lie between the least and the greatest, rise with q, and are no
// further from the truth than a sub-bucket is wide.
TEST_F(DistributionTest, EstimatesAreNearTheTruthAndNeverOutsideOfWhatWasSeen) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> lognormal(11.5, 1.5);  // around 100 us
  std::uniform_real_distribution<double> uniform(2e9, 5e9);
  std::exponential_distribution<double> exponential(1 /
                                                    3e10);  // above all, too
  const std::vector<std::function<double()>> shapes = {
      [&] { return lognormal(random); },
      [&] { return uniform(random); },
      [&] { return exponential(random); },
      [&] { return random() % 2 == 0 ? 60e3 : 2e9; },
      [&] { return static_cast<double>(random() >> (random() % 40 + 24)); },
  };
  const Buckets& buckets = Buckets::Calls();
  for (size_t shape = 0; shape < shapes.size(); ++shape) {
    for (const size_t count : {1, 2, 3, 10, 20000}) {
      SCOPED_TRACE(testing::Message() << "shape " << shape << ", " << count);
      Registry registry;
      const Histogram histogram = registry.AddHistogram(Latency(), {}, buckets);
      std::vector<uint64_t> all;
      for (size_t i = 0; i < count; ++i) {
        all.push_back(static_cast<uint64_t>(shapes[shape]()));
        histogram.ObserveNanoseconds(static_cast<int64_t>(all.back()));
      }
      std::sort(all.begin(), all.end());
      const Distribution read = histogram.Read();
      uint64_t last = 0;
      for (const double q : kQuantiles) {
        const double rank = std::ceil(q * static_cast<double>(count));
        const uint64_t truth =
            all[static_cast<size_t>(std::max(rank, 1.0)) - 1];
        const uint64_t estimate = absl::ToInt64Nanoseconds(read.Quantile(q));
        EXPECT_EQ(buckets.FindSubBucket(estimate), buckets.FindSubBucket(truth))
            << q;
        EXPECT_GE(estimate, all.front()) << q;
        EXPECT_LE(estimate, all.back()) << q;
        EXPECT_GE(estimate, last) << q;
        last = estimate;
      }
    }
  }
}

TEST_F(DistributionTest, AddsUp) {
  Distribution sum;
  sum += Of({});
  sum += Of({absl::Seconds(1), absl::Hours(1)});
  sum += Of({absl::Milliseconds(1), absl::Seconds(2), absl::Hours(3)});
  EXPECT_EQ(sum.Count(), 5u);
  EXPECT_EQ(sum.Sum(), absl::Milliseconds(3001) + absl::Hours(4));
  EXPECT_EQ(sum.Quantile(0), absl::Milliseconds(1));
  EXPECT_EQ(sum.Quantile(0.4), absl::Seconds(1));
  EXPECT_EQ(sum.Quantile(0.6), absl::Seconds(2));
  EXPECT_EQ(sum.Quantile(1), absl::Hours(2));
}

TEST_F(DistributionTest, BetweenTwoReadingsLiesWhatWasObservedThere) {
  Registry registry;
  const Histogram histogram =
      registry.AddHistogram(Latency(), {}, Buckets::Calls());
  histogram.Observe(absl::Milliseconds(1600));
  histogram.Observe(absl::Seconds(30));
  const Distribution earlier = histogram.Read();
  EXPECT_EQ(histogram.Read().Since(earlier).Count(), 0u);
  // The sub-bucket of 1.6 s: its mean is that of the later ones alone.
  for (int i = 0; i < 10; ++i) histogram.Observe(absl::Milliseconds(1700));
  histogram.Observe(absl::Milliseconds(3));
  const Distribution since = histogram.Read().Since(earlier);
  EXPECT_EQ(since.Count(), 11u);
  EXPECT_EQ(since.Sum(), absl::Milliseconds(17003));
  EXPECT_EQ(since.Quantile(0), absl::Milliseconds(3));
  EXPECT_EQ(since.Quantile(0.5), absl::Milliseconds(1700));
  EXPECT_EQ(since.Quantile(1), absl::Milliseconds(1700));
  EXPECT_EQ(histogram.Read().Since(Distribution()).Count(), 13u);
}

}  // namespace
}  // namespace fncache::metrics
