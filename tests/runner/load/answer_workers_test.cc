// SPDX-License-Identifier: Apache-2.0
#include "runner/load/answer_workers.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fncache::runner::load {
namespace {

TEST(AnswerWorkersTest, RunsOnItsOwnThreadsAndSaysHowLongWorkWaited) {
  std::atomic<int> waits{0};
  std::atomic<int> ran{0};
  std::atomic<bool> longer{false};
  {
    AnswerWorkers workers(1, [&](int64_t wait) {
      EXPECT_GE(wait, 0);
      longer = longer || wait >= 20'000'000;
      ++waits;
    });
    const std::thread::id here = std::this_thread::get_id();
    absl::Notification go;
    workers.Run([&] {
      EXPECT_NE(std::this_thread::get_id(), here);
      go.WaitForNotification();
      ++ran;
    });
    for (int i = 0; i < 5; ++i) workers.Run([&] { ++ran; });
    // The work behind it waits at least that long.
    absl::SleepFor(absl::Milliseconds(20));
    go.Notify();
  }
  EXPECT_EQ(ran, 6);
  EXPECT_EQ(waits, 6);
  EXPECT_TRUE(longer);
}

}  // namespace
}  // namespace fncache::runner::load
