// SPDX-License-Identifier: Apache-2.0
#include "common/status.h"

#include "gtest/gtest.h"

namespace fncache {
namespace {

TEST(PrefixedTest, KeepsTheCodeAndPutsThePrefixBeforeTheMessage) {
  EXPECT_EQ(Prefixed("a.yaml", absl::NotFoundError("line 3: no such field")),
            absl::NotFoundError("a.yaml: line 3: no such field"));
}

TEST(PrefixedTest, WhatIsOkStaysOk) {
  EXPECT_TRUE(Prefixed("a.yaml", absl::OkStatus()).ok());
}

}  // namespace
}  // namespace fncache
