// SPDX-License-Identifier: Apache-2.0
#include "insight/request/match_paths.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::insight::request {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<std::pair<size_t, size_t>> Pairs(const std::vector<uint64_t>& a,
                                             const std::vector<uint64_t>& b) {
  std::vector<std::pair<size_t, size_t>> pairs;
  MatchPaths(a, b, [&](size_t i, size_t j) { pairs.emplace_back(i, j); });
  return pairs;
}

TEST(MatchPathsTest, NodesAreInTheOrderOfTheFirstThenOfTheSecond) {
  EXPECT_THAT(Pairs({}, {}), ElementsAre());
  EXPECT_THAT(Pairs({1, 2}, {1, 2}), ElementsAre(Pair(0, 0), Pair(1, 1)));
  EXPECT_THAT(Pairs({1, 20, 30}, {1, 50, 30, 40}),
              ElementsAre(Pair(0, 0), Pair(1, kNoMatch), Pair(2, 2),
                          Pair(kNoMatch, 1), Pair(kNoMatch, 3)));
}

// The unknown fields of a Value and of the Struct in it have one path.
TEST(MatchPathsTest, TheSecondNodeOfAPathIsPairedWithTheSecond) {
  EXPECT_THAT(Pairs({10, 20, 20}, {20, 20, 10}),
              ElementsAre(Pair(0, 2), Pair(1, 0), Pair(2, 1)));
  EXPECT_THAT(Pairs({10, 20}, {20, 20}),
              ElementsAre(Pair(0, kNoMatch), Pair(1, 0), Pair(kNoMatch, 1)));
  EXPECT_THAT(Pairs({20, 20}, {10, 20}),
              ElementsAre(Pair(0, 1), Pair(1, kNoMatch), Pair(kNoMatch, 0)));
}

}  // namespace
}  // namespace fncache::insight::request
