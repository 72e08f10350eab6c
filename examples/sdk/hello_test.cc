// SPDX-License-Identifier: Apache-2.0
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

void Hello(fncache::function::Context& ctx);  // hello.cc

namespace ft = fncache::function::testing;

TEST(Hello, SaysSoAndKeepsWhatEarlierStepsDesire) {
  ft::Call call(Hello);
  call.desired("bucket", "kind: Bucket");
  const ft::Answer answer = call();
  ASSERT_EQ(answer.results().size(), 1u);
  EXPECT_EQ(answer.results()[0].message, "hello");
  EXPECT_THAT(answer.resource("bucket"), ft::IsYaml("kind: Bucket"));
  EXPECT_THAT(answer.reads(), testing::IsEmpty());
  EXPECT_TRUE(ft::CheckDeterministic(call));
}
