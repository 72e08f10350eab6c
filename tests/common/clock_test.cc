// SPDX-License-Identifier: Apache-2.0
#include "common/clock.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'750'000'000 * kSecond;

// A machine whose clocks a test sets.
struct Machine {
  std::atomic<int64_t> wall{kStart};
  std::atomic<int64_t> boottime{77 * kSecond};

  SystemClock Clock() {
    return SystemClock([this] { return wall.load(); },
                       [this] { return boottime.load(); });
  }
};

int64_t Nanos(SystemClock& clock) { return absl::ToUnixNanos(clock.Now()); }

TEST(SystemClockTest, FollowsTheWallClockForwards) {
  Machine machine;
  SystemClock clock = machine.Clock();
  EXPECT_EQ(Nanos(clock), kStart);
  machine.wall += 5;
  EXPECT_EQ(Nanos(clock), kStart + 5);
  machine.wall += 3600 * kSecond;  // set by hand
  EXPECT_EQ(Nanos(clock), kStart + 5 + 3600 * kSecond);
}

TEST(SystemClockTest, StandsStillUntilTheWallClockIsBackWhereItWas) {
  Machine machine;
  SystemClock clock = machine.Clock();
  machine.wall += 3600 * kSecond;
  EXPECT_EQ(Nanos(clock), kStart + 3600 * kSecond);
  machine.wall = kStart + kSecond;
  machine.boottime += kSecond;
  EXPECT_EQ(Nanos(clock), kStart + 3600 * kSecond);
  machine.wall = kStart + 3601 * kSecond;
  EXPECT_EQ(Nanos(clock), kStart + 3601 * kSecond);
}

TEST(SystemClockTest, RunsOnAtTheBoottimesPaceWhereTheWallClockWasSetBack) {
  Machine machine;
  SystemClock clock = machine.Clock();
  machine.wall = kStart - 86'400 * kSecond;
  EXPECT_EQ(Nanos(clock), kStart);
  machine.boottime += 10 * kSecond;
  machine.wall += 10 * kSecond;
  EXPECT_EQ(Nanos(clock), kStart + 10 * kSecond);
}

TEST(SystemClockTest, ASuspendThatTheWallClockMissedCounts) {
  Machine machine;
  SystemClock clock = machine.Clock();
  machine.boottime += 8 * 3600 * kSecond;
  EXPECT_EQ(Nanos(clock), kStart + 8 * 3600 * kSecond);
}

TEST(SystemClockTest, AWallClockAtTheEndOfTimeDoesNotWrap) {
  Machine machine;
  machine.wall = std::numeric_limits<int64_t>::max() - 5;
  SystemClock clock = machine.Clock();
  machine.boottime += kSecond;
  EXPECT_EQ(Nanos(clock), std::numeric_limits<int64_t>::max());
}

TEST(SystemClockTest, IsTheMaximumOfItsThreeSourcesWhateverTheWallDoes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    Machine machine;
    SystemClock clock = machine.Clock();
    int64_t last = Nanos(clock);
    for (int step = 0; step < 200; ++step) {
      const int64_t jump = static_cast<int64_t>(random() % (20 * kSecond));
      machine.wall += random() % 3 == 0 ? -jump : jump;
      machine.boottime += static_cast<int64_t>(random() % (10 * kSecond));
      const int64_t want =
          std::max({last, machine.wall.load(),
                    kStart + machine.boottime.load() - 77 * kSecond});
      ASSERT_EQ(Nanos(clock), want);
      last = want;
    }
  }
}

TEST(SystemClockTest, NeverRunsBackwardsAcrossThreads) {
  Machine machine;
  SystemClock clock = machine.Clock();
  constexpr int kReaders = 3;
  // The latest time that any thread was given, published after it was given:
  // who reads it and then asks must not be given less.
  std::atomic<int64_t> published{0};
  std::atomic<int> backwards{0};
  std::atomic<int> done{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] {
      int64_t last = 0;
      for (int j = 0; j < 30'000; ++j) {
        const int64_t seen = published.load();
        const int64_t now = Nanos(clock);
        if (now < seen || now < last) ++backwards;
        last = now;
        int64_t old = seen;
        while (old < now && !published.compare_exchange_weak(old, now)) {
        }
      }
      ++done;
    });
  }
  std::mt19937_64 random(2);
  while (done < kReaders) {
    machine.wall = kStart + static_cast<int64_t>(random() % (2000 * kSecond)) -
                   1000 * kSecond;
    machine.boottime += static_cast<int64_t>(random() % kSecond);
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(backwards, 0);
}

TEST(SystemClockTest, TellsTheTimeOfTheMachine) {
  SystemClock clock;
  const absl::Time before = absl::Now();
  const absl::Time now = clock.Now();
  EXPECT_GE(now, before - absl::Seconds(1));
  EXPECT_LE(now, absl::Now() + absl::Seconds(1));
  EXPECT_LE(now, clock.Now());
}

}  // namespace
}  // namespace fncache
