// SPDX-License-Identifier: Apache-2.0
// Part of every test program: tests of one process that start a child.
//
// With sanitizers a process runs a shard of a program (cmake/Toolbox.cmake). A
// test that runs its own program again, for one test, must not pass the shard
// on: the child would run nothing. A death test must run its child anew, as
// threads of tests before it may still be there, and the leak check of a forked
// child fails beside them.
#include <cstdlib>

#include "gtest/gtest.h"

namespace fncache::testing {
namespace {

class ForChildren final : public ::testing::Environment {
 public:
  // GoogleTest has read these by now.
  void SetUp() override {
    for (const char* const name :
         {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_OUTPUT"}) {
      unsetenv(name);
    }
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

const auto* const kRegistered =
    ::testing::AddGlobalTestEnvironment(new ForChildren);

}  // namespace
}  // namespace fncache::testing
