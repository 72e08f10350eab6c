// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/fisher.h"

#include "gtest/gtest.h"

namespace fncache::proxy::telemetry {
namespace {

// By the definition, in integers; for small numbers.
double Choose(uint64_t n, uint64_t k) {
  uint64_t chosen = 1;
  for (uint64_t i = 1; i <= k; ++i) chosen = chosen * (n - k + i) / i;
  return static_cast<double>(chosen);
}

TEST(Fisher, IsTheSumOfTheHypergeometricTail) {
  for (uint64_t n1 = 1; n1 <= 12; ++n1) {
    for (uint64_t n2 = 1; n2 <= 9; ++n2) {
      for (uint64_t a = 0; a <= n1; ++a) {
        for (uint64_t c = 0; c <= n2; ++c) {
          double sum = 0;
          for (uint64_t k = 0; k <= c; ++k) {
            if (a + c - k > n1) continue;
            sum += Choose(n2, k) * Choose(n1, a + c - k);
          }
          EXPECT_NEAR(FisherGreater({a, n1}, {c, n2}),
                      sum / Choose(n1 + n2, a + c), 1e-12)
              << a << " of " << n1 << ", " << c << " of " << n2;
        }
      }
    }
  }
}

TEST(Fisher, AnswersWhatIsKnown) {
  // The lady who tasted tea: 3 of 4 cups.
  EXPECT_NEAR(FisherGreater({3, 4}, {1, 4}), 17.0 / 70, 1e-12);
  EXPECT_NEAR(FisherGreater({4, 304}, {1, 13}), 0.985489, 1e-6);
  EXPECT_NEAR(FisherGreater({60, 300}, {3, 30}), 0.136521, 1e-6);
  EXPECT_LT(FisherGreater({400, 400}, {0, 9}), 1e-15);
}

TEST(Fisher, NothingIsKnownWithoutTrials) {
  EXPECT_EQ(FisherGreater({0, 0}, {5, 5}), 1);
  EXPECT_EQ(FisherGreater({5, 5}, {0, 0}), 1);
  EXPECT_EQ(FisherGreater({5, 5}, {9, 9}), 1);
  EXPECT_EQ(FisherGreater({0, 5}, {0, 9}), 1);
}

TEST(Fisher, LargeNumbersAreNoTrouble) {
  constexpr uint64_t kMany = 1'000'000'000;
  EXPECT_NEAR(FisherGreater({kMany / 10, kMany}, {kMany / 10, kMany}), 0.5,
              0.001);
  EXPECT_LT(FisherGreater({kMany / 10 + 1'000'000, kMany}, {kMany / 10, kMany}),
            1e-12);
  EXPECT_NEAR(
      FisherGreater({kMany / 10 - 1'000'000, kMany}, {kMany / 10, kMany}), 1,
      1e-9);
  // Nearly all of one, hardly any of the other.
  EXPECT_EQ(FisherGreater({1, kMany}, {kMany - 1, kMany}), 1);
}

}  // namespace
}  // namespace fncache::proxy::telemetry
