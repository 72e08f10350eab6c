// SPDX-License-Identifier: Apache-2.0
// The duties of stores when their bounds, generations and rules for connection
// details change while they are open.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cache/store/disk_store.h"
#include "cache/store/memory_store.h"
#include "cache/store/open_tiers.h"
#include "tests/cache/store/disk_store_testing.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {
namespace {

namespace fs = std::filesystem;

uint64_t SizeOnDisk(const std::string& dir) {
  uint64_t size = 0;
  std::error_code ignored;
  for (const auto& file : fs::recursive_directory_iterator(dir, ignored)) {
    if (file.is_regular_file(ignored)) size += file.file_size(ignored);
  }
  return size;
}

EntryRef SecretEntry(absl::Time now, FunctionId function = 0) {
  EntryInfo info;
  info.function = function;
  info.started = now - absl::Seconds(1);
  info.arrived = now;
  info.lifetime = absl::Hours(1);
  info.secrets = true;
  return Entry::Create(info, "", {"password"});
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// ---------------------------------------------------------------- Memory

class MemoryChangeTest : public ::testing::Test {
 protected:
  absl::Time now() { return clock_.Now(); }
  void Put(uint64_t n) {
    EntrySpec spec;
    spec.size = 1000;
    spec.started = now() - spec.took;
    ASSERT_EQ(store_.Put(KeyOf(n), EntryOf(n, spec), now()),
              PutResult::kStored);
  }
  bool Has(uint64_t n) {
    return static_cast<bool>(store_.Get(KeyOf(n), now()).entry);
  }

  SimulatedClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  CountingObserver observer_;
  MemoryStore store_{{16 * kMegabyte, 64 << 10}, &observer_};
};

TEST_F(MemoryChangeTest, ASmallerBoundHoldsAtOnceAndALargerOneHasRoom) {
  ASSERT_GT(store_.shards(), 1u);
  const size_t shards = store_.shards();
  for (uint64_t n = 0; n < 10'000; ++n) Put(n);
  const uint64_t before = store_.Stats().entries;
  ASSERT_GT(store_.Stats().bytes, 9 * kMegabyte);
  store_.SetCapacity(4 * kMegabyte, now());
  EXPECT_LE(store_.Stats().bytes, 4 * kMegabyte);
  EXPECT_EQ(store_.Stats().capacity, 4 * kMegabyte);
  EXPECT_GT(store_.Stats().bytes, 3 * kMegabyte) << "no more goes than has to";
  EXPECT_EQ(observer_.removed(Tier::kMemory, Removal::kEvicted),
            before - store_.Stats().entries);
  for (uint64_t n = 20'000; n < 30'000; ++n) Put(n);
  EXPECT_LE(store_.Stats().bytes, 4 * kMegabyte) << "and it holds";
  EXPECT_EQ(store_.Put(KeyOf(1), EntryOf(1, {0, 100'000, now()}), now()),
            PutResult::kTooLarge);
  store_.SetCapacity(64 * kMegabyte, now());
  EXPECT_EQ(store_.shards(), shards);
  EXPECT_EQ(store_.Put(KeyOf(1), EntryOf(1, {0, 100'000, now()}), now()),
            PutResult::kStored);
  for (uint64_t n = 30'000; n < 50'000; ++n) Put(n);
  EXPECT_GT(store_.Stats().bytes, 20 * kMegabyte);
  for (uint64_t n = 30'000; n < 50'000; ++n) ASSERT_TRUE(Has(n)) << n;
}

TEST_F(MemoryChangeTest, OneThatIsTooSmallForAnythingIsEmpty) {
  for (uint64_t n = 0; n < 1000; ++n) Put(n);
  store_.SetCapacity(1024, now());
  EXPECT_EQ(store_.Stats().entries, 0);
}

TEST_F(MemoryChangeTest, ConnectionDetailsOfOneFunctionGoAlone) {
  for (uint64_t n = 0; n < 5000; ++n) {
    if (n % 3 == 0) {
      store_.Put(KeyOf(n), SecretEntry(now(), /*function=*/n % 2), now());
    } else {
      Put(n);
    }
  }
  store_.EraseSecrets(1);
  for (uint64_t n = 0; n < 5000; ++n) {
    ASSERT_EQ(Has(n), n % 3 != 0 || n % 2 == 0) << n;
  }
}

TEST_F(MemoryChangeTest, ManyThreadsMayUseItMeanwhile) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t n = t; !stop; n = (n + 1) % 20'000) {
        EntrySpec spec;
        spec.size = 1000;
        spec.started = now() - spec.took;
        store_.Put(KeyOf(n), EntryOf(n, spec), now());
        const Found found = store_.Get(KeyOf(n), now());
        if (found.entry) {
          ASSERT_EQ(VersionOf(n, found.entry->body()), 0);
        }
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const uint64_t capacity = (i % 2 == 0 ? 1 : 16) * kMegabyte;
    store_.SetCapacity(capacity, now());
    store_.EraseSecrets(0);
    EXPECT_LE(store_.Stats().bytes, capacity + kMegabyte / 4);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// ------------------------------------------------------------------ Disk

class DiskChangeTest : public DiskStoreTest {
 protected:
  std::string Note() { return ReadAll(options_.dir + "/secrets"); }
  bool Has(uint64_t n) {
    return static_cast<bool>(store_->Get(KeyOf(n), now()).entry);
  }
  // Waits for the database, which drops files on a thread of its own.
  absl::Status Change(uint64_t bytes,
                      const std::vector<StoredFunction>& functions) {
    LowerChange change;
    change.disk_bytes = bytes;
    change.functions = functions;
    return store_->Change(change);
  }
  bool ShrinksTo(uint64_t bytes) {
    const absl::Time until = absl::Now() + absl::Seconds(60);
    while (SizeOnDisk(options_.dir) > bytes) {
      if (absl::Now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST_F(DiskChangeTest, ASmallerBoundDropsTheOldestAndALargerOneHasRoom) {
  ASSERT_TRUE(Open().ok());
  for (uint64_t n = 0; n < 20'000; ++n) Put(n);
  ASSERT_GT(SizeOnDisk(options_.dir), 15 * kMegabyte);
  ASSERT_TRUE(Change(4 * kMegabyte, options_.functions).ok());
  EXPECT_EQ(store_->Stats().capacity, 4 * kMegabyte);
  EXPECT_TRUE(ShrinksTo(4 * kMegabyte)) << SizeOnDisk(options_.dir);
  EXPECT_EQ(Get(0), -1);
  uint64_t most = 0;
  for (uint64_t n = 20'000; n < 40'000; ++n) {
    Put(n, 1);
    if (n % 50 == 0) most = std::max(most, SizeOnDisk(options_.dir));
  }
  EXPECT_LE(most, 4 * kMegabyte * 102 / 100) << "and it holds";
  EXPECT_EQ(Get(39'999), 1);
  EXPECT_GT(store_->Stats().entries, 1000);
  ASSERT_TRUE(Change(128 * kMegabyte, options_.functions).ok());
  for (uint64_t n = 40'000; n < 70'000; ++n) Put(n, 2);
  EXPECT_GT(SizeOnDisk(options_.dir), 25 * kMegabyte);
  for (uint64_t n = 40'000; n < 70'000; ++n) ASSERT_EQ(Get(n), 2) << n;
  // It says itself how large it may be when it is opened again.
  options_.capacity = 128 * kMegabyte;
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(69'999), 2);
}

TEST_F(DiskChangeTest, EntriesOfEarlierGenerationsStayReadable) {
  ASSERT_TRUE(Open().ok());
  Put(1, 1);
  ASSERT_TRUE(
      Change(options_.capacity, {{"first", "r2"}, {"second", "r2"}}).ok());
  Put(2, 2);
  EXPECT_EQ(Get(1), 1) << "under its key, which another generation never makes";
  EXPECT_EQ(Get(2), 2);
  ASSERT_TRUE(Change(options_.capacity, options_.functions).ok());
  EXPECT_EQ(Get(1), 1);
  EXPECT_EQ(Get(2), 2);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), 1);
  EXPECT_EQ(Get(2), -1) << "what is stored names its generation";
  options_.functions[0].generation = "r2";
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(Get(2), 2);
}

TEST_F(DiskChangeTest, WhoMayLeaveConnectionDetailsIsNotedFirst) {
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Note(), "fncache secrets 1\nend\n");
  // Before the note, nothing is written.
  EXPECT_EQ(store_->Put(KeyOf(1), SecretEntry(now()), now()),
            PutResult::kStored)
      << "in memory alone, as far as the disk is concerned";
  EXPECT_FALSE(Has(1));
  std::vector<StoredFunction> functions = {{"first", "r1", true},
                                           {"second", "r2"}};
  ASSERT_TRUE(Change(options_.capacity, functions).ok());
  EXPECT_EQ(Note(), "fncache secrets 1\nfirst\nend\n");
  ASSERT_EQ(store_->Put(KeyOf(1), SecretEntry(now()), now()),
            PutResult::kStored);
  EXPECT_TRUE(Has(1));
  Put(2, 2);
  // The other way: not found, not written, and the note stays.
  ASSERT_TRUE(Change(options_.capacity, options_.functions).ok());
  EXPECT_FALSE(Has(1));
  EXPECT_EQ(Get(2), 2);
  ASSERT_EQ(store_->Put(KeyOf(3), SecretEntry(now()), now()),
            PutResult::kStored);
  EXPECT_FALSE(Has(3));
  EXPECT_EQ(Note(), "fncache secrets 1\nfirst\nend\n");
  // A write that comes late takes what there was of it with it.
  ASSERT_TRUE(Change(options_.capacity, functions).ok());
  EXPECT_TRUE(Has(1)) << "allowed again, and still there";
  EXPECT_FALSE(Has(3));
  ASSERT_TRUE(Change(options_.capacity, options_.functions).ok());
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(store_->Stats().entries, 0) << "the next start dropped it whole";
  EXPECT_EQ(Note(), "fncache secrets 1\nend\n");
}

TEST_F(DiskChangeTest, WithoutTheNoteNothingChanges) {
  ASSERT_TRUE(Open().ok());
  // The place that the note is written to first.
  ASSERT_TRUE(fs::create_directories(options_.dir + "/secrets.new/in the way"));
  const absl::Status changed =
      Change(kMegabyte, {{"first", "r9", true}, {"second", "r9", true}});
  EXPECT_FALSE(changed.ok());
  EXPECT_EQ(store_->Stats().capacity, options_.capacity);
  store_->Put(KeyOf(1), SecretEntry(now()), now());
  EXPECT_FALSE(Has(1));
  Put(2, 2);
  EXPECT_EQ(Get(2), 2);
  fs::remove_all(options_.dir + "/secrets.new");
  EXPECT_TRUE(
      Change(kMegabyte, {{"first", "r9", true}, {"second", "r9", true}}).ok());
}

TEST_F(DiskChangeTest, ThreadsMayUseItMeanwhile) {
  ASSERT_TRUE(Open().ok());
  std::atomic<bool> stop{false};
  std::thread user([&] {
    for (uint64_t n = 0; !stop; n = (n + 1) % 3000) {
      Put(n, 1);
      Get(n);
    }
  });
  for (int i = 0; i < 60; ++i) {
    const std::string generation = i % 2 == 0 ? "r1" : "r2";
    EXPECT_TRUE(
        Change((i % 3 + 1) * kMegabyte,
               {{"first", generation, i % 4 == 0}, {"second", generation}})
            .ok());
  }
  stop = true;
  user.join();
}

// ------------------------------------------------------------- Late disk

TieredChange TieredChangeOf(uint64_t memory_bytes, uint64_t disk_bytes,
                            std::vector<StoredFunction> functions) {
  TieredChange change;
  change.memory_bytes = memory_bytes;
  change.disk_bytes = disk_bytes;
  change.functions = std::move(functions);
  return change;
}

TEST(LateDiskChangeTest, WhatChangesBeforeTheDiskIsThereHoldsForIt) {
  TempDir directory;
  SimulatedClock clock(absl::FromUnixSeconds(1'700'000'000));
  TieredOptions options;
  options.memory_bytes = 8 * kMegabyte;
  options.disk_dir = directory.path();
  options.disk_bytes = 64 * kMegabyte;
  options.functions = {{"first", "r1"}};
  options.disk_retry = absl::Milliseconds(2);
  std::atomic<bool> may_open{false};
  auto opened = OpenTiers(
      options, &clock, nullptr,
      [&](const TieredOptions& now, Clock* clock,
          Observer* observer) -> absl::StatusOr<std::unique_ptr<LowerStore>> {
        if (!may_open) return absl::UnavailableError("not yet");
        EXPECT_EQ(now.disk_bytes, 32 * kMegabyte);
        EXPECT_EQ(now.functions[0].generation, "r2");
        return OpenLower(now, clock, observer);
      });
  ASSERT_TRUE(opened.ok()) << opened.status();
  TieredStore& store = **opened;
  ASSERT_TRUE(store
                  .Change(TieredChangeOf(4 * kMegabyte, 32 * kMegabyte,
                                         {{"first", "r2"}}),
                          clock.Now())
                  .ok());
  EXPECT_EQ(store.Stats().capacity, 4 * kMegabyte);
  EXPECT_EQ(store.LowerStats().capacity, 32 * kMegabyte);
  may_open = true;
  while (!store.has_lower()) std::this_thread::yield();
  EXPECT_EQ(store.Stats().capacity, 4 * kMegabyte);
  EXPECT_EQ(store.LowerStats().capacity, 32 * kMegabyte);
  ASSERT_TRUE(store
                  .Change(TieredChangeOf(2 * kMegabyte, 16 * kMegabyte,
                                         {{"first", "r3", true}}),
                          clock.Now())
                  .ok());
  EXPECT_EQ(store.Stats().capacity, 2 * kMegabyte);
  EXPECT_EQ(store.LowerStats().capacity, 16 * kMegabyte);
}

}  // namespace
}  // namespace fncache::cache::store::testing
