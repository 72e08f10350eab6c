// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/alter.h"

#include <cctype>
#include <cmath>
#include <limits>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fncache::runner::probe {
namespace {

TEST(AlteredText, IsNeverTheTextAndHasItsForm) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (const std::string text :
         {"eu-west-1", "123456", "7", "9", "0", "a", "z", "Z", "v1.2.3",
          "e.org/v1", "2eec6b1c-6bbd-4b5a-9b52-0a3c6f1d2e4f"}) {
      const std::string altered = AlteredText(text, seed);
      EXPECT_NE(altered, text);
      ASSERT_EQ(altered.size(), text.size()) << text;
      for (size_t i = 0; i < text.size(); ++i) {
        EXPECT_EQ(std::isdigit(altered[i]) != 0, std::isdigit(text[i]) != 0)
            << altered;
        EXPECT_EQ(std::isalpha(altered[i]) != 0, std::isalpha(text[i]) != 0)
            << altered;
      }
    }
  }
}

TEST(AlteredText, NumbersKeepTheirLength) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_NE(AlteredText("4711", seed)[0], '0');
  }
}

TEST(AlteredText, TimesStayTimes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string altered = AlteredText("2026-02-28T23:59:59Z", seed);
    absl::Time time;
    std::string why;
    EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, altered, &time, &why))
        << altered;
    EXPECT_NE(altered, "2026-02-28T23:59:59Z");
  }
}

TEST(AlteredText, WordsOfConditionsBecomeOthersOfThem) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::string status = AlteredText("True", seed);
    EXPECT_TRUE(status == "False" || status == "Unknown") << status;
    EXPECT_EQ(AlteredText("true", seed), "false");
    EXPECT_EQ(AlteredText("false", seed), "true");
  }
}

TEST(AlteredText, WhatHasNothingToAlterGrows) {
  EXPECT_EQ(AlteredText("", 1), "x");
  EXPECT_EQ(AlteredText("--", 1), "--x");
  EXPECT_EQ(AlteredText("\xc3\xa9", 1), "\xc3\xa9x");
}

TEST(AlteredNumber, IsAnotherOne) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (const double number : {0.0, 1.0, -1.0, 3.5, 1e300, -1e300, 1e16}) {
      const double altered = AlteredNumber(number, seed);
      EXPECT_NE(altered, number);
      EXPECT_TRUE(std::isfinite(altered));
    }
    const double altered = AlteredNumber(3, seed);
    EXPECT_EQ(altered, std::floor(altered));
    EXPECT_GT(altered, 0);
    EXPECT_TRUE(std::isfinite(
        AlteredNumber(std::numeric_limits<double>::infinity(), seed)));
  }
}

}  // namespace
}  // namespace fncache::runner::probe
