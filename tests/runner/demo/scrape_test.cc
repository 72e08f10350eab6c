#include "runner/demo/scrape.h"

#include "gtest/gtest.h"

namespace fncache::runner::demo {
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

TEST(ScrapeTest, NobodyThereIsAnError) {
  // Port 1 of this machine: nothing listens there.
  EXPECT_FALSE(Get("127.0.0.1:1", "/metrics", absl::Seconds(5)).ok());
  EXPECT_FALSE(Get("nonsense", "/metrics", absl::Seconds(5)).ok());
}

}  // namespace
}  // namespace fncache::runner::demo
