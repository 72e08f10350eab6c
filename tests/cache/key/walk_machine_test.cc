// SPDX-License-Identifier: Apache-2.0
// The copies, checks and orders of each machine are compared with the plainest
// code for them, in buffers of exactly the allowed size.
#include "cache/key/walk_machine.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"

namespace fncache::cache::key {
namespace {

// The machine that these functions need.
template <typename Ways>
constexpr Machine Needed() {
#if defined(__x86_64__)
  if (std::is_same<Ways, Avx2Machine>::value) return Machine::kAvx2;
#endif
  return Machine::kAny;
}

template <typename Ways>
class WalkMachineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (ThisMachine() < Needed<Ways>()) {
      GTEST_SKIP() << "this machine does not have the instructions";
    }
  }
  std::mt19937_64 random_{1};
};

#if defined(__x86_64__)
using AllInstructions = testing::Types<AnyMachine, Avx2Machine>;
#else
using AllInstructions = testing::Types<AnyMachine>;
#endif
TYPED_TEST_SUITE(WalkMachineTest, AllInstructions);

TYPED_TEST(WalkMachineTest, CopiesSixtyFourBytesAndTellsWhichAreNotAscii) {
  const auto from = std::make_unique<char[]>(64);
  const auto to = std::make_unique<char[]>(64);
  for (int run = 0; run < 1000; ++run) {
    uint64_t expected = 0;
    for (int i = 0; i < 64; ++i) {
      from[i] = static_cast<char>(this->random_());
      // Also with few that are not ASCII, and with one.
      if (run % 3 == 1 && this->random_() % 16 != 0) from[i] &= 0x7f;
      if (run % 3 == 2) from[i] = static_cast<char>(i == run % 64 ? 0x80 : 'a');
      if (static_cast<uint8_t>(from[i]) >= 0x80) expected |= uint64_t{1} << i;
    }
    ASSERT_EQ(TypeParam::Copy(from.get(), to.get()), expected);
    ASSERT_TRUE(std::equal(from.get(), from.get() + 64, to.get()));
  }
}

TYPED_TEST(WalkMachineTest, LowGoesByTheLowEightBitsOfTheCount) {
  for (uint64_t count = 0; count < 256; ++count) {
    const uint64_t bits = this->random_();
    uint64_t expected = 0;
    for (uint64_t i = 0; i < std::min<uint64_t>(count, 64); ++i) {
      expected |= bits & (uint64_t{1} << i);
    }
    EXPECT_EQ(TypeParam::Low(bits, count), expected) << count;
    EXPECT_EQ(TypeParam::Low(bits, count | this->random_() << 8), expected)
        << count;
  }
}

TYPED_TEST(WalkMachineTest, RanksByUpperHalvesAndTellsThatTwoAreTheSame) {
  constexpr int32_t kEnds[] = {std::numeric_limits<int32_t>::min(),
                               std::numeric_limits<int32_t>::max(), -1, 0, 1};
  size_t same = 0;
  size_t different = 0;
  for (size_t count = 0; count <= kMostRanked; ++count) {
    for (int run = 0; run < 60; ++run) {
      std::vector<int32_t> halves;
      for (size_t i = 0; i < count; ++i) {
        halves.push_back(run % 2 == 0 && i < 5
                             ? kEnds[i]
                             : static_cast<int32_t>(this->random_()));
      }
      // One of them twice, be it the least or the greatest.
      if (run % 3 == 0 && count > 1) {
        halves[this->random_() % count] = halves[this->random_() % count];
      }
      std::shuffle(halves.begin(), halves.end(), this->random_);
      const auto words = std::make_unique<int64_t[]>(count + kRankPadding);
      const auto ranked = std::make_unique<uint32_t[]>(count + kRankPadding);
      for (size_t i = 0; i < count; ++i) {
        // The lower halves say nothing.
        words[i] = halves[i] * (int64_t{1} << 32) |
                   static_cast<uint32_t>(this->random_());
      }
      std::vector<int32_t> sorted = halves;
      std::sort(sorted.begin(), sorted.end());
      const bool unique =
          std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
      ++(unique ? different : same);
      const bool ok = TypeParam::Rank(words.get(), count, ranked.get());
      if (sorted.empty() || sorted.back() != kEnds[1]) {
        ASSERT_EQ(ok, unique);
      } else if (!unique) {
        ASSERT_FALSE(ok);
      }
      for (size_t i = 0; ok && i < count; ++i) {
        ASSERT_EQ(halves[ranked[i]], sorted[i]) << count << " " << i;
      }
    }
  }
  EXPECT_GT(same, 1000U);
  EXPECT_GT(different, 1000U);
}

}  // namespace
}  // namespace fncache::cache::key
