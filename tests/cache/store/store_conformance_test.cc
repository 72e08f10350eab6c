// SPDX-License-Identifier: Apache-2.0
// Holds every store to what it owes its callers, on simulated time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "cache/store/bans.h"
#include "cache/store/disk_store.h"
#include "cache/store/memory_store.h"
#include "cache/store/open_tiers.h"
#include "cache/store/store.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "tests/cache/store/shared_testing.h"
#include "tests/cache/store/store_testing.h"
#include "tests/common/long_form.h"

namespace fncache::cache::store::testing {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;

struct Backend {
  std::string name;
  std::function<std::unique_ptr<Store>(
      uint64_t capacity, uint64_t max_entry_bytes, const std::string& dir,
      Clock* clock, Observer* observer)>
      open;
  // A server that other processes use: it drops what has expired, and a purge
  // leaves a mark. Connection details never come there.
  bool shared = false;
  // The daemon does not know the entries and bytes of such a server.
  bool knows_entries = true;
};

void PrintTo(const Backend& backend, std::ostream* out) {
  *out << backend.name;
}

Backend MemoryBackend() {
  return {"Memory", [](uint64_t capacity, uint64_t max_entry_bytes,
                       const std::string&, Clock*, Observer* observer) {
            return std::make_unique<MemoryStore>(
                MemoryStoreOptions{capacity, max_entry_bytes}, observer);
          }};
}

std::vector<StoredFunction> TwoFunctions() {
  return {{"first", "r1", true}, {"second", "r2", true}};
}

Backend DiskBackend() {
  return {"Disk",
          [](uint64_t capacity, uint64_t, const std::string& dir, Clock* clock,
             Observer* observer) -> std::unique_ptr<Store> {
            DiskStoreOptions options;
            options.dir = dir;
            options.capacity = capacity;
            options.functions = TwoFunctions();
            auto store = DiskStore::Open(options, clock, observer);
            EXPECT_TRUE(store.ok()) << store.status();
            return *std::move(store);
          }};
}

// A shared store with its server; with `memory`, below memory.
class OverSharedTier : public Store {
 public:
  OverSharedTier(std::unique_ptr<TestServer> server,
                 absl::optional<uint64_t> memory, uint64_t max_entry_bytes,
                 Clock* clock, Observer* observer)
      : tier_(std::move(server), static_cast<SimulatedClock*>(clock)) {
    if (memory.has_value()) {
      TieredOptions options;
      options.memory_bytes = *memory;
      options.max_entry_bytes = max_entry_bytes;
      options.functions = TwoFunctions();
      auto tiers = tier_.Open(options, clock, observer);
      EXPECT_TRUE(tiers.ok()) << tiers.status();
      store_ = *std::move(tiers);
    } else {
      auto store = tier_.Create(TwoFunctions(), max_entry_bytes, &bans_, clock,
                                observer);
      store->Attach(&bans_, clock->Now());
      tier_.AwaitUse(store.get());
      store_ = std::move(store);
    }
    // Real servers' time passes and this clock's does not: no fill may seem
    // late.
    static_cast<SimulatedClock*>(clock)->Advance(absl::Hours(2));
  }
  Found Get(const key::Key& key, absl::Time now) override {
    return store_->Get(key, now);
  }
  PutResult Put(const key::Key& key, EntryRef entry, absl::Time now) override {
    return store_->Put(key, std::move(entry), now);
  }
  bool Erase(const key::Key& key) override { return store_->Erase(key); }
  PurgedKey Purge(const key::Key& key, absl::Time until,
                  absl::Time now) override {
    return store_->Purge(key, until, now);
  }
  std::vector<Inspection> Inspect(const key::Key& key) const override {
    return store_->Inspect(key);
  }
  StoreStats Stats() const override { return store_->Stats(); }

 private:
  SharedTier tier_;
  Bans bans_;
  std::unique_ptr<Store> store_;
};

Backend SharedBackend(const std::string& name,
                      std::unique_ptr<TestServer> (*server)(Clock*)) {
  return {name,
          [server](uint64_t, uint64_t max_entry_bytes, const std::string&,
                   Clock* clock, Observer* observer) -> std::unique_ptr<Store> {
            return std::make_unique<OverSharedTier>(
                server(clock), absl::nullopt, max_entry_bytes, clock, observer);
          },
          /*shared=*/true, /*knows_entries=*/false};
}

Backend MemoryAndSharedBackend(const std::string& name,
                               std::unique_ptr<TestServer> (*server)(Clock*)) {
  return {
      name,
      [server](uint64_t capacity, uint64_t max_entry_bytes, const std::string&,
               Clock* clock, Observer* observer) -> std::unique_ptr<Store> {
        return std::make_unique<OverSharedTier>(
            server(clock), capacity, max_entry_bytes, clock, observer);
      },
      /*shared=*/true};
}

Backend TieredBackend() {
  return {
      "Tiered",
      [](uint64_t capacity, uint64_t max_entry_bytes, const std::string& dir,
         Clock* clock, Observer* observer) -> std::unique_ptr<Store> {
        TieredOptions options;
        options.memory_bytes = capacity;
        options.max_entry_bytes = max_entry_bytes;
        options.disk_dir = dir;
        options.disk_bytes = capacity;
        options.functions = TwoFunctions();
        auto store = OpenTiers(options, clock, observer);
        EXPECT_TRUE(store.ok()) << store.status();
        return *std::move(store);
      }};
}

class StoreConformance : public ::testing::TestWithParam<Backend> {
 protected:
  StoreConformance()
      : clock_(absl::FromUnixSeconds(1'700'000'000)), store_(Open()) {}

  std::unique_ptr<Store> Open(uint64_t capacity = 64 * kMegabyte,
                              uint64_t max_entry_bytes = kMegabyte) {
    return GetParam().open(capacity, max_entry_bytes, directory_.path(),
                           &clock_, &observer_);
  }
  absl::Time now() { return clock_.Now(); }
  // An entry whose call took a second and whose answer arrived now.
  EntrySpec Fresh(uint64_t version = 0) {
    EntrySpec spec;
    spec.version = version;
    spec.started = now() - spec.took;
    return spec;
  }
  PutResult Put(uint64_t n, const EntrySpec& spec) {
    return store_->Put(KeyOf(n), EntryOf(n, spec), now());
  }
  // The version found, or -1; fails on bytes that are not the key's.
  int64_t Get(uint64_t n) {
    const Found found = store_->Get(KeyOf(n), now());
    if (!found.entry) return -1;
    EXPECT_FALSE(found.expired);
    const int64_t version = VersionOf(n, found.entry->body());
    EXPECT_GE(version, 0) << "wrong or torn bytes under key " << n;
    return version;
  }
  bool Expired(uint64_t n) {
    const Found found = store_->Get(KeyOf(n), now());
    EXPECT_FALSE(found.entry);
    return found.expired || GetParam().shared;
  }
  void ExpectEntries(uint64_t count) {
    if (!GetParam().knows_entries) return;
    EXPECT_EQ(store_->Stats().entries, count);
  }

  SimulatedClock clock_;
  CountingObserver observer_;
  TempDir directory_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreConformance, AnUnknownKeyIsAMissThatIsNotExpired) {
  const Found found = store_->Get(KeyOf(1), now());
  EXPECT_FALSE(found.entry);
  EXPECT_FALSE(found.expired);
  ExpectEntries(0);
}

TEST_P(StoreConformance, WhatWasStoredComesBackWhole) {
  EntryInfo info;
  info.function = 1;
  info.started = now() - absl::Nanoseconds(123456789);
  info.arrived = now() - absl::Nanoseconds(1);
  info.lifetime = absl::Seconds(60) + absl::Nanoseconds(7);
  info.ttl = absl::Seconds(61) + absl::Nanoseconds(999);
  info.cost = absl::Milliseconds(1234);
  info.secrets = !GetParam().shared;
  info.drift = key::Key{5, 6};
  const std::string body("a\0b\xff", 4);
  ASSERT_EQ(store_->Put(KeyOf(1), Entry::Create(info, "rest", {body}), now()),
            PutResult::kStored);
  const Found found = store_->Get(KeyOf(1), now());
  ASSERT_TRUE(found.entry);
  const EntryInfo back = found.entry->info();
  EXPECT_EQ(found.entry->body(), body);
  EXPECT_EQ(found.entry->meta_rest(), "rest");
  EXPECT_EQ(back.function, info.function);
  EXPECT_EQ(back.started, info.started);
  EXPECT_EQ(back.arrived, info.arrived);
  EXPECT_EQ(back.lifetime, info.lifetime);
  EXPECT_EQ(back.ttl, info.ttl);
  EXPECT_EQ(back.cost, info.cost);
  EXPECT_EQ(back.secrets, info.secrets);
  EXPECT_EQ(back.drift, info.drift);
}

TEST_P(StoreConformance, AnAbsentTtlStaysAbsentAndAnEmptyBodyEmpty) {
  EntryInfo info;
  info.started = info.arrived = now();
  info.lifetime = absl::Hours(1);
  ASSERT_EQ(store_->Put(KeyOf(1), Entry::Create(info, "", {}), now()),
            PutResult::kStored);
  const Found found = store_->Get(KeyOf(1), now());
  ASSERT_TRUE(found.entry);
  EXPECT_EQ(found.entry->info().ttl, absl::nullopt);
  EXPECT_EQ(found.entry->body(), "");
}

TEST_P(StoreConformance, AnEntryIsKeptForItsRetention) {
  EntryInfo info;
  info.started = info.arrived = now();
  info.lifetime = absl::Seconds(60);
  info.retention = absl::Seconds(200);
  ASSERT_EQ(store_->Put(KeyOf(1), Entry::Create(info, "rest", {"body"}), now()),
            PutResult::kStored);
  // One as young without.
  info.retention = absl::ZeroDuration();
  ASSERT_EQ(store_->Put(KeyOf(2), Entry::Create(info, "", {"body"}), now()),
            PutResult::kStored);
  clock_.Advance(absl::Seconds(60));
  EXPECT_TRUE(Expired(2));
  clock_.Advance(absl::Seconds(140) - absl::Nanoseconds(1));
  const Found found = store_->Get(KeyOf(1), now());
  ASSERT_TRUE(found.entry);
  EXPECT_FALSE(found.expired);
  EXPECT_EQ(found.entry->info().lifetime, absl::Seconds(60));
  EXPECT_EQ(found.entry->info().retention, absl::Seconds(200));
  EXPECT_EQ(found.entry->body(), "body");
  EXPECT_EQ(found.entry->meta_rest(), "rest");
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_TRUE(Expired(1));
}

TEST_P(StoreConformance, AnEntryPastItsLifetimeIsTakenWhileItIsKept) {
  EntryInfo info;
  info.started = info.arrived = now();
  info.lifetime = absl::Seconds(60);
  info.retention = absl::Seconds(200);
  clock_.Advance(absl::Seconds(100));
  EXPECT_EQ(store_->Put(KeyOf(1), Entry::Create(info, "", {"body"}), now()),
            PutResult::kStored);
  EXPECT_TRUE(store_->Get(KeyOf(1), now()).entry);
  clock_.Advance(absl::Seconds(100));
  EXPECT_EQ(store_->Put(KeyOf(2), Entry::Create(info, "", {"body"}), now()),
            PutResult::kExpired);
}

TEST_P(StoreConformance, AReopenedStoreStillKeepsItForItsRetention) {
  // Each opening of the shared tier has a secret of its own.
  if (!GetParam().knows_entries) {
    GTEST_SKIP() << "keeps nothing beyond the process";
  }
  EntryInfo info;
  info.started = info.arrived = now();
  info.lifetime = absl::Seconds(60);
  info.retention = absl::Seconds(200);
  ASSERT_EQ(store_->Put(KeyOf(1), Entry::Create(info, "", {"body"}), now()),
            PutResult::kStored);
  store_ = nullptr;
  store_ = Open();
  clock_.Advance(absl::Seconds(100));
  const Found found = store_->Get(KeyOf(1), now());
  if (!found.entry) GTEST_SKIP() << "keeps nothing beyond the process";
  EXPECT_EQ(found.entry->info().retention, absl::Seconds(200));
  clock_.Advance(absl::Seconds(100));
  EXPECT_TRUE(Expired(1));
}

TEST_P(StoreConformance, EverySizeComesBackWhole) {
  uint64_t n = 0;
  for (size_t size : {16, 17, 1000, 4095, 4096, 65535, 65536, 300000}) {
    EntrySpec spec = Fresh(n);
    spec.size = size;
    ASSERT_EQ(Put(n, spec), PutResult::kStored) << size;
    ++n;
  }
  for (uint64_t i = 0; i < n; ++i) EXPECT_EQ(Get(i), static_cast<int64_t>(i));
}

TEST_P(StoreConformance, AnEntryIsThereUntilItsDeadlineToTheNanosecond) {
  EntrySpec spec = Fresh();
  // Real servers' time passes, too.
  spec.lifetime = absl::Seconds(1500);
  ASSERT_EQ(Put(1, spec), PutResult::kStored);
  clock_.Advance(absl::Seconds(1500) - absl::Milliseconds(1));
  EXPECT_EQ(Get(1), 0);
  clock_.Advance(absl::Milliseconds(1) - absl::Nanoseconds(1));
  EXPECT_EQ(Get(1), 0);
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_TRUE(Expired(1));
  // It is gone for good, whatever the clock says then.
  clock_.Advance(-absl::Seconds(1));
  EXPECT_EQ(Get(1), -1);
}

TEST_P(StoreConformance, AnEntryThatHasExpiredIsNotStored) {
  EntrySpec spec = Fresh();
  spec.lifetime = absl::Seconds(1);
  const EntryRef entry = EntryOf(1, spec);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(store_->Put(KeyOf(1), entry, now()), PutResult::kExpired);
  ExpectEntries(0);
}

TEST_P(StoreConformance, AClockThatJumpsAheadExpiresAndBackIsAMiss) {
  EntrySpec spec = Fresh();
  spec.lifetime = absl::Hours(1);
  ASSERT_EQ(Put(1, spec), PutResult::kStored);
  ASSERT_EQ(Put(2, spec), PutResult::kStored);
  clock_.Advance(-kClockTolerance);
  EXPECT_EQ(Get(1), 0) << "threads may read the clock in any order";
  clock_.Advance(-absl::Nanoseconds(1));
  EXPECT_EQ(Get(1), -1) << "an entry from the future is a miss";
  // There, starts are compared.
  if (GetParam().shared) clock_.Advance(-absl::Seconds(1));
  // A fill of now is worth more than one of a time that is no more.
  EXPECT_EQ(Put(1, Fresh(1)), PutResult::kStored);
  EXPECT_EQ(Get(1), 1);
  clock_.Advance(absl::Hours(24 * 365));
  EXPECT_TRUE(Expired(1));
  EXPECT_TRUE(Expired(2));
}

TEST_P(StoreConformance, ALaterFillReplaces) {
  ASSERT_EQ(Put(1, Fresh(1)), PutResult::kStored);
  ASSERT_EQ(Put(1, Fresh(2)), PutResult::kStored) << "an equal start is none";
  EXPECT_EQ(Get(1), 2);
  clock_.Advance(absl::Nanoseconds(1));
  EntrySpec spec = Fresh(3);
  spec.size = 5000;
  ASSERT_EQ(Put(1, spec), PutResult::kStored);
  EXPECT_EQ(Get(1), 3);
  ExpectEntries(1);
}

TEST_P(StoreConformance, AnEarlierStartNeverReplacesALaterOne) {
  clock_.Advance(absl::Seconds(10));
  ASSERT_EQ(Put(1, Fresh(1)), PutResult::kStored);
  // Started before, arrives after.
  EntrySpec late = Fresh(2);
  late.started -= absl::Nanoseconds(1);
  late.took += absl::Nanoseconds(1);
  EXPECT_EQ(Put(1, late), PutResult::kOlder);
  EXPECT_EQ(Get(1), 1);
}

TEST_P(StoreConformance, ErasedIsGone) {
  ASSERT_EQ(Put(1, Fresh()), PutResult::kStored);
  ASSERT_EQ(Put(2, Fresh()), PutResult::kStored);
  EXPECT_TRUE(store_->Erase(KeyOf(1)));
  EXPECT_FALSE(store_->Erase(KeyOf(1)));
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(Get(2), 0);
  ExpectEntries(1);
}

// ---------------------------------------------------------------- Purging

TEST_P(StoreConformance, PurgedIsGone) {
  ASSERT_EQ(Put(1, Fresh()), PutResult::kStored);
  ASSERT_EQ(Put(2, Fresh()), PutResult::kStored);
  const PurgedKey purged = store_->Purge(KeyOf(1), now(), now());
  EXPECT_GE(purged.removed, 1);
  EXPECT_TRUE(purged.lasting);
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(Get(2), 0);
  ExpectEntries(1);
  EXPECT_TRUE(store_->Inspect(KeyOf(1)).empty());
  // There is nothing to do twice.
  const PurgedKey again = store_->Purge(KeyOf(1), now(), now());
  EXPECT_EQ(again.removed, 0);
  EXPECT_TRUE(again.lasting);
  // It may be filled again.
  clock_.Advance(absl::Seconds(1) + absl::Nanoseconds(1));
  ASSERT_EQ(Put(1, Fresh(7)), PutResult::kStored);
  EXPECT_EQ(Get(1), 7);
}

TEST_P(StoreConformance, APurgeLeavesWhatStartedLater) {
  const EntrySpec spec = Fresh();
  ASSERT_EQ(Put(1, spec), PutResult::kStored);
  EXPECT_EQ(store_->Purge(KeyOf(1), spec.started - absl::Nanoseconds(1), now())
                .removed,
            0);
  EXPECT_EQ(Get(1), 0);
  EXPECT_GE(store_->Purge(KeyOf(1), spec.started, now()).removed, 1);
  EXPECT_EQ(Get(1), -1);
}

TEST_P(StoreConformance, APurgeTakesWhatComesFromTheFuture) {
  EntrySpec spec = Fresh();
  spec.lifetime = absl::Hours(24);
  ASSERT_EQ(Put(1, spec), PutResult::kStored);
  clock_.Advance(-absl::Hours(1));
  EXPECT_GE(store_->Purge(KeyOf(1), now(), now()).removed, 1);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Get(1), -1);
}

TEST_P(StoreConformance, LookingAtAnEntryChangesNothing) {
  EntrySpec spec = Fresh(3);
  spec.lifetime = absl::Seconds(10);
  ASSERT_EQ(Put(1, spec), PutResult::kStored);
  EXPECT_TRUE(store_->Inspect(KeyOf(2)).empty());
  for (const Inspection& there : store_->Inspect(KeyOf(1))) {
    EXPECT_EQ(VersionOf(1, there.entry->body()), 3);
    EXPECT_GE(there.bytes, 50);
    EXPECT_EQ(there.reads, 0);
  }
  // Looking is no reading.
  for (const Inspection& there : store_->Inspect(KeyOf(1))) {
    EXPECT_EQ(there.reads, 0);
  }
  // Nor does it matter that its time is up.
  clock_.Advance(absl::Seconds(20));
  EXPECT_TRUE(GetParam().shared || !store_->Inspect(KeyOf(1)).empty());
  ExpectEntries(1);
  EXPECT_TRUE(Expired(1));
}

TEST_P(StoreConformance, WhatIsPurgedIsCountedAsThat) {
  ASSERT_EQ(Put(1, Fresh()), PutResult::kStored);
  const PurgedKey purged = store_->Purge(KeyOf(1), now(), now());
  const uint64_t counted = observer_.removed(Tier::kMemory, Removal::kPurged) +
                           observer_.removed(Tier::kDisk, Removal::kPurged) +
                           observer_.removed(Tier::kShared, Removal::kPurged);
  EXPECT_GE(counted, 1);
  // Entries that still waited for the disk never got there.
  EXPECT_LE(counted, static_cast<uint64_t>(purged.removed));
}

// Fills and purges of one key at once: no reader finds what started before a
// purge that is over.
TEST_P(StoreConformance, NoReaderFindsWhatWasPurged) {
  constexpr int kRounds = 1500;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> starts{1};
  std::atomic<uint64_t> purged{0};
  std::atomic<uint64_t> hits{0};
  const absl::Time begin = now();
  // No thread fills an entry that started before a purge that has begun: the
  // bans keep such entries out.
  Mutex fills;
  const auto write = [&] {
    while (!done) {
      MutexLock lock(&fills);
      EntrySpec spec;
      spec.version = starts.fetch_add(1);
      spec.started = begin + absl::Nanoseconds(spec.version);
      spec.took = absl::ZeroDuration();
      store_->Put(KeyOf(1), EntryOf(1, spec), now());
    }
  };
  const auto read = [&] {
    while (!done) {
      const uint64_t before = purged;
      const Found found = store_->Get(KeyOf(1), now());
      if (!found.entry) continue;
      hits.fetch_add(1, std::memory_order_relaxed);
      const int64_t version = VersionOf(1, found.entry->body());
      ASSERT_GT(version, static_cast<int64_t>(before));
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(write);
  threads.emplace_back(read);
  threads.emplace_back(read);
  for (int i = 0; i < kRounds; ++i) {
    uint64_t until = 0;
    {
      MutexLock lock(&fills);
      until = starts.fetch_add(1);
    }
    EXPECT_TRUE(store_->Purge(KeyOf(1), begin + absl::Nanoseconds(until), now())
                    .lasting);
    purged = until;
    while (hits == 0) std::this_thread::yield();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_P(StoreConformance, AnEntryOutlivesItsPlace) {
  EntrySpec spec = Fresh();
  spec.size = 50000;
  ASSERT_EQ(Put(1, spec), PutResult::kStored);
  const Found found = store_->Get(KeyOf(1), now());
  ASSERT_TRUE(found.entry);
  store_->Erase(KeyOf(1));
  store_.reset();
  EXPECT_EQ(VersionOf(1, found.entry->body()), 0);
}

TEST_P(StoreConformance, AnEntryThatCannotBeKeptIsTooLarge) {
  EXPECT_EQ(store_->Put(KeyOf(1), nullptr, now()), PutResult::kTooLarge);
  EntrySpec spec = Fresh();
  spec.size = 40 * kMegabyte;
  EXPECT_EQ(Put(2, spec), PutResult::kTooLarge);
  EXPECT_EQ(Get(2), -1);
}

TEST_P(StoreConformance, ManyKeysAreToldApart) {
  constexpr uint64_t kCount = 20000;
  for (uint64_t n = 0; n < kCount; ++n) {
    ASSERT_EQ(Put(n, Fresh(n)), PutResult::kStored);
  }
  for (uint64_t n = 0; n < kCount; ++n) {
    ASSERT_EQ(Get(n), static_cast<int64_t>(n));
  }
  for (uint64_t n = kCount; n < 2 * kCount; ++n) ASSERT_EQ(Get(n), -1);
  ExpectEntries(kCount);
  // Every other one goes; the rest stays reachable.
  for (uint64_t n = 0; n < kCount; n += 2) {
    ASSERT_TRUE(store_->Erase(KeyOf(n)));
  }
  for (uint64_t n = 0; n < kCount; ++n) {
    ASSERT_EQ(Get(n), n % 2 == 0 ? -1 : static_cast<int64_t>(n));
  }
  ExpectEntries(kCount / 2);
}

// Keys are replaced, expire and are erased, and no reader ever sees another
// key's bytes, a torn value or one past its deadline.
TEST_P(StoreConformance, ReadersWritersAndExpiryAtOnce) {
  constexpr uint64_t kKeys = 64;
  constexpr int kRounds = 4000;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> starts{1};
  std::atomic<uint64_t> hits{0};
  const absl::Time begin = now();
  const auto write = [&](uint64_t seed) {
    for (int i = 0; i < kRounds; ++i) {
      const uint64_t n = (seed * 31 + i * 7) % kKeys;
      EntrySpec spec;
      // The version is the start: order can be read off the bytes.
      spec.version = starts.fetch_add(1);
      spec.started = begin + absl::Nanoseconds(spec.version);
      spec.took = absl::ZeroDuration();
      spec.size = 16 + (i % 50) * 40;
      spec.lifetime = absl::Milliseconds(i % 3 == 0 ? 1 : 1000);
      store_->Put(KeyOf(n), EntryOf(n, spec), now());
      if (i % 16 == 0) clock_.Advance(absl::Microseconds(300));
      if (i % 97 == 0) store_->Erase(KeyOf(n + 1));
    }
  };
  const auto read = [&](uint64_t seed) {
    // Once more over all keys when the writers are through.
    for (uint64_t i = 0, left = kKeys; left > 0; ++i) {
      if (done) --left;
      const uint64_t n = (seed + i) % kKeys;
      const absl::Time at = now();
      const Found found = store_->Get(KeyOf(n), at);
      if (!found.entry) continue;
      hits.fetch_add(1, std::memory_order_relaxed);
      ASSERT_LT(at, found.entry->deadline());
      const int64_t version = VersionOf(n, found.entry->body());
      ASSERT_GE(version, 0);
    }
  };
  std::vector<std::thread> readers;
  std::vector<std::thread> writers;
  for (uint64_t i = 0; i < 2; ++i) readers.emplace_back(read, i * 13);
  for (uint64_t i = 0; i < 3; ++i) writers.emplace_back(write, i * 17);
  for (std::thread& thread : writers) thread.join();
  EntrySpec last = Fresh(starts.fetch_add(1));
  last.started = begin + absl::Hours(1);
  store_->Put(KeyOf(5), EntryOf(5, last), last.started + last.took);
  clock_.Set(last.started + last.took);
  done = true;
  for (std::thread& thread : readers) thread.join();
  EXPECT_GT(hits, 0);
}

// Nothing erases or expires here, so what a reader sees of a key only grows.
TEST_P(StoreConformance, StartsOnlyGrowForEveryReader) {
  constexpr uint64_t kKeys = 8;
  constexpr int kRounds = 3000;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> starts{1};
  const absl::Time begin = now();
  const auto write = [&](uint64_t seed) {
    for (int i = 0; i < kRounds; ++i) {
      const uint64_t n = (seed + i) % kKeys;
      EntrySpec spec;
      spec.version = starts.fetch_add(1);
      spec.started = begin + absl::Nanoseconds(spec.version);
      spec.took = absl::ZeroDuration();
      const PutResult result = store_->Put(KeyOf(n), EntryOf(n, spec), now());
      ASSERT_TRUE(result == PutResult::kStored || result == PutResult::kOlder);
    }
  };
  const auto read = [&] {
    std::vector<int64_t> last(kKeys, -1);
    for (uint64_t n = 0; !done; n = (n + 1) % kKeys) {
      const Found found = store_->Get(KeyOf(n), now());
      if (!found.entry) {
        ASSERT_EQ(last[n], -1) << "an entry vanished";
        continue;
      }
      const int64_t version = VersionOf(n, found.entry->body());
      ASSERT_GE(version, last[n]) << "an earlier start came back";
      last[n] = version;
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 3; ++i) threads.emplace_back(write, i);
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) readers.emplace_back(read);
  for (std::thread& thread : threads) thread.join();
  done = true;
  for (std::thread& thread : readers) thread.join();
}

using StoreBoundsHeavy = StoreConformance;

TEST_P(StoreBoundsHeavy, ManyInsertsStayWithinTheBound) {
  // Either is many times what fits.
  const uint64_t inserts =
      fncache::testing::ShortOrLong<uint64_t>(200'000, 1'000'000);
  store_.reset();
  store_ = Open(16 * kMegabyte, 64 << 10);
  for (uint64_t n = 0; n < inserts; ++n) {
    EntrySpec spec = Fresh(n);
    spec.size = 16 + (n * 7919) % 1500;
    ASSERT_EQ(Put(n, spec), PutResult::kStored) << n;
    if (n % 5000 == 0) {
      const StoreStats stats = store_->Stats();
      ASSERT_LE(stats.bytes, stats.capacity) << n;
      ASSERT_EQ(Get(n), static_cast<int64_t>(n));
    }
    if (n % 1000 == 0) clock_.Advance(absl::Milliseconds(1));
  }
  const StoreStats stats = store_->Stats();
  EXPECT_LE(stats.bytes, stats.capacity);
  EXPECT_GT(stats.entries, 5000);
  uint64_t found = 0;
  for (uint64_t n = inserts - 100'000; n < inserts; ++n) found += Get(n) >= 0;
  EXPECT_GT(found, 5000);
}

INSTANTIATE_TEST_SUITE_P(
    Stores, StoreConformance,
    ::testing::Values(
        MemoryBackend(), DiskBackend(), TieredBackend(),
        SharedBackend("Shared", MakeSimulatedServer),
        SharedBackend("SharedRedis", MakeRedisServer),
        SharedBackend("SharedCluster", MakeRedisCluster),
        MemoryAndSharedBackend("MemoryAndShared", MakeSimulatedServer),
        MemoryAndSharedBackend("MemoryAndSharedRedis", MakeRedisServer)),
    [](const auto& info) { return info.param.name; });
// Without the shared tier: the daemon does not bound a server's bytes.
INSTANTIATE_TEST_SUITE_P(Stores, StoreBoundsHeavy,
                         ::testing::Values(MemoryBackend(), DiskBackend(),
                                           TieredBackend()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fncache::cache::store::testing
