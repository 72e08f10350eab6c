// SPDX-License-Identifier: Apache-2.0
#include "common/size.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::HasSubstr;

TEST(SizeTest, ReadsBinaryAndDecimalUnits) {
  const struct {
    const char* text;
    uint64_t bytes;
  } kCases[] = {
      {"0", 0},
      {"1024", 1024},
      {"7B", 7},
      {"256MiB", 256ull << 20},
      {"4GiB", 4ull << 30},
      {"64MB", 64'000'000},
      {"1kB", 1000},
      {"1KB", 1000},
      {"1KiB", 1024},
      {"256Mi", 256ull << 20},
      {"1Ki", 1024},
      {"1.5Gi", 3ull << 29},
      {"2Ti", 2ull << 40},
      {"1Pi", 1ull << 50},
      {"15Ei", 15ull << 60},
      {"1.5GiB", 3ull << 29},
      {".5KiB", 512},
      {"1.1KiB", 1126},
      {"0.1GB", 100'000'000},
      {"15EiB", 15ull << 60},
      {"18EB", 18'000'000'000'000'000'000ull},
      {"18446744073709551615", std::numeric_limits<uint64_t>::max()},
      {"1.0000000000000000000000000000001KiB", 1024},
  };
  for (const auto& test : kCases) {
    const auto size = ParseSize(test.text);
    ASSERT_TRUE(size.ok()) << test.text << ": " << size.status();
    EXPECT_EQ(*size, test.bytes) << test.text;
  }
}

TEST(SizeTest, RefusesTheRestAndSaysWhatIsAccepted) {
  for (const char* text :
       {"",     ".",   "MiB",  "-1",      "+1",     "1 MiB",  " 1",   "1 ",
        "1mib", "1m",  "1M",   "1Mib",    "1mi",    "1i",     "1 Mi", "1e3",
        "0x10", "1.5", "1.5B", "1..5MiB", "1,5MiB", "256MiBB"}) {
    const auto size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_THAT(size.status().message(), HasSubstr("256MiB")) << text;
  }
}

TEST(SizeTest, RefusesWhatOverflows) {
  for (const char* text : {"18446744073709551616", "16EiB", "18.5EB",
                           "99999999999999999999999999EiB", "17179869184GiB"}) {
    const auto size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_THAT(size.status().message(), HasSubstr("out of range")) << text;
  }
}

TEST(SizeTest, PrintsTheSmallestWholeNumber) {
  EXPECT_EQ(FormatSize(0), "0");
  EXPECT_EQ(FormatSize(1), "1");
  EXPECT_EQ(FormatSize(1000), "1KB");
  EXPECT_EQ(FormatSize(1024), "1KiB");
  EXPECT_EQ(FormatSize(1025), "1025");
  EXPECT_EQ(FormatSize(256ull << 20), "256MiB");
  EXPECT_EQ(FormatSize(*ParseSize("1.5Gi")), "1536MiB");
  EXPECT_EQ(FormatSize(64'000'000), "64MB");
  EXPECT_EQ(FormatSize(3ull << 29), "1536MiB");
}

TEST(SizeTest, RoundTripsExactly) {
  std::mt19937_64 random(1);
  const uint64_t kUnits[] = {1, 1000, 1024, 1'000'000, 1 << 20, 1 << 30};
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t bytes = (random() >> (random() % 64)) * kUnits[random() % 6];
    const std::string text = FormatSize(bytes);
    const auto back = ParseSize(text);
    ASSERT_TRUE(back.ok()) << text << ": " << back.status();
    ASSERT_EQ(*back, bytes) << text;
  }
}

}  // namespace
}  // namespace fncache
