// SPDX-License-Identifier: Apache-2.0
#include "http2/loop.h"

#include <chrono>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace fncache::http2 {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr int64_t kMilli = 1'000'000;
constexpr int64_t kMinute = 60'000 * kMilli;

struct TurnEnd final : Loop::Ender {
  void OnTurnEnd() override { ++ends; }
  int ends = 0;
};

TEST(LoopTest, ATurnByItselfWaitsUntilItShould) {
  Loop loop;
  const int64_t until = Now() + 300'000;
  loop.RunOnce(until);
  EXPECT_GE(Now(), until);
  loop.RunOnce(0);  // does not wait
}

TEST(LoopTest, ATurnByItselfServesWhatIsDue) {
  Loop loop;
  std::string done;
  loop.After(absl::Milliseconds(3), [&] { done += "later "; });
  loop.After(absl::Microseconds(300), [&] { done += "soon "; });
  loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(done, "soon ");
  loop.Post([&] { done += "posted "; });
  loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(done, "soon posted ");
  loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(done, "soon posted later ");
}

TEST(LoopTest, WhatWasBegunBetweenTurnsEndsBeforeTheWait) {
  Loop loop;
  TurnEnd turn_end;
  loop.AtTurnEnd(&turn_end);
  int ends_at_post = 0;
  loop.Post([&] { ends_at_post = turn_end.ends; });
  loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(ends_at_post, 1);
  EXPECT_EQ(turn_end.ends, 1);
}

}  // namespace
}  // namespace fncache::http2
