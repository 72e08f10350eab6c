// SPDX-License-Identifier: Apache-2.0
#include "common/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"

namespace fncache {
namespace {

TEST(ThreadPoolTest, WorkIsDoneInTheOrderOfItsArrivalOnAnotherThread) {
  std::vector<int> done;
  std::thread::id where;
  {
    ThreadPool pool(1);
    for (int i = 0; i < 100; ++i) {
      ThreadPool::Work work = [&, i](bool) {
        where = std::this_thread::get_id();
        done.push_back(i);
      };
      ASSERT_TRUE(pool.Submit(&work));
    }
  }
  ASSERT_EQ(done.size(), 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[i], i);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(ThreadPoolTest, WhatIsTooMuchIsRefusedAndLeftAsItWas) {
  absl::Notification go;
  absl::Notification running;
  bool ran = false;
  ThreadPool::Work refused = [&](bool) { ran = true; };
  {
    ThreadPool pool(1, /*max_waiting=*/1);
    ThreadPool::Work first = [&](bool) {
      running.Notify();
      go.WaitForNotification();
    };
    ThreadPool::Work second = [](bool) {};
    ASSERT_TRUE(pool.Submit(&first));
    running.WaitForNotification();
    ASSERT_TRUE(pool.Submit(&second));
    EXPECT_EQ(pool.waiting(), 1);
    EXPECT_FALSE(pool.Submit(&refused));
    go.Notify();
  }
  EXPECT_FALSE(ran);
  refused(true);
  EXPECT_TRUE(ran);
}

// Work that still waits when the pool ends is called once all the same, with
// `run` false.
TEST(ThreadPoolTest, WhatWaitsAtTheEndIsToldNotToRun) {
  absl::Notification running;
  absl::Notification go;
  std::atomic<int> told{0};
  auto pool = std::make_unique<ThreadPool>(1);
  ThreadPool::Work first = [&](bool run) {
    EXPECT_TRUE(run);
    running.Notify();
    go.WaitForNotification();
  };
  ASSERT_TRUE(pool->Submit(&first));
  running.WaitForNotification();
  for (int i = 0; i < 10; ++i) {
    ThreadPool::Work work = [&](bool run) {
      if (!run) ++told;
    };
    ASSERT_TRUE(pool->Submit(&work));
  }
  ThreadPool* const ending = pool.get();
  std::thread end([&] { pool = nullptr; });
  // Once it is ending it takes nothing more.
  ThreadPool::Work late = [](bool) {};
  while (ending->Submit(&late)) {
    late = [&](bool run) {
      if (!run) ++told;
    };
  }
  go.Notify();
  end.join();
  EXPECT_GE(told, 10);
}

// Each piece waits for all others. Nothing else tells the pool that it blocks.
TEST(ThreadPoolTest, WorkThatBlocksGetsTheThreadsThatShortWorkDoesWithout) {
  constexpr int kThreads = 8;
  ThreadPool pool(kThreads, /*max_waiting=*/100, /*at_once=*/1);
  for (int round = 0; round < 3; ++round) {
    auto* const all = new absl::Barrier(kThreads);
    absl::BlockingCounter gone(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      ThreadPool::Work work = [&, all](bool) {
        if (all->Block()) delete all;
        gone.DecrementCount();
      };
      ASSERT_TRUE(pool.Submit(&work));
    }
    gone.Wait();
  }
}

TEST(ThreadPoolTest, WhatWaitsIsDoneWhenAPoolWithSpareThreadsEnds) {
  std::atomic<int> done{0};
  {
    ThreadPool pool(4, /*max_waiting=*/1000, /*at_once=*/1);
    for (int i = 0; i < 1000; ++i) {
      ThreadPool::Work work = [&](bool) { ++done; };
      ASSERT_TRUE(pool.Submit(&work));
    }
  }
  EXPECT_EQ(done, 1000);
}

}  // namespace
}  // namespace fncache
