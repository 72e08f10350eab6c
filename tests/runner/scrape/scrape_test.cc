// SPDX-License-Identifier: Apache-2.0
#include "runner/scrape/scrape.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace fncache::runner::scrape {
namespace {

constexpr char kText[] =
    "# HELP a_total words 9\n"
    "# TYPE a_total counter\n"
    "a_total{tier=\"memory\",x=\"1\"} 2\n"
    "a_total{tier=\"disk\",x=\"1\"} 3.5\n"
    "a_total_more{tier=\"disk\"} 100\n"
    "b 1e3\n";

TEST(ScrapeTest, SumsSamplesOfOneNameByLabel) {
  EXPECT_EQ(Sum(kText, "a_total"), 5.5);
  EXPECT_EQ(Sum(kText, "a_total", "tier=\"disk\""), 3.5);
  EXPECT_EQ(Sum(kText, "b"), 1000);
  EXPECT_EQ(Sum(kText, "c"), 0);
  EXPECT_EQ(Sum("", "a_total"), 0);
}

constexpr char kHistogram[] =
    "t_bucket{f=\"a\",o=\"hit\",le=\"0.001\"} 0\n"
    "t_bucket{f=\"a\",o=\"hit\",le=\"0.002\"} 6\n"
    "t_bucket{f=\"a\",o=\"hit\",le=\"0.004\"} 8\n"
    "t_bucket{f=\"a\",o=\"hit\",le=\"+Inf\"} 10\n"
    "t_bucket{f=\"a\",o=\"miss\",le=\"0.001\"} 100\n"
    "t_bucket{f=\"a\",o=\"miss\",le=\"0.002\"} 100\n"
    "t_bucket{f=\"a\",o=\"miss\",le=\"0.004\"} 100\n"
    "t_bucket{f=\"a\",o=\"miss\",le=\"+Inf\"} 100\n"
    "t_bucket{f=\"a\",o=\"none\",le=\"+Inf\"} 0\n"
    "t_sum{f=\"a\",o=\"hit\"} 1\n";

absl::Duration Rounded(absl::Duration duration) {
  return absl::Trunc(duration + absl::Microseconds(1) / 2,
                     absl::Microseconds(1));
}

TEST(ScrapeTest, QuantilesAreOnALineThroughTheirBucket) {
  const auto quantile = [](absl::string_view label, double fraction) {
    return Rounded(Quantile(kHistogram, "t", label, fraction));
  };
  EXPECT_EQ(quantile("o=\"hit\"", 0.3), absl::Microseconds(1500));
  EXPECT_EQ(quantile("o=\"hit\"", 0.6), absl::Milliseconds(2));
  EXPECT_EQ(quantile("o=\"hit\"", 0.7), absl::Milliseconds(3));
  // All series together: nearly all are in the first bucket.
  EXPECT_EQ(quantile("f=\"a\"", 0.5), absl::Microseconds(550));
}

TEST(ScrapeTest, AQuantileBeyondTheLastBoundIsThatBound) {
  EXPECT_EQ(Rounded(Quantile(kHistogram, "t", "o=\"hit\"", 0.99)),
            absl::Milliseconds(4));
}

TEST(ScrapeTest, NothingCountedHasNoQuantile) {
  EXPECT_EQ(Quantile(kHistogram, "t", "o=\"none\"", 0.5), absl::ZeroDuration());
  EXPECT_EQ(Quantile(kHistogram, "u", "", 0.5), absl::ZeroDuration());
  EXPECT_EQ(Quantile("", "t", "", 0.5), absl::ZeroDuration());
}

TEST(ScrapeTest, NobodyThereIsAnErrorThatNamesTheAddress) {
  // Port 1 of this machine: nothing listens there.
  const auto nobody = Get("127.0.0.1:1", "/metrics", absl::Seconds(5));
  EXPECT_EQ(nobody.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StartsWith(nobody.status().message(),
                               "http://127.0.0.1:1/metrics: "))
      << nobody.status();
  EXPECT_FALSE(Get("127.0.0.1:nonsense", "/", absl::Seconds(5)).ok());
}

}  // namespace
}  // namespace fncache::runner::scrape
