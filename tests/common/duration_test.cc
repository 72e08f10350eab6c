// SPDX-License-Identifier: Apache-2.0
#include "common/duration.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::HasSubstr;

absl::Duration Parsed(absl::string_view text) {
  const auto duration = ParseGoDuration(text);
  EXPECT_TRUE(duration.ok()) << text << ": " << duration.status();
  return duration.value_or(absl::InfiniteDuration());
}

TEST(DurationTest, ReadsWhatGoReads) {
  const struct {
    const char* text;
    int64_t nanoseconds;
  } kCases[] = {
      {"0", 0},
      {"+0", 0},
      {"-0", 0},
      {"0s", 0},
      {"90s", 90'000'000'000},
      {"1h30m", 5'400'000'000'000},
      {"1.5h", 5'400'000'000'000},
      {"100ms", 100'000'000},
      {"-1s", -1'000'000'000},
      {"+5s", 5'000'000'000},
      {"5.s", 5'000'000'000},
      {".5s", 500'000'000},
      {"1us", 1'000},
      {"1\xc2\xb5s", 1'000},
      {"1\xce\xbcs", 1'000},
      {"7ns", 7},
      {"1.9ns", 1},
      {"3m1h", 3'780'000'000'000},
      {"0.3333333333333333333h", 1'200'000'000'000},
      {"9223372036854775807ns", std::numeric_limits<int64_t>::max()},
      {"-9223372036854775808ns", std::numeric_limits<int64_t>::min()},
      {"0.00000000000000000000000000001h", 0},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(Parsed(test.text), absl::Nanoseconds(test.nanoseconds))
        << test.text;
  }
}

TEST(DurationTest, RefusesTheRestAndSaysWhatIsAccepted) {
  for (const char* text :
       {"",     "-",      "+",   "5",   "s",   ".",      ".s",    "-.s",
        "1x",   "1d",     "1 s", " 1s", "1s ", "1h-30m", "--1s",  "1e3s",
        "0x1s", "1.2.3s", "00",  "1S",  "inf", "1h30",   "1\xc2s"}) {
    const auto duration = ParseGoDuration(text);
    ASSERT_FALSE(duration.ok()) << text;
    EXPECT_THAT(duration.status().message(), HasSubstr("90s, 1h30m")) << text;
  }
}

TEST(DurationTest, RefusesWhatOverflows) {
  for (const char* text :
       {"9223372036854775808ns", "-9223372036854775809ns",
        "18446744073709551616ns", "99999999999999999999h", "2562048h",
        "2562047h60m", "9223372036854775807ns1ns",
        "9223372036854775808ns9223372036854775808ns",
        "2562047h47m16.854775808s"}) {
    const auto duration = ParseGoDuration(text);
    ASSERT_FALSE(duration.ok()) << text;
    EXPECT_THAT(duration.status().message(), HasSubstr("out of range"));
  }
}

TEST(DurationTest, MessagesQuoteNothingRaw) {
  EXPECT_THAT(ParseGoDuration("1\n2").status().message(), Not(HasSubstr("\n")));
  EXPECT_LT(ParseGoDuration(std::string(100000, 'x')).status().message().size(),
            200u);
}

TEST(DurationTest, PrintsAsGoPrints) {
  EXPECT_EQ(FormatGoDuration(absl::ZeroDuration()), "0s");
  EXPECT_EQ(FormatGoDuration(absl::Nanoseconds(1)), "1ns");
  EXPECT_EQ(FormatGoDuration(absl::Nanoseconds(1100)), "1.1\xc2\xb5s");
  EXPECT_EQ(FormatGoDuration(absl::Microseconds(2200)), "2.2ms");
  EXPECT_EQ(FormatGoDuration(absl::Milliseconds(100)), "100ms");
  EXPECT_EQ(FormatGoDuration(absl::Milliseconds(3300)), "3.3s");
  EXPECT_EQ(FormatGoDuration(absl::Seconds(90)), "1m30s");
  EXPECT_EQ(FormatGoDuration(absl::Seconds(245)), "4m5s");
  EXPECT_EQ(FormatGoDuration(absl::Hours(24)), "24h0m0s");
  EXPECT_EQ(FormatGoDuration(absl::Hours(5) + absl::Seconds(7) +
                             absl::Milliseconds(1)),
            "5h0m7.001s");
  EXPECT_EQ(FormatGoDuration(absl::Seconds(-90)), "-1m30s");
  EXPECT_EQ(FormatGoDuration(absl::InfiniteDuration()),
            "2562047h47m16.854775807s");
  EXPECT_EQ(FormatGoDuration(-absl::InfiniteDuration()),
            "-2562047h47m16.854775808s");
}

TEST(DurationTest, RoundTripsExactly) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    // Every magnitude, not only large ones.
    const auto nanoseconds = static_cast<int64_t>(random()) >> (random() % 64);
    const absl::Duration duration = absl::Nanoseconds(nanoseconds);
    const std::string text = FormatGoDuration(duration);
    const auto back = ParseGoDuration(text);
    ASSERT_TRUE(back.ok()) << text << ": " << back.status();
    ASSERT_EQ(*back, duration) << text;
  }
}

}  // namespace
}  // namespace fncache
