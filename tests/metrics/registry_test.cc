// SPDX-License-Identifier: Apache-2.0
#include "metrics/registry.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::metrics {
namespace {

TEST(RegistryTest, ExposesTheTextFormat) {
  const Family requests{
      "app_requests_total", Type::kCounter, {"method", "code"}, "Requests."};
  const Family saved{"app_saved_seconds_total", Type::kCounter, {}, "Saved."};
  const Family open{"app_open", Type::kGauge, {}, "Open now."};
  const Family size{"app_size_bytes", Type::kGauge, {"tier"}, "Size."};
  const Family took{"app_took_seconds", Type::kHistogram, {"of"}, "Took."};
  const Buckets buckets({absl::Microseconds(20), absl::Seconds(1)});
  Registry registry;
  const Counter get = registry.AddCounter(requests, {"get", "200"});
  const Counter seconds = registry.AddCounter(saved, {}, 1e-9);
  const UpDown level = registry.AddUpDown(open, {});
  registry.AddCallback(size, {"memory"}, [] { return 4096.0; });
  const Histogram histogram = registry.AddHistogram(took, {"hit"}, buckets);
  // A series of an existing family: it is written with the rest of the family.
  registry.AddCounter(requests, {"a \"b\"\\\nc", "500"});

  get.Add(3);
  seconds.Add(1'500'000'000);
  level.Add(2);
  level.Add(-3);
  histogram.Observe(absl::Microseconds(20));
  histogram.Observe(absl::Milliseconds(500));
  histogram.Observe(absl::Seconds(2));

  EXPECT_EQ(registry.Expose(), R"(# HELP app_requests_total Requests.
# TYPE app_requests_total counter
app_requests_total{method="get",code="200"} 3
app_requests_total{method="a \"b\"\\\nc",code="500"} 0
# HELP app_saved_seconds_total Saved.
# TYPE app_saved_seconds_total counter
app_saved_seconds_total 1.5
# HELP app_open Open now.
# TYPE app_open gauge
app_open -1
# HELP app_size_bytes Size.
# TYPE app_size_bytes gauge
app_size_bytes{tier="memory"} 4096
# HELP app_took_seconds Took.
# TYPE app_took_seconds histogram
app_took_seconds_count{of="hit"} 3
app_took_seconds_sum{of="hit"} 2.50002
app_took_seconds_bucket{of="hit",le="2e-05"} 1
app_took_seconds_bucket{of="hit",le="1"} 2
app_took_seconds_bucket{of="hit",le="+Inf"} 3
)");
}

TEST(RegistryTest, SomeSeriesAppearWithTheirFirstValue) {
  const Family calls{"app_calls_total", Type::kCounter, {"code"}, "Calls."};
  const Family took{"app_took_seconds", Type::kHistogram, {"of"}, "Took."};
  const Buckets buckets({absl::Seconds(1)});
  Registry registry;
  registry.AddCounter(calls, {"OK"});
  const Counter aborted =
      registry.AddCounter(calls, {"ABORTED"}, 1, Exposed::kOnceCounted);
  const Histogram histogram = registry.AddHistogram(took, {"hit"}, buckets);
  registry.AddHistogram(took, {"miss"}, buckets);
  const std::string nothing = R"(# HELP app_calls_total Calls.
# TYPE app_calls_total counter
app_calls_total{code="OK"} 0
# HELP app_took_seconds Took.
# TYPE app_took_seconds histogram
)";
  EXPECT_EQ(registry.Expose(), nothing);
  aborted.Add();
  histogram.Observe(absl::ZeroDuration());
  const std::string both = R"(# HELP app_calls_total Calls.
# TYPE app_calls_total counter
app_calls_total{code="OK"} 0
app_calls_total{code="ABORTED"} 1
# HELP app_took_seconds Took.
# TYPE app_took_seconds histogram
app_took_seconds_count{of="hit"} 1
app_took_seconds_sum{of="hit"} 0
app_took_seconds_bucket{of="hit",le="1"} 1
app_took_seconds_bucket{of="hit",le="+Inf"} 1
)";
  EXPECT_EQ(registry.Expose(), both);
}

TEST(RegistryTest, AHistogramExposesSomeOfItsBounds) {
  const Family took{"app_took_seconds", Type::kHistogram, {}, "Took."};
  const Buckets buckets(
      {absl::Seconds(1), absl::Seconds(2), absl::Seconds(3), absl::Seconds(4)},
      {absl::Seconds(2), absl::Seconds(3)});
  Registry registry;
  const Histogram histogram = registry.AddHistogram(took, {}, buckets);
  for (const int seconds : {1, 2, 3, 4, 5}) {
    histogram.Observe(absl::Seconds(seconds));
  }
  EXPECT_EQ(registry.Expose(), R"(# HELP app_took_seconds Took.
# TYPE app_took_seconds histogram
app_took_seconds_count 5
app_took_seconds_sum 15
app_took_seconds_bucket{le="2"} 2
app_took_seconds_bucket{le="3"} 3
app_took_seconds_bucket{le="+Inf"} 5
)");
  // A reader of the process gets all.
  EXPECT_EQ(histogram.Read().BucketCounts(),
            (std::vector<uint64_t>{1, 1, 1, 1, 1}));
}

TEST(RegistryTest, AnEmptyOneExposesNothing) {
  EXPECT_EQ(Registry().Expose(), "");
}

TEST(RegistryTest, LargeCountsKeepTheirDigits) {
  const Family bytes{"app_bytes_total", Type::kCounter, {}, "Bytes."};
  Registry registry;
  registry.AddCounter(bytes, {}).Add(1'234'567'890'123);
  EXPECT_THAT(registry.Expose(),
              testing::HasSubstr("app_bytes_total 1234567890123\n"));
}

}  // namespace
}  // namespace fncache::metrics
