// SPDX-License-Identifier: Apache-2.0
// All checks over random functions: the hint names all that a function reads,
// whichever code reads it, and no lost value deletes a resource.
#include "tests/runner/testing/random_functions.h"

#include <iostream>

#include "gtest/gtest.h"
#include "tests/common/long_form.h"

namespace fncache::function::testing {
namespace {

using fncache::testing::ShortOrLong;

TEST(RandomFunctionsTest, PassAllChecks) {
  const uint64_t functions = ShortOrLong(60, 500);
  uint64_t fatal = 0, read = 0, calls = 0;
  for (uint64_t seed = 0; seed < functions; ++seed) {
    const Call call = RandomCall(RandomFunction(seed), seed);
    const Answer answer = call();
    fatal += !answer.fatal().empty();
    read += answer.reads().size();
    const CheckResult reads = CheckReads(call);
    ASSERT_TRUE(reads) << "function " << seed << "\n" << answer.yaml();
    const CheckResult equal = CheckDeterministic(call, /*rounds=*/2);
    ASSERT_TRUE(equal) << "function " << seed << "\n" << answer.yaml();
    const CheckResult safe = CheckSafe(call);
    ASSERT_TRUE(safe) << "function " << seed << "\n" << answer.yaml();
    calls += reads.calls() + equal.calls() + safe.calls();
  }
  // Enough of them get beyond their first mistake.
  EXPECT_LT(fatal, functions / 2);
  EXPECT_GT(read, functions * 3);
  std::cout << functions << " functions, " << calls << " calls, " << read
            << " paths read, " << fatal << " FATAL\n";
}

}  // namespace
}  // namespace fncache::function::testing
