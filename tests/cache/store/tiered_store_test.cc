// SPDX-License-Identifier: Apache-2.0
// Holds the tiers to what they owe each other.
#include "cache/store/tiered_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "tests/cache/store/store_testing.h"
#include "tests/cache/store/tiers_testing.h"

namespace fncache::cache::store::testing {
namespace {

class TieredStoreTest : public FilledTiersTest {
 protected:
  TieredStoreTest() { options_.functions = {{"first", "r1"}}; }

  // A daemon does not know the entries of a shared server.
  void ExpectEntriesBelow(uint64_t count) {
    if (is_shared()) return;
    EXPECT_EQ(store_->LowerStats().entries, count);
  }
};

// Also over a real server.
using TieredServersTest = TieredStoreTest;
// Not over the shared tier. The daemon does not bound a server's bytes, and a
// server forgets the start of an entry with the entry.
using TieredDiskTest = TieredStoreTest;

// Neither from the queue nor from disk, in this process or the next one.
TEST_P(TieredStoreTest, WhatWasSupersededDoesNotComeBackFromBelow) {
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

TEST_P(TieredStoreTest, WhatCannotBeToldTheDiskIsHiddenThere) {
  options_.write_queue_entries = 1;
  Open();
  EXPECT_EQ(Fill(1, 1), PutResult::kStored);
  store_->Flush();
  Hold();
  Fill(2, 1);  // the queue's thread is busy with it,
  Fill(3, 1);  // and this one waits
  store_->Supersede(KeyOf(1), now(), 0, now());
  EvictRead();
  EXPECT_EQ(Below(1), -1);
  LetGo();
  store_->Flush();
  EXPECT_EQ(Below(1), -1);
}

// Its write began before, and a thread that read the clock earlier asks later.
TEST_P(TieredStoreTest, WhatExpiresWhileItWaitsIsGoneForGood) {
  Open();
  Hold();
  EntrySpec spec;
  spec.started = now();
  spec.took = absl::ZeroDuration();
  spec.lifetime = absl::Seconds(10);
  ASSERT_EQ(store_->Put(KeyOf(1), EntryOf(1, spec), now()), PutResult::kStored);
  AwaitWriter();
  const absl::Time before = now();
  clock_.Advance(spec.lifetime);
  EXPECT_TRUE(store_->Get(KeyOf(1), now()).expired);
  LetGo();
  store_->Flush();
  EXPECT_FALSE(store_->Get(KeyOf(1), before).entry);
}

TEST_P(TieredDiskTest, TheDisksBoundMayBecomeAnyOther) {
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

TEST_P(TieredServersTest, OnlyTheSharedTierIsFilledByOthersAndMayBeAway) {
  Open();
  EXPECT_TRUE(store_->has_lower());
  EXPECT_EQ(store_->MayBeYoungerBelow(), is_shared());
  EXPECT_TRUE(store_->MayFindBelow());
  EXPECT_TRUE(store_->LowerStats().up);
}

TEST_P(TieredStoreTest, MemoryAloneHasASeedAndNothingBelow) {
  options_.disk_dir.reset();
  fleet_ = nullptr;
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

TEST_P(TieredServersTest, ARestartServesFromDiskAndPromotes) {
  Open();
  const key::Seed seed = store_->seed();
  ASSERT_EQ(Fill(1, 7), PutResult::kStored);
  Open();
  EXPECT_EQ(store_->seed(), seed);
  EXPECT_EQ(InMemory(1), -1);
  EXPECT_EQ(Below(1), 7);
  EXPECT_EQ(InMemory(1), 7);
  EXPECT_EQ(observer_.written(Tier::kMemory), 1) << "a promotion is no fill";
  EXPECT_EQ(observer_.written(tier()), 1);
}

TEST_P(TieredServersTest, DestructionWritesWhatIsQueued) {
  Open();
  for (uint64_t n = 0; n < 500; ++n) Fill(n, n);
  Open();
  for (uint64_t n = 0; n < 500; ++n) {
    ASSERT_EQ(Below(n), static_cast<int64_t>(n));
  }
}

TEST_P(TieredServersTest, WhatIsNotMeantForDiskDoesNotGetThere) {
  Open();
  ASSERT_EQ(Fill(1, 1, /*lower=*/false), PutResult::kStored);
  store_->Flush();
  EXPECT_EQ(InMemory(1), 1);
  Open();
  EXPECT_EQ(Below(1), -1);
}

TEST_P(TieredStoreTest, AFillForMemoryAloneTakesAnOlderOneOffTheDisk) {
  Open();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  store_->Flush();
  ExpectEntriesBelow(1);
  clock_.Advance(absl::Seconds(10));
  ASSERT_EQ(Fill(1, 2, /*lower=*/false), PutResult::kStored);
  EvictMemory();
  ASSERT_EQ(InMemory(1), -1);
  EXPECT_EQ(Below(1), -1);
  Open();
  EXPECT_EQ(Below(1), -1);
  ExpectEntriesBelow(0);
}

TEST_P(TieredStoreTest, WhatWaitsForTheDiskIsFoundOnItsWay) {
  Open();
  Hold();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  AwaitWriter();
  ASSERT_EQ(Fill(2, 2), PutResult::kStored);
  ASSERT_EQ(Fill(2, 3), PutResult::kStored);
  EXPECT_EQ(store_->QueueDepth(), 2);
  EvictMemory();
  ASSERT_EQ(InMemory(1), -1);
  ASSERT_EQ(InMemory(2), -1);
  EXPECT_EQ(Below(1), 1) << "being written";
  EXPECT_EQ(Below(2), 3) << "waiting, and the later one";
  LetGo();
  store_->Flush();
  EXPECT_EQ(store_->QueueDepth(), 0);
  EXPECT_EQ(Below(2), 3);
}

TEST_P(TieredStoreTest, AFullQueueDropsTheFillAndHidesWhatIsOlder) {
  options_.write_queue_entries = 2;
  Open();
  ASSERT_EQ(Fill(9, 1), PutResult::kStored);
  store_->Flush();
  Hold();
  clock_.Advance(absl::Seconds(10));
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  AwaitWriter();
  ASSERT_EQ(Fill(2, 1), PutResult::kStored);
  ASSERT_EQ(Fill(3, 1), PutResult::kStored);
  ASSERT_EQ(Fill(9, 2), PutResult::kStored) << "memory takes it";
  EXPECT_EQ(observer_.dropped(tier(), Dropped::kQueueFull), 1);
  LetGo();
  store_->Flush();
  for (int i = 0; i < 200; ++i) {
    Fill(1'000'000 + i, 0, false, absl::Seconds(1), 60000);
    store_->Flush();
  }
  ASSERT_EQ(InMemory(9), -1);
  EXPECT_EQ(Below(9), -1) << "the older one is hidden";
  EXPECT_EQ(Below(3), 1);
}

TEST_P(TieredStoreTest, BytesBoundTheQueueToo) {
  options_.write_queue_bytes = 100'000;
  Open();
  Hold();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  AwaitWriter();
  Fill(2, 1, true, absl::Seconds(1), 60000);
  Fill(3, 1, true, absl::Seconds(1), 60000);
  EXPECT_EQ(observer_.dropped(tier(), Dropped::kQueueFull), 1);
  LetGo();
  store_->Flush();
}

TEST_P(TieredServersTest, MemoryGivesUpAnEarlierStartThanTheDiskHas) {
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

TEST_P(TieredStoreTest, DestructionCopesWithAnEarlierStartInTheQueue) {
  Open();
  ASSERT_EQ(Fill(1, 2), PutResult::kStored);
  Open();
  for (uint64_t n = 2; n < 200; ++n) Fill(n, n);
  ASSERT_EQ(Fill(1, 1, true, absl::Minutes(1)), PutResult::kStored);
  Open();
  EXPECT_EQ(Below(1), 2);
}

TEST_P(TieredStoreTest, AfterTheDrainIsOverWhatIsLeftIsCountedAsDropped) {
  options_.drain = absl::ZeroDuration();
  Open();
  Hold();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  AwaitWriter();
  for (uint64_t n = 2; n < 12; ++n) Fill(n, n);
  std::thread end([&] { store_.reset(); });
  LetGo();
  end.join();
  const uint64_t dropped = observer_.dropped(tier(), Dropped::kShutdown);
  EXPECT_EQ(observer_.written(tier()) + dropped, 11);
}

TEST_P(TieredDiskTest, MemoryGivesItUpAlsoWhereTheLaterOneHasExpired) {
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

TEST_P(TieredStoreTest, AFullQueueOfLookUpsAnswersWithAMissAtOnce) {
  options_.read_threads = 1;
  options_.read_queue_entries = 1;
  Open();
  Fill(1, 1);
  Open();
  absl::Notification in_first;
  absl::Notification go_on;
  store_->GetLower(KeyOf(2), 0, absl::InfinitePast(), now(), [&](Found) {
    in_first.Notify();
    go_on.WaitForNotification();
  });
  in_first.WaitForNotification();
  std::atomic<int> second{0};
  store_->GetLower(KeyOf(1), 0, absl::InfinitePast(), now(),
                   [&](Found found) { second = found.entry ? 2 : 1; });
  EXPECT_EQ(store_->LookupQueueDepth(), 1);
  bool third = false;
  store_->GetLower(KeyOf(1), 7, absl::InfinitePast(), now(), [&](Found found) {
    EXPECT_FALSE(found.entry);
    third = true;
  });
  EXPECT_TRUE(third) << "at once, on this thread";
  EXPECT_EQ(observer_.errors_of(tier(), 7), 1);
  EXPECT_EQ(second, 0);
  go_on.Notify();
  store_.reset();
  EXPECT_NE(second, 0) << "called exactly once, whatever happens";
}

TEST_P(TieredStoreTest, EvictionFromMemoryIsTheEndOnlyOfWhatIsNowhereElse) {
  Open();
  for (uint64_t n = 0; n < 20; ++n) Fill(n, n, /*lower=*/true);
  store_->Flush();
  for (uint64_t n = 20; n < 50; ++n) Fill(n, n, /*lower=*/false);
  ASSERT_EQ(observer_.removed_last(), 0);
  EvictMemory();
  const uint64_t evicted = observer_.removed(Tier::kMemory, Removal::kEvicted);
  EXPECT_EQ(observer_.removed_last(), evicted - 20);
}

TEST_P(TieredServersTest, ErasedIsGoneFromEveryTier) {
  Open();
  Fill(1, 1);
  EXPECT_TRUE(store_->Erase(KeyOf(1)));
  EXPECT_EQ(Below(1), -1);
  Open();
  EXPECT_EQ(Below(1), -1);
}

// Look-ups that promote, fills that replace and evictions that free memory, all
// at once: no reader ever sees an earlier start after a later one.
TEST_P(TieredStoreTest, PromotionNeverBringsAnEarlierStartBack) {
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

INSTANTIATE_TEST_SUITE_P(Below, TieredStoreTest,
                         ::testing::Values(OnDisk(), OnSimulated()),
                         NameOfBelow);
INSTANTIATE_TEST_SUITE_P(Below, TieredServersTest,
                         ::testing::Values(OnDisk(), OnSimulated(), OnRedis()),
                         NameOfBelow);
INSTANTIATE_TEST_SUITE_P(Below, TieredDiskTest, ::testing::Values(OnDisk()),
                         NameOfBelow);

}  // namespace
}  // namespace fncache::cache::store::testing
