// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/read_budget.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace fncache::insight::trace {
namespace {

// A process that reads as many composites as the budget allows.
class Process {
 public:
  explicit Process(const ReadLimits& limits) : budget_(limits) {}

  // Runs for `length`, with `others` cores of other work, where reading
  // everything would take `reading` cores. Returns the fraction of the CPU time
  // that reading took in the second half.
  double Run(absl::Duration length, double others, double reading) {
    CpuReading half;
    const absl::Duration end = now_.wall + length;
    const absl::Duration middle = now_.wall + length / 2;
    constexpr absl::Duration kStep = absl::Milliseconds(50);
    while (now_.wall < end) {
      if (half.wall == absl::ZeroDuration() && now_.wall >= middle) half = now_;
      const absl::Duration read = reading * budget_.fraction() * kStep;
      now_.wall += kStep;
      now_.reading += read;
      now_.process += read + others * kStep;
      budget_.Adjust(now_);
    }
    return absl::FDivDuration(now_.reading - half.reading,
                              now_.process - half.process);
  }

  const ReadBudget& budget() const { return budget_; }

 private:
  ReadBudget budget_;
  CpuReading now_{absl::Hours(1), absl::Hours(1), absl::ZeroDuration()};
};

TEST(ReadBudget, WithoutABoundAllIsRead) {
  Process process(ReadLimits{});
  process.Run(absl::Seconds(10), 0.5, 0.9);
  EXPECT_EQ(process.budget().fraction(), 1);
  EXPECT_TRUE(process.budget().Reads(UINT64_MAX));
}

TEST(ReadBudget, WhatFitsIsRead) {
  Process process({0.1, 0.05});
  process.Run(absl::Seconds(10), 1, 0.08);
  EXPECT_EQ(process.budget().fraction(), 1);
}

TEST(ReadBudget, ALittleIsAlwaysAllowed) {
  Process process({0.1, 0.05});
  process.Run(absl::Seconds(10), 0.02, 0.04);
  EXPECT_EQ(process.budget().fraction(), 1);
}

TEST(ReadBudget, BeyondItsShareSomeCompositesAreLeftOut) {
  for (const double reading : {0.2, 1.0, 5.0, 50.0}) {
    Process process({0.1, 0.01});
    const double share = process.Run(absl::Seconds(60), 1, reading);
    EXPECT_LE(share, 0.105) << reading;
    EXPECT_GE(share, 0.06) << reading;
    EXPECT_TRUE(process.budget().Reads(0));
    EXPECT_FALSE(process.budget().Reads(UINT64_MAX));
  }
}

TEST(ReadBudget, TheyComeBackWhenThereIsTimeAgain) {
  Process process({0.1, 0.01});
  process.Run(absl::Seconds(20), 1, 50);
  EXPECT_LT(process.budget().fraction(), 0.01);
  process.Run(absl::Seconds(60), 1, 0.01);
  EXPECT_EQ(process.budget().fraction(), 1);
}

TEST(ReadBudget, WhoFitsASmallerShareFitsALargerOne) {
  Process few({0.1, 0}), many({0.3, 0});
  few.Run(absl::Seconds(30), 1, 2);
  many.Run(absl::Seconds(30), 1, 2);
  ASSERT_LT(few.budget().fraction(), many.budget().fraction());
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t hash = i * (UINT64_MAX / 1000);
    if (!few.budget().Reads(hash)) continue;
    EXPECT_TRUE(many.budget().Reads(hash));
  }
}

}  // namespace
}  // namespace fncache::insight::trace
