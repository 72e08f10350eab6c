// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/outcome_hour.h"

#include <numeric>

#include "gtest/gtest.h"

namespace fncache::proxy::telemetry {
namespace {

class OutcomeHourTest : public testing::Test {
 protected:
  OutcomeHourTest() : counts_(2), hour_(now_, counts_) {}

  // Two functions.
  struct Counts : DaemonCounts {
    explicit Counts(size_t size) { functions.resize(size); }
  };

  void Call(size_t id, Outcome outcome, uint64_t n = 1) {
    counts_.functions[id].calls[0][static_cast<size_t>(outcome)] += n;
  }
  void Pass(absl::Duration time) {
    for (; time > absl::ZeroDuration(); time -= absl::Seconds(10)) {
      now_ += absl::Seconds(10);
      hour_.Add(now_, counts_);
    }
  }
  uint64_t At(size_t minute, Outcome outcome, size_t id = 0) {
    return hour_.Read(now_, counts_)
        .functions[id][minute][static_cast<size_t>(outcome)];
  }
  uint64_t Sum(size_t id = 0) {
    const OutcomeHour::Hour hour = hour_.Read(now_, counts_);
    uint64_t sum = 0;
    for (const auto& minute : hour.functions[id]) {
      sum += std::accumulate(minute.begin(), minute.end(), uint64_t{0});
    }
    return sum;
  }

  // A full minute.
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  Counts counts_;
  OutcomeHour hour_;
};

constexpr size_t kLast = OutcomeHour::kMinutes - 1;

TEST_F(OutcomeHourTest, WhatWasJustCountedIsThereWithoutAReading) {
  Call(1, Outcome::kHit, 3);
  EXPECT_EQ(At(kLast, Outcome::kHit, 1), 3u);
  EXPECT_EQ(Sum(0), 0u);
  EXPECT_EQ(hour_.Read(now_, counts_).last_minute, now_);
}

TEST_F(OutcomeHourTest, EachMinuteKeepsItsCallsForAnHour) {
  for (int minute = 0; minute < 60; ++minute) {
    Pass(absl::Seconds(30));
    Call(0, Outcome::kMiss, static_cast<uint64_t>(minute) + 1);
    Pass(absl::Seconds(30));
  }
  // The last one is over, and the one that begins has nothing.
  EXPECT_EQ(At(kLast, Outcome::kMiss), 0u);
  for (size_t minute = 0; minute < kLast; ++minute) {
    EXPECT_EQ(At(minute, Outcome::kMiss), minute + 2) << minute;
  }
  Pass(absl::Minutes(58));
  EXPECT_EQ(Sum(), 60u);
  Pass(absl::Minutes(1));
  EXPECT_EQ(Sum(), 0u);
}

TEST_F(OutcomeHourTest, NothingIsCountedTwice) {
  Call(0, Outcome::kHit);
  for (int i = 0; i < 20; ++i) {
    Pass(absl::Seconds(10));
    EXPECT_EQ(Sum(), 1u);
  }
}

TEST_F(OutcomeHourTest, WhatALateReadingBringsIsOfTheMiddle) {
  Call(0, Outcome::kHit, 7);
  now_ += absl::Minutes(20);
  EXPECT_EQ(At(kLast - 10, Outcome::kHit), 7u);
  hour_.Add(now_, counts_);
  EXPECT_EQ(At(kLast - 10, Outcome::kHit), 7u);
  // After more than an hour without a reading, the call is in no reported
  // minute.
  Call(0, Outcome::kHit, 7);
  now_ += absl::Hours(30);
  EXPECT_EQ(Sum(), 0u);
  hour_.Add(now_, counts_);
  EXPECT_EQ(Sum(), 0u);
}

TEST_F(OutcomeHourTest, AReadingThatWasOvertakenTakesNothingAway) {
  const Counts before = counts_;
  Call(0, Outcome::kHit, 5);
  hour_.Add(now_, counts_);
  EXPECT_EQ(hour_.Read(now_, before).functions[0][kLast][0], 5u);
}

}  // namespace
}  // namespace fncache::proxy::telemetry
