// SPDX-License-Identifier: Apache-2.0
// Holds the tiers to what they owe each other.
#include "cache/store/tiered_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "cache/store/open_tiers.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "tests/cache/store/held_file_system.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;

class TieredStoreTest : public ::testing::Test {
 protected:
  TieredStoreTest()
      : system_(std::make_shared<HeldFileSystem>()),
        env_(rocksdb::NewCompositeEnv(system_)),
        clock_(absl::FromUnixSeconds(1'700'000'000)) {
    options_.memory_bytes = 4 * kMegabyte;
    options_.max_entry_bytes = kMegabyte;
    options_.disk_dir = directory_.path();
    options_.disk_bytes = 64 * kMegabyte;
    options_.functions = {{"first", "r1"}};
    options_.env = env_.get();
  }
  ~TieredStoreTest() override { system_->LetGo(); }

  void Open() {
    store_.reset();
    auto store = OpenTiers(options_, &clock_, &observer_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  absl::Time now() { return clock_.Now(); }
  PutResult Fill(uint64_t n, uint64_t version, bool lower = true,
                 absl::Duration started_ago = absl::Seconds(1),
                 size_t size = 1000) {
    EntrySpec spec;
    spec.version = version;
    spec.size = size;
    spec.started = now() - started_ago;
    spec.took = started_ago;
    return store_->Fill(KeyOf(n), EntryOf(n, spec), lower, now());
  }
  static int64_t Version(uint64_t n, const Found& found) {
    if (!found.entry) return -1;
    const int64_t version = VersionOf(n, found.entry->body());
    EXPECT_GE(version, 0);
    return version;
  }
  int64_t InMemory(uint64_t n) {
    return Version(n, store_->GetMemory(KeyOf(n), now()));
  }
  int64_t Below(uint64_t n) {
    Found result;
    absl::Notification done;
    store_->GetLower(KeyOf(n), 0, now(), [&](Found found) {
      result = std::move(found);
      ReleaseTo(&done);
      done.Notify();
    });
    done.WaitForNotification();
    AcquireFrom(&done);
    return Version(n, result);
  }
  // Pushes what is in memory out of it. Not into the disk queue's way: these
  // fills stay above.
  void EvictMemory() {
    for (uint64_t n = 1'000'000; n < 1'000'400; ++n) {
      Fill(n, 0, /*lower=*/false, absl::Seconds(1), 60000);
    }
  }

  // The same of what was read there, which stays longer.
  void EvictRead() {
    for (uint64_t n = 2'000'000; n < 2'000'400; ++n) {
      Fill(n, 0, /*lower=*/false, absl::Seconds(1), 60000);
      for (int i = 0; i < 3; ++i) InMemory(n);
    }
  }

  TempDir directory_;
  std::shared_ptr<HeldFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  SimulatedClock clock_;
  CountingObserver observer_;
  TieredOptions options_;
  std::unique_ptr<TieredStore> store_;
};

// Neither from the queue nor from disk, in this process or the next one.
TEST_F(TieredStoreTest, WhatWasSupersededDoesNotComeBackFromBelow) {
  for (const bool on_disk : {false, true}) {
    SCOPED_TRACE(on_disk);
    Open();
    EXPECT_EQ(Fill(1, 1), PutResult::kStored);
    EXPECT_EQ(Fill(2, 1), PutResult::kStored);
    if (on_disk) store_->Flush();
    clock_.Advance(absl::Seconds(1));
    store_->Supersede(KeyOf(1), now(), 0, now());
    // An answer of an earlier start says nothing of an entry of a later one.
    store_->Supersede(KeyOf(2), now() - absl::Seconds(10), 0, now());
    EXPECT_TRUE(store_->GetMemory(KeyOf(1), now()).entry->superseded());
    EXPECT_FALSE(store_->GetMemory(KeyOf(2), now()).entry->superseded());
    EvictRead();
    EXPECT_EQ(InMemory(1), -1);
    EXPECT_EQ(Below(1), -1);
    store_->Flush();
    EXPECT_EQ(Below(1), -1);
    Open();
    EXPECT_EQ(Below(1), -1);
    EXPECT_EQ(Below(2), 1);
    // An entry that is filled later is like any other.
    EXPECT_EQ(Fill(1, 2, /*lower=*/true, absl::ZeroDuration()),
              PutResult::kStored);
    store_->Flush();
    EvictRead();
    EXPECT_EQ(Below(1), 2);
    store_->Erase(KeyOf(1));
    store_->Erase(KeyOf(2));
  }
}

TEST_F(TieredStoreTest, WhatCannotBeToldTheDiskIsHiddenThere) {
  options_.write_queue_entries = 1;
  Open();
  EXPECT_EQ(Fill(1, 1), PutResult::kStored);
  store_->Flush();
  system_->Hold();
  Fill(2, 1);  // the queue's thread is busy with it,
  Fill(3, 1);  // and this one waits
  store_->Supersede(KeyOf(1), now(), 0, now());
  EvictRead();
  EXPECT_EQ(Below(1), -1);
  system_->LetGo();
  store_->Flush();
  EXPECT_EQ(Below(1), -1);
}

TEST_F(TieredStoreTest, TheDisksBoundMayBecomeAnyOther) {
  const uint64_t bounds[] = {1,   4,    16,    48,    64,
                             512, 4096, 32768, 102400};  // MiB
  for (const uint64_t from : bounds) {
    for (const uint64_t to : bounds) {
      SCOPED_TRACE(absl::StrCat(from, " MiB to ", to, " MiB"));
      options_.disk_bytes = from * kMegabyte;
      Open();
      EXPECT_EQ(Fill(1, 1), PutResult::kStored);
      store_->Flush();
      TieredChange change;
      change.memory_bytes = options_.memory_bytes;
      change.disk_bytes = to * kMegabyte;
      change.functions = options_.functions;
      ASSERT_TRUE(store_->Change(change, now()).ok());
      EXPECT_EQ(Fill(2, 1), PutResult::kStored);
      store_->Flush();
      EXPECT_EQ(store_->LowerStats().capacity, to * kMegabyte);
      EXPECT_TRUE(store_->LowerStats().up);
      store_->Erase(KeyOf(1));
      store_->Erase(KeyOf(2));
    }
  }
}

TEST_F(TieredStoreTest, MemoryAloneHasASeedAndNothingBelow) {
  options_.disk_dir.reset();
  Open();
  const key::Seed seed = store_->seed();
  EXPECT_NE(seed, key::Seed{});
  EXPECT_FALSE(store_->has_lower());
  EXPECT_EQ(Fill(1, 1), PutResult::kStored);
  EXPECT_EQ(Version(1, store_->Get(KeyOf(1), now())), 1);
  store_->Flush();
  EXPECT_EQ(store_->QueueDepth(), 0);
  EXPECT_EQ(store_->LowerStats().capacity, 0);
  Open();
  EXPECT_NE(store_->seed(), seed);
}

TEST_F(TieredStoreTest, ARestartServesFromDiskAndPromotes) {
  Open();
  const key::Seed seed = store_->seed();
  ASSERT_EQ(Fill(1, 7), PutResult::kStored);
  Open();
  EXPECT_EQ(store_->seed(), seed);
  EXPECT_EQ(InMemory(1), -1);
  EXPECT_EQ(Below(1), 7);
  EXPECT_EQ(InMemory(1), 7);
  EXPECT_EQ(observer_.written(Tier::kMemory), 1) << "a promotion is no fill";
  EXPECT_EQ(observer_.written(Tier::kDisk), 1);
}

TEST_F(TieredStoreTest, DestructionWritesWhatIsQueued) {
  Open();
  for (uint64_t n = 0; n < 500; ++n) Fill(n, n);
  Open();
  for (uint64_t n = 0; n < 500; ++n) {
    ASSERT_EQ(Below(n), static_cast<int64_t>(n));
  }
}

TEST_F(TieredStoreTest, WhatIsNotMeantForDiskDoesNotGetThere) {
  Open();
  ASSERT_EQ(Fill(1, 1, /*lower=*/false), PutResult::kStored);
  store_->Flush();
  EXPECT_EQ(InMemory(1), 1);
  Open();
  EXPECT_EQ(Below(1), -1);
}

TEST_F(TieredStoreTest, AFillForMemoryAloneTakesAnOlderOneOffTheDisk) {
  Open();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  store_->Flush();
  ASSERT_EQ(store_->LowerStats().entries, 1);
  clock_.Advance(absl::Seconds(10));
  ASSERT_EQ(Fill(1, 2, /*lower=*/false), PutResult::kStored);
  EvictMemory();
  ASSERT_EQ(InMemory(1), -1);
  EXPECT_EQ(Below(1), -1);
  Open();
  EXPECT_EQ(Below(1), -1);
  EXPECT_EQ(store_->LowerStats().entries, 0);
}

TEST_F(TieredStoreTest, WhatWaitsForTheDiskIsFoundOnItsWay) {
  Open();
  system_->Hold();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  system_->AwaitWriter();
  ASSERT_EQ(Fill(2, 2), PutResult::kStored);
  ASSERT_EQ(Fill(2, 3), PutResult::kStored);
  EXPECT_EQ(store_->QueueDepth(), 2);
  EvictMemory();
  ASSERT_EQ(InMemory(1), -1);
  ASSERT_EQ(InMemory(2), -1);
  EXPECT_EQ(Below(1), 1) << "being written";
  EXPECT_EQ(Below(2), 3) << "waiting, and the later one";
  system_->LetGo();
  store_->Flush();
  EXPECT_EQ(store_->QueueDepth(), 0);
  EXPECT_EQ(Below(2), 3);
}

TEST_F(TieredStoreTest, AFullQueueDropsTheFillAndHidesWhatIsOlder) {
  options_.write_queue_entries = 2;
  Open();
  ASSERT_EQ(Fill(9, 1), PutResult::kStored);
  store_->Flush();
  system_->Hold();
  clock_.Advance(absl::Seconds(10));
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  system_->AwaitWriter();
  ASSERT_EQ(Fill(2, 1), PutResult::kStored);
  ASSERT_EQ(Fill(3, 1), PutResult::kStored);
  ASSERT_EQ(Fill(9, 2), PutResult::kStored) << "memory takes it";
  EXPECT_EQ(observer_.dropped(Tier::kDisk, Dropped::kQueueFull), 1);
  system_->LetGo();
  store_->Flush();
  for (int i = 0; i < 200; ++i) {
    Fill(1'000'000 + i, 0, false, absl::Seconds(1), 60000);
    store_->Flush();
  }
  ASSERT_EQ(InMemory(9), -1);
  EXPECT_EQ(Below(9), -1) << "the older one is hidden";
  EXPECT_EQ(Below(3), 1);
}

TEST_F(TieredStoreTest, BytesBoundTheQueueToo) {
  options_.write_queue_bytes = 100'000;
  Open();
  system_->Hold();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  system_->AwaitWriter();
  Fill(2, 1, true, absl::Seconds(1), 60000);
  Fill(3, 1, true, absl::Seconds(1), 60000);
  EXPECT_EQ(observer_.dropped(Tier::kDisk, Dropped::kQueueFull), 1);
  system_->LetGo();
  store_->Flush();
}

TEST_F(TieredStoreTest, MemoryGivesUpAnEarlierStartThanTheDiskHas) {
  Open();
  ASSERT_EQ(Fill(1, 2), PutResult::kStored);
  Open();  // memory has lost it
  // A slow call that started long before.
  ASSERT_EQ(Fill(1, 1, true, absl::Minutes(1)), PutResult::kStored);
  store_->Flush();
  EXPECT_EQ(InMemory(1), 2);
  EXPECT_EQ(Below(1), 2);
  // The same where the fill is for memory alone.
  Open();
  ASSERT_EQ(Fill(1, 1, false, absl::Minutes(1)), PutResult::kStored);
  store_->Flush();
  EXPECT_EQ(InMemory(1), 2);
}

TEST_F(TieredStoreTest, DestructionCopesWithAnEarlierStartInTheQueue) {
  Open();
  ASSERT_EQ(Fill(1, 2), PutResult::kStored);
  Open();
  for (uint64_t n = 2; n < 200; ++n) Fill(n, n);
  ASSERT_EQ(Fill(1, 1, true, absl::Minutes(1)), PutResult::kStored);
  Open();
  EXPECT_EQ(Below(1), 2);
}

TEST_F(TieredStoreTest, AfterTheDrainIsOverWhatIsLeftIsCountedAsDropped) {
  options_.drain = absl::ZeroDuration();
  Open();
  system_->Hold();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  system_->AwaitWriter();
  for (uint64_t n = 2; n < 12; ++n) Fill(n, n);
  std::thread end([&] { store_.reset(); });
  system_->LetGo();
  end.join();
  const uint64_t dropped = observer_.dropped(Tier::kDisk, Dropped::kShutdown);
  EXPECT_EQ(observer_.written(Tier::kDisk) + dropped, 11);
}

TEST_F(TieredStoreTest, MemoryGivesItUpAlsoWhereTheLaterOneHasExpired) {
  Open();
  EntrySpec spec;
  spec.version = 2;
  spec.started = now();
  spec.took = absl::ZeroDuration();
  spec.lifetime = absl::Seconds(1);
  ASSERT_EQ(store_->Fill(KeyOf(1), EntryOf(1, spec), true, now()),
            PutResult::kStored);
  Open();
  clock_.Advance(absl::Seconds(2));
  ASSERT_EQ(Fill(1, 1, true, absl::Minutes(1)), PutResult::kStored);
  store_->Flush();
  EXPECT_EQ(InMemory(1), -1);
}

TEST_F(TieredStoreTest, AFullQueueOfLookUpsAnswersWithAMissAtOnce) {
  options_.read_threads = 1;
  options_.read_queue_entries = 1;
  Open();
  Fill(1, 1);
  Open();
  absl::Notification in_first;
  absl::Notification go_on;
  store_->GetLower(KeyOf(2), 0, now(), [&](Found) {
    in_first.Notify();
    go_on.WaitForNotification();
  });
  in_first.WaitForNotification();
  std::atomic<int> second{0};
  store_->GetLower(KeyOf(1), 0, now(),
                   [&](Found found) { second = found.entry ? 2 : 1; });
  EXPECT_EQ(store_->LookupQueueDepth(), 1);
  bool third = false;
  store_->GetLower(KeyOf(1), 7, now(), [&](Found found) {
    EXPECT_FALSE(found.entry);
    third = true;
  });
  EXPECT_TRUE(third) << "at once, on this thread";
  EXPECT_EQ(observer_.errors_of(Tier::kDisk, 7), 1);
  EXPECT_EQ(second, 0);
  go_on.Notify();
  store_.reset();
  EXPECT_NE(second, 0) << "called exactly once, whatever happens";
}

TEST_F(TieredStoreTest, EvictionFromMemoryIsTheEndOnlyOfWhatIsNowhereElse) {
  Open();
  for (uint64_t n = 0; n < 20; ++n) Fill(n, n, /*lower=*/true);
  store_->Flush();
  for (uint64_t n = 20; n < 50; ++n) Fill(n, n, /*lower=*/false);
  ASSERT_EQ(observer_.removed_last(), 0);
  EvictMemory();
  const uint64_t evicted = observer_.removed(Tier::kMemory, Removal::kEvicted);
  EXPECT_EQ(observer_.removed_last(), evicted - 20);
}

TEST_F(TieredStoreTest, ErasedIsGoneFromEveryTier) {
  Open();
  Fill(1, 1);
  EXPECT_TRUE(store_->Erase(KeyOf(1)));
  EXPECT_EQ(Below(1), -1);
  Open();
  EXPECT_EQ(Below(1), -1);
}

// Look-ups that promote, fills that replace and evictions that free memory, all
// at once: no reader ever sees an earlier start after a later one.
TEST_F(TieredStoreTest, PromotionNeverBringsAnEarlierStartBack) {
  options_.memory_bytes = 256 << 10;
  options_.max_entry_bytes = 16 << 10;
  Open();
  constexpr uint64_t kKeys = 4;
  constexpr uint64_t kFills = 3000;
  const absl::Time begin = now();
  std::atomic<bool> done{false};
  std::thread evictor([&] {
    for (uint64_t n = 1000; !done; ++n) {
      Fill(n, n, /*lower=*/false, absl::Seconds(1), 15000);
    }
  });
  std::vector<std::thread> readers;
  std::atomic<uint64_t> hits{0};
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      std::vector<int64_t> last(kKeys, -1);
      for (uint64_t n = 0; !done; n = (n + 1) % kKeys) {
        const int64_t version = Version(n, store_->Get(KeyOf(n), now()));
        if (version < 0) continue;  // the queue may have dropped it
        ASSERT_GE(version, last[n]) << "an earlier start came back";
        last[n] = version;
        ++hits;
      }
    });
  }
  for (uint64_t i = 1; i <= kFills; ++i) {
    EntrySpec spec;
    spec.version = i;
    spec.started = begin + absl::Nanoseconds(i);
    spec.took = absl::ZeroDuration();
    store_->Fill(KeyOf(i % kKeys), EntryOf(i % kKeys, spec), true, now());
  }
  store_->Flush();
  for (uint64_t n = 0; n < kKeys; ++n) {
    EXPECT_GT(Version(n, store_->Get(KeyOf(n), now())), 0);
  }
  // Readers may get to run only now; what they look for is there.
  while (hits == 0) std::this_thread::yield();
  done = true;
  evictor.join();
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace fncache::cache::store::testing
