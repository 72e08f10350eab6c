// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/units.h"

#include "gtest/gtest.h"

namespace fncache::proxy::admin {
namespace {

TEST(UnitsTest, NumbersAreShort) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(1234567), "1,234,567");
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(0.04), "0.0");
  EXPECT_EQ(ShortNumber(12.34), "12.3");
  EXPECT_EQ(ShortNumber(99.96), "100");
  EXPECT_EQ(ShortNumber(99999), "99999");
  EXPECT_EQ(ShortNumber(123456), "123k");
  EXPECT_EQ(ShortNumber(12345678), "12.3M");
  EXPECT_EQ(ShortCount(99999), "99999");
  EXPECT_EQ(ShortCount(1234567), "1235k");
}

TEST(UnitsTest, SizesAreShort) {
  EXPECT_EQ(ShortSize(0), "0 B");
  EXPECT_EQ(ShortSize(1023), "1023 B");
  EXPECT_EQ(ShortSize(1024), "1.0 KiB");
  EXPECT_EQ(ShortSize(1 << 20), "1.0 MiB");
  EXPECT_EQ(ShortSize((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(ShortSize(256 << 20), "256 MiB");
  EXPECT_EQ(ShortSize(uint64_t{5} << 40), "5.0 TiB");
}

TEST(UnitsTest, DurationsAreShort) {
  EXPECT_EQ(ShortDuration(absl::ZeroDuration()), "0s");
  EXPECT_EQ(ShortDuration(absl::Microseconds(12)), "12us");
  EXPECT_EQ(ShortDuration(absl::Microseconds(1234)), "1.23ms");
  EXPECT_EQ(ShortDuration(absl::Milliseconds(999.9)), "1s");
  EXPECT_EQ(ShortDuration(absl::Seconds(34)), "34s");
  EXPECT_EQ(ShortDuration(absl::Milliseconds(59990)), "1m0s");
  EXPECT_EQ(ShortDuration(absl::Seconds(123)), "2m3s");
  EXPECT_EQ(ShortDuration(absl::Hours(3) + absl::Minutes(4)), "3h4m");
  EXPECT_EQ(ShortDuration(absl::Hours(126)), "5d6h");
  EXPECT_EQ(ShortDuration(-absl::Seconds(34)), "-34s");
}

}  // namespace
}  // namespace fncache::proxy::admin
