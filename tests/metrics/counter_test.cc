// SPDX-License-Identifier: Apache-2.0
#include "metrics/counter.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "metrics/registry.h"

namespace fncache::metrics {
namespace {

const Family& Things() {
  static const Family* const family =
      new Family{"things_total", Type::kCounter, {}, "Things."};
  return *family;
}

const Family& Level() {
  static const Family* const family =
      new Family{"level", Type::kGauge, {}, "A level."};
  return *family;
}

TEST(CounterTest, StartsAtZeroAndAdds) {
  Registry registry;
  const Counter counter = registry.AddCounter(Things(), {});
  EXPECT_EQ(counter.Value(), 0u);
  counter.Add();
  counter.Add(41);
  EXPECT_EQ(counter.Value(), 42u);
}

TEST(CounterTest, TwoCountersDoNotShare) {
  Registry registry;
  const Counter a = registry.AddCounter(Things(), {});
  const Counter b = registry.AddCounter(Things(), {});
  a.Add(1);
  b.Add(10);
  EXPECT_EQ(a.Value(), 1u);
  EXPECT_EQ(b.Value(), 10u);
}

TEST(CounterTest, AnUnboundHandleCountsIntoTheVoid) {
  Registry registry;
  const Counter bound = registry.AddCounter(Things(), {});
  Counter().Add(7);
  UpDown().Add(7);
  EXPECT_EQ(bound.Value(), 0u);
}

TEST(CounterTest, CellsOfARegistryThatIsGoneStartAgainAtZero) {
  for (int i = 0; i < 3; ++i) {
    Registry registry;
    const Counter counter = registry.AddCounter(Things(), {});
    EXPECT_EQ(counter.Value(), 0u);
    counter.Add(5);
    std::thread([&] { counter.Add(5); }).join();
    EXPECT_EQ(counter.Value(), 10u);
  }
}

TEST(UpDownTest, MayRiseOnOneThreadAndFallOnAnother) {
  Registry registry;
  const UpDown level = registry.AddUpDown(Level(), {});
  level.Add(3);
  std::thread([&] { level.Add(-5); }).join();
  EXPECT_EQ(level.Value(), -2);
  level.Add(2);
  EXPECT_EQ(level.Value(), 0);
}

TEST(CellsTest, ThreadsMayComeAndGoWithoutLosingCounts) {
  Registry registry;
  const Counter counter = registry.AddCounter(Things(), {});
  std::set<const internal::Slab*> slabs;
  std::mutex mutex;
  constexpr int kRounds = 50;
  constexpr int kThreads = 4;
  constexpr int kAdds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kAdds; ++i) counter.Add();
        std::lock_guard<std::mutex> lock(mutex);
        slabs.insert(internal::current_slab);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(counter.Value(), uint64_t{kThreads} * kAdds * (round + 1));
  }
  // As many slabs as threads at once, not as threads ever.
  EXPECT_LE(slabs.size(), size_t{kThreads});
}

TEST(CellsTest, AReaderSeesWhatHappenedBeforeAndNeverMoreThanWasAdded) {
  Registry registry;
  const Counter counter = registry.AddCounter(Things(), {});
  constexpr uint64_t kAdds = 200000;
  std::atomic<uint64_t> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 1; i <= kAdds; ++i) {
        counter.Add();
        if (i % 1000 == 0) done.fetch_add(1000, std::memory_order_release);
      }
    });
  }
  uint64_t last = 0;
  while (last < 3 * kAdds) {
    const uint64_t at_least = done.load(std::memory_order_acquire);
    const uint64_t value = counter.Value();
    ASSERT_GE(value, at_least);
    ASSERT_GE(value, last);
    ASSERT_LE(value, 3 * kAdds);
    last = value;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.Value(), 3 * kAdds);
}

// Counts when its thread ends, after the thread's slab may have been handed
// back (destructors run in reverse order of construction).
struct CountsAtTheEnd {
  const Counter* counter = nullptr;
  ~CountsAtTheEnd() {
    if (counter != nullptr) counter->Add(100);
  }
};
thread_local CountsAtTheEnd counts_at_the_end;

TEST(CellsTest, WhatAnEndingThreadCountsIsNotLost) {
  Registry registry;
  const Counter counter = registry.AddCounter(Things(), {});
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      counts_at_the_end.counter = &counter;  // constructed before the slab
      counter.Add();
    }).join();
  }
  EXPECT_EQ(counter.Value(), 303u);
}

TEST(CellsTest, MoreThanAChunkOfCellsAreKeptApart) {
  Registry registry;
  std::vector<Counter> counters;
  for (uint32_t i = 0; i < internal::kCellsPerChunk + 100; ++i) {
    counters.push_back(registry.AddCounter(Things(), {}));
    counters.back().Add(i);
  }
  std::thread([&] {
    for (const Counter& counter : counters) counter.Add(1);
  }).join();
  for (uint32_t i = 0; i < counters.size(); ++i) {
    ASSERT_EQ(counters[i].Value(), i + 1);
  }
}

}  // namespace
}  // namespace fncache::metrics
