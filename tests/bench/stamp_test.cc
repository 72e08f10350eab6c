// SPDX-License-Identifier: Apache-2.0
#include "bench/stamp.h"

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "bench/random.h"
#include "bench/request_encoding.h"
#include "bench/request_generator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::bench {
namespace {

using ::testing::HasSubstr;

constexpr absl::Time kMade = absl::FromUnixSeconds(1'750'000'000);

std::string AnswerTo(uint64_t key) {
  char digits[kSlotDigits];
  WriteSlot(key, digits);
  return absl::StrCat("before", Stamp({digits, kSlotDigits}, kMade), "after");
}

TEST(StampTest, AStampIsOfItsKeyAndTime) {
  EXPECT_TRUE(CheckStamp(AnswerTo(7), 7, kMade).ok());
  EXPECT_THAT(CheckStamp(AnswerTo(8), 7, kMade).message(),
              HasSubstr("another request"));
  EXPECT_THAT(
      CheckStamp(AnswerTo(7), 7, kMade + absl::Nanoseconds(1)).message(),
      HasSubstr("too old"));
}

TEST(StampTest, AnswersWithoutAWholeStampAreWrong) {
  const std::string answer = AnswerTo(7);
  const size_t end = answer.size() - std::string("after").size();
  for (size_t size = 0; size < end; ++size) {
    const std::string cut = answer.substr(0, size) + "after";
    EXPECT_FALSE(CheckStamp(cut, 7, kMade).ok()) << cut;
  }
}

TEST(ZipfTest, NumbersComeByTheirRank) {
  constexpr int kPicks = 110'000;
  const Zipf zipf(4);  // weights 1, 1/2, 1/3, 1/4: 12/25, 6/25, 4/25, 3/25
  Random random(1);
  std::array<int, 4> counts = {};
  for (int i = 0; i < kPicks; ++i) ++counts[zipf.Pick(&random)];
  const std::array<double, 4> wanted = {12, 6, 4, 3};
  for (size_t k = 0; k < counts.size(); ++k) {
    EXPECT_NEAR(counts[k], wanted[k] / 25 * kPicks, 0.02 * kPicks) << k;
  }
  EXPECT_EQ(Zipf(1).Pick(&random), 0u);
}

}  // namespace
}  // namespace fncache::bench
