// SPDX-License-Identifier: Apache-2.0
#include "common/listen_address.h"

#include "gtest/gtest.h"

namespace fncache {
namespace {

TEST(ListenAddressTest, WithoutAHostItIsEveryAddress) {
  EXPECT_EQ(WithHost(":9443"), "0.0.0.0:9443");
  EXPECT_EQ(WithHost("[::]:9443"), "[::]:9443");
  EXPECT_EQ(WithHost("localhost:0"), "localhost:0");
  EXPECT_EQ(WithHost("unix:/a:1"), "unix:/a:1");
  EXPECT_EQ(WithHost(""), "");
}

}  // namespace
}  // namespace fncache
