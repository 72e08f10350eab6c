// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/distinct_count.h"

#include <cmath>
#include <cstdint>
#include <random>

#include "gtest/gtest.h"

namespace fncache::proxy::serving {
namespace {

TEST(DistinctCount, SmallNumbersAreExactHoweverOftenTheyCome) {
  std::mt19937_64 random(1);
  DistinctCount count;
  EXPECT_EQ(count.Estimate(), 0);
  uint64_t hashes[8];
  for (int i = 0; i < 8; ++i) {
    hashes[i] = random();
    for (int again = 0; again < 100; ++again)
      count.Add(hashes[again % (i + 1)]);
    EXPECT_EQ(count.Estimate(), i + 1);
  }
}

TEST(DistinctCount, LargeNumbersAreNear) {
  std::mt19937_64 random(2);
  DistinctCount count;
  uint64_t added = 0;
  for (const uint64_t until : {100, 1000, 2560, 10'000, 100'000, 1'000'000}) {
    for (; added < until; ++added) count.Add(random());
    const double error =
        std::abs(static_cast<double>(count.Estimate()) / until - 1);
    // Three standard errors.
    EXPECT_LT(error, 0.1) << until;
  }
}

TEST(DistinctCount, HashesOfOneRegisterAndNoBitsAreCounted) {
  DistinctCount count;
  count.Add(0);
  count.Add(~uint64_t{0});
  EXPECT_EQ(count.Estimate(), 2);
}

}  // namespace
}  // namespace fncache::proxy::serving
