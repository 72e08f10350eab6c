// SPDX-License-Identifier: Apache-2.0
// Tuning with the binary as people run it: when an entry answers across drift,
// and when it does not.
#include <csignal>
#include <string>

#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/integration/tuning_testing.h"

namespace fncache::testing {
namespace {

Reply Tier(const Request& request) {
  return Text(Composite(request), {"spec", "tier"});
}

TEST_F(TuningTest, AnEntryAnswersAcrossDriftOnceItIsProven) {
  StartProcess(Tier);
  EXPECT_EQ(CallOnce().cache, "fwd=miss; stored; detail=new");
  // Equal drift needs no proof.
  const Got equal = CallOnce();
  EXPECT_TRUE(equal.hit() && !equal.across()) << equal.cache;
  cluster_.Tick();
  EXPECT_EQ(CallOnce().cache, "fwd=miss; stored; detail=\"drift: unproven\"");
  EXPECT_EQ(function_->questions(), 0);
  cluster_.Tick();
  EXPECT_EQ(CallOnce().cache, "fwd=miss; stored; detail=\"drift: unproven\"");
  ASSERT_TRUE(Eventually([&] { return function_->questions() == 4; }));
  WaitUntilQuiet();
  const int runs = function_->runs();
  for (int i = 0; i < 20; ++i) {
    cluster_.Tick();
    const Got got = CallOnce();
    EXPECT_TRUE(got.hit() && got.across()) << got.cache;
  }
  EXPECT_EQ(function_->runs(), runs);
  // Another word is another request.
  cluster_.tier = "gold";
  const Got other = CallOnce();
  EXPECT_FALSE(other.hit()) << other.cache;
  EXPECT_EQ(other.why(), "");
}

TEST_F(TuningTest, AKindThatMovesForTheFirstTimeCallsTheFunction) {
  StartProcess(Tier);
  ASSERT_TRUE(TickUntil(IsAcross));
  ++cluster_.transition;
  EXPECT_EQ(CallOnce().cache,
            "fwd=miss; stored; "
            "detail=\"drift: moved status lastTransitionTime\"");
}

TEST_F(TuningTest, WithoutAShareNothingIsAsked) {
  StartProcess(Tier);
  WriteFile(file_, Settings("tune: on\ntune_share: 0\n"));
  process_->Signal(SIGHUP);
  ASSERT_TRUE(process_->WaitForStderr("settings were reloaded"))
      << process_->Stderr();
  for (int i = 0; i < 10; ++i) {
    cluster_.Tick();
    EXPECT_FALSE(CallAndWait().hit());
  }
  EXPECT_EQ(function_->runs(), 10);
}

// The budget begins at 40 questions, and each run adds `tune_share` of one.
TEST_F(TuningTest, QuestionsStayWithinTheBudget) {
  Start(Tier);
  Reload("tune: on\n");
  for (int i = 0; i < 40; ++i) {
    cluster_.name = std::to_string(i);
    for (int tick = 0; tick < 5; ++tick) {
      cluster_.Tick();
      CallAndWait();
    }
  }
  const int runs = function_->runs() - function_->questions();
  // A hit across drift adds half a question.
  EXPECT_LE(function_->questions(), 40 + 0.1 * runs + 0.5 * hits_);
  EXPECT_GE(function_->questions(), 40);
  EXPECT_GT(runs, 100) << "most are not proven";
}

}  // namespace
}  // namespace fncache::testing
