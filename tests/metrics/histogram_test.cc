#include "metrics/histogram.h"

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

class BucketsTest : public testing::TestWithParam<const Buckets*> {};

TEST_P(BucketsTest, BoundsAreInclusiveAndEveryDurationFindsItsBucket) {
  const Buckets& buckets = *GetParam();
  for (size_t i = 0; i < buckets.bounds().size(); ++i) {
    EXPECT_EQ(buckets.Find(buckets.bounds()[i] - 1), i);
    EXPECT_EQ(buckets.Find(buckets.bounds()[i]), i);
    EXPECT_EQ(buckets.Find(buckets.bounds()[i] + 1), i + 1);
  }
  EXPECT_EQ(buckets.Find(0), 0u);
  EXPECT_EQ(buckets.Find(~uint64_t{0}), buckets.bounds().size());
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t n = random() >> (random() % 64);
    ASSERT_EQ(buckets.Find(n), SlowFind(buckets, n)) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BucketsTest,
                         testing::Values(&Buckets::Calls(), &Buckets::Tiers()));

TEST(BucketsTest, CallBucketsTellHitsApartAndReachTwoMinutes) {
  const Buckets& calls = Buckets::Calls();
  // Hits take 20 to 200 us: no two of these fall into one bucket.
  size_t last = calls.Find(20'000);
  for (const uint64_t us : {30, 50, 75, 100, 150, 200}) {
    EXPECT_GT(calls.Find(us * 1000), last) << us;
    last = calls.Find(us * 1000);
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
  EXPECT_EQ(read.counts, (std::vector<uint64_t>{3, 1, 1}));
  EXPECT_EQ(read.count, 5u);
  EXPECT_EQ(read.sum, absl::Microseconds(3'003'500));
}

TEST(HistogramTest, AnUnboundHandleObservesNothing) {
  Histogram().Observe(absl::Seconds(1));
  EXPECT_EQ(Histogram().Read().count, 0u);
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
  // Reading meanwhile stops nobody and sees no more than there is.
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const uint64_t count = histogram.Read().count;
    EXPECT_GE(count, last);
    EXPECT_LE(count, 80000u);
    last = count;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Read().count, 80000u);
  EXPECT_EQ(histogram.Read().sum, absl::Microseconds(42) * 80000);
}

TEST(DistributionTest, AnEmptyOneHasQuantileZero) {
  EXPECT_EQ(Distribution().Quantile(0.5), absl::ZeroDuration());
}

TEST(DistributionTest, QuantilesInterpolateWithinABucket) {
  Registry registry;
  const Buckets buckets({absl::Milliseconds(10), absl::Milliseconds(20)});
  const Histogram histogram = registry.AddHistogram(Latency(), {}, buckets);
  for (int i = 0; i < 100; ++i) histogram.Observe(absl::Milliseconds(15));
  EXPECT_EQ(histogram.Read().Quantile(0.5), absl::Milliseconds(15));
  EXPECT_EQ(histogram.Read().Quantile(1), absl::Milliseconds(20));
  EXPECT_EQ(histogram.Read().Quantile(0), absl::Milliseconds(10));
}

TEST(DistributionTest, AboveTheHighestBoundTheHighestBoundIsTold) {
  Registry registry;
  const Buckets buckets({absl::Milliseconds(10)});
  const Histogram histogram = registry.AddHistogram(Latency(), {}, buckets);
  histogram.Observe(absl::Hours(1));
  EXPECT_EQ(histogram.Read().Quantile(0.99), absl::Milliseconds(10));
}

// The estimate lies in the bucket in which the true quantile lies.
TEST(DistributionTest, EstimatesAreWithinABucketOfTheTruth) {
  Registry registry;
  const Buckets& buckets = Buckets::Calls();
  const Histogram histogram = registry.AddHistogram(Latency(), {}, buckets);
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> latency(11.5, 1.5);  // around 100 us
  std::vector<uint64_t> all;
  for (int i = 0; i < 20000; ++i) {
    const auto n = static_cast<uint64_t>(latency(random));
    all.push_back(n);
    histogram.ObserveNanoseconds(n);
  }
  std::sort(all.begin(), all.end());
  const Distribution read = histogram.Read();
  for (const double q : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const uint64_t truth = all[static_cast<size_t>(q * all.size())];
    const uint64_t estimate = absl::ToInt64Nanoseconds(read.Quantile(q));
    EXPECT_EQ(buckets.Find(estimate), buckets.Find(truth)) << q;
  }
}

TEST(DistributionTest, AddsUp) {
  Registry registry;
  const Histogram a = registry.AddHistogram(Latency(), {}, Buckets::Calls());
  const Histogram b = registry.AddHistogram(Latency(), {}, Buckets::Calls());
  a.Observe(absl::Seconds(1));
  b.Observe(absl::Seconds(2));
  Distribution sum;
  sum += a.Read();
  sum += b.Read();
  EXPECT_EQ(sum.count, 2u);
  EXPECT_EQ(sum.sum, absl::Seconds(3));
}

}  // namespace
}  // namespace fncache::metrics
