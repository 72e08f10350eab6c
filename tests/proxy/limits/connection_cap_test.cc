// SPDX-License-Identifier: Apache-2.0
#include "proxy/limits/connection_cap.h"

#include "gtest/gtest.h"

namespace fncache::proxy::limits {
namespace {

using Quota = Budget::Quota;

class ConnectionCapTest : public ::testing::Test {
 protected:
  Budget budget_{800, 1};  // reading 100
  const ConnectionCap cap_{&budget_};
};

TEST_F(ConnectionCapTest, AConnectionKeepsAtMostWhatItLeavesFree) {
  Charge first(&budget_, Quota::kKept, 0);
  first.Set(400);
  EXPECT_TRUE(cap_.MayKeep(400));
  first.Set(401);
  EXPECT_FALSE(cap_.MayKeep(401));
  // A second one has half of the remainder, and a third finds some, too.
  Charge second(&budget_, Quota::kKept, 0);
  second.Set(199);
  EXPECT_TRUE(cap_.MayKeep(199));
  second.Set(200);
  EXPECT_FALSE(cap_.MayKeep(200));
  Charge third(&budget_, Quota::kKept, 0);
  third.Set(99);
  EXPECT_TRUE(cap_.MayKeep(99));
}

TEST_F(ConnectionCapTest, SoDoItsLargeRequests) {
  Charge granted(&budget_, Quota::kReading, 0);
  EXPECT_TRUE(cap_.MayGrant(0, 50));
  EXPECT_FALSE(cap_.MayGrant(0, 51));
  granted.Set(50);
  EXPECT_FALSE(cap_.MayGrant(50, 1));
  EXPECT_TRUE(cap_.MayGrant(0, 25));
  EXPECT_FALSE(cap_.MayGrant(0, 26));
}

TEST_F(ConnectionCapTest, OtherBytesCountWhereTheyLeaveNothing) {
  Charge arriving(&budget_, Quota::kKept, 0);
  arriving.Set(760);
  EXPECT_TRUE(cap_.MayGrant(0, 20));
  EXPECT_FALSE(cap_.MayGrant(0, 21));
}

TEST_F(ConnectionCapTest, WithoutABudgetThereIsNone) {
  const ConnectionCap none(nullptr);
  EXPECT_TRUE(none.MayKeep(size_t{1} << 40));
  EXPECT_TRUE(none.MayGrant(size_t{1} << 40, size_t{1} << 40));
}

}  // namespace
}  // namespace fncache::proxy::limits
