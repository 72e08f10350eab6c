// SPDX-License-Identifier: Apache-2.0
// Purged entries in a store with its bans: in every tier and between the tiers,
// across restarts, with a disk that accepts no writes, and in any order of
// events. Over both tiers below memory.
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "cache/store/bans.h"
#include "cache/store/open_tiers.h"
#include "cache/store/shared_store.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "tests/cache/store/full_file_system.h"
#include "tests/cache/store/shared_testing.h"
#include "tests/cache/store/store_testing.h"
#include "tests/cache/store/tiers_testing.h"

namespace fncache::cache::store::testing {
namespace {

using Kind = Bans::Kind;

constexpr uint64_t kMegabyte = 1 << 20;

class PurgeTest : public TiersTest {
 protected:
  PurgeTest() {
    options_.functions = {{"first", "r1"}, {"second", "r2"}};
    options_.disk_retry = absl::Milliseconds(5);
  }

  Bans& bans() { return store_->bans(); }
  const BanScope& ScopeOf(FunctionId function) {
    return bans().Of(options_.functions[function].name,
                     options_.functions[function].generation);
  }

  // As a call that misses does, whose function takes no time. Each starts at a
  // time of its own.
  bool Fill(uint64_t n, uint64_t version = 0, FunctionId function = 0,
            bool lower = true) {
    Follow();
    const Bans::Entered entered = bans().Enter();
    clock_.Advance(absl::Microseconds(1));
    return FillOf(now(), n, version, function, lower);
  }
  bool FillOf(absl::Time started, uint64_t n, uint64_t version = 0,
              FunctionId function = 0, bool lower = true) {
    EntrySpec spec;
    spec.version = version;
    spec.started = started;
    spec.took = now() - started;
    spec.function = function;
    return ScopeOf(function).FillUnlessBanned(KeyOf(n), started, [&] {
      store_->Fill(KeyOf(n), EntryOf(n, spec), lower, now());
    });
  }
  // As a call looks up: the version that it is answered with, or -1.
  int64_t Get(uint64_t n, FunctionId function = 0) {
    const Found found = store_->Get(KeyOf(n), now());
    if (!found.entry ||
        ScopeOf(function).Covers(KeyOf(n), found.entry->started())) {
      return -1;
    }
    const int64_t version = VersionOf(n, found.entry->body());
    EXPECT_GE(version, 0) << "wrong bytes under key " << n;
    return version;
  }
  absl::Time Before() { return std::max(now(), store_->LatestTime()); }
  // Purges a key, as the daemon does, but no flights.
  absl::Status Purge(uint64_t n) {
    Follow();
    const absl::Time before = Before();
    const auto banned =
        bans().BanKey(KeyOf(n), before, /*soft=*/false, absl::InfinitePast());
    EXPECT_TRUE(banned.has_value());
    const PurgedKey purged = store_->Purge(KeyOf(n), before, now());
    if (!purged.lasting || !store_->has_lower()) bans().KeepKey(KeyOf(n));
    return Save(before);
  }
  absl::Status Ban(Kind kind, const std::string& function,
                   const std::string& generation = "") {
    const absl::Time before = Before();
    bans().Ban(kind, function, generation, before, /*soft=*/false);
    return Save(before);
  }
  // Saves the bans, the last of which is of this time. A fleet's reach ahead:
  // entries that start later come after that.
  absl::Status Save(absl::Time before) {
    Follow();
    const absl::Status saved = bans().Save();
    if (!is_shared()) return saved;
    const absl::Time until = std::max(now() + SharedStore::kPurgeAhead, before);
    if (!fleet_->follows()) clock_.Set(until);
    // A real server's clock may be a little ahead of this one.
    while (now() <= until + absl::Milliseconds(50) && fleet_->follows()) {
      absl::SleepFor(absl::Milliseconds(5));
      Follow();
    }
    return saved;
  }
  std::string BansFile() { return *options_.disk_dir + "/bans"; }
  void Follow() {
    if (is_shared()) fleet_->FollowRealTime();
  }
  // Forgets what earlier processes had.
  void Wipe() {
    store_.reset();
    if (is_shared()) return fleet_->simulated().Clear();
    std::filesystem::remove_all(*options_.disk_dir);
  }
};

// Not over the shared tier: files, and a disk that opens later.
using PurgeDiskTest = PurgeTest;
// Also over a real server.
using PurgeServersTest = PurgeTest;

TEST_P(PurgeTest, ABanHoldsInEveryTierAndAcrossRestarts) {
  struct Row {
    Kind kind;
    int64_t first, second;  // what is found of them then
  };
  for (const Row& row :
       {Row{Kind::kFunction, -1, 2}, Row{Kind::kGeneration, -1, 2},
        Row{Kind::kAll, -1, -1}}) {
    Open();
    // One that is in memory and on disk, and one on disk only.
    for (const uint64_t n : {1, 2}) ASSERT_TRUE(Fill(n, 1, 0));
    ASSERT_TRUE(Fill(3, 2, 1));
    Open();
    EXPECT_EQ(Get(1), 1);
    ASSERT_TRUE(Ban(row.kind, "first", "r1").ok());
    for (int restart = 0; restart < 2; ++restart) {
      EXPECT_EQ(Get(1), row.first);
      EXPECT_EQ(Get(2), row.first);
      EXPECT_EQ(Get(3, 1), row.second);
      Open();
    }
    EXPECT_TRUE(Fill(1, 7)) << "what starts later is stored";
    EXPECT_EQ(Get(1), 7);
    Wipe();
  }
}

TEST_P(PurgeServersTest, WhatIsBannedIsNotPromoted) {
  Open();
  ASSERT_TRUE(Fill(1, 1));
  Open();
  ASSERT_TRUE(Ban(Kind::kFunction, "first").ok());
  EXPECT_FALSE(store_->Get(KeyOf(1), now()).entry);
  EXPECT_EQ(store_->Stats().entries, 0u);
  // An operator sees it all the same.
  const auto there = store_->Inspect(KeyOf(1));
  ASSERT_EQ(there.size(), 1u);
  EXPECT_EQ(there[0].tier, tier());
  EXPECT_EQ(there[0].function, "first");
  EXPECT_EQ(there[0].generation, "r1");
}

TEST_P(PurgeTest, ASweepTakesFromMemoryWhatTheBanCovers) {
  Open();
  for (uint64_t n = 0; n < 3000; ++n) ASSERT_TRUE(Fill(n, 1, n % 2));
  const absl::Time before = now();
  for (uint64_t n = 3000; n < 3010; ++n) ASSERT_TRUE(Fill(n, 1, 0));
  const uint64_t there = store_->Stats().entries;
  bans().Ban(Kind::kFunction, "first", "", before, false);
  const uint64_t removed = store_->Sweep(0, before);
  EXPECT_EQ(store_->Stats().entries, there - removed);
  EXPECT_EQ(removed, 1500u);
  EXPECT_EQ(observer_.removed(Tier::kMemory, Removal::kPurged), 1500u);
  for (uint64_t n = 0; n < 3010; ++n) {
    ASSERT_EQ(Get(n, n < 3000 ? n % 2 : 0), n < 3000 && n % 2 == 0 ? -1 : 1);
  }
  EXPECT_EQ(store_->Sweep(kNoFunction, now()), 1510u);
  EXPECT_EQ(store_->Stats().entries, 0u);
}

TEST_P(PurgeServersTest, AGenerationThatIsNotInUseIsBannedToo) {
  Open();
  ASSERT_TRUE(Fill(1, 1));
  options_.functions[0].generation = "r3";
  Open();
  EXPECT_EQ(Get(1), -1);
  ASSERT_TRUE(Ban(Kind::kGeneration, "first", "r1").ok());
  options_.functions[0].generation = "r1";
  Open();
  EXPECT_EQ(Get(1), -1) << "it was purged while another one was in use";
  EXPECT_TRUE(Fill(1, 2));
  EXPECT_EQ(Get(1), 2);
}

TEST_P(PurgeServersTest, AKeyIsGoneFromEveryTierAtOnce) {
  Open();
  ASSERT_TRUE(Fill(1, 1));
  store_->Flush();
  ASSERT_TRUE(Purge(1).ok());
  EXPECT_TRUE(store_->Inspect(KeyOf(1)).empty());
  EXPECT_EQ(Get(1), -1);
  EXPECT_FALSE(std::filesystem::exists(BansFile())) << "nothing is left to say";
  // A fleet keeps it for the replicas that have the entry in memory.
  EXPECT_EQ(bans().figures().keys, is_shared() ? 1u : 0u);
  EXPECT_TRUE(Fill(1, 2));
  EXPECT_EQ(Get(1), 2);
  Open();
  EXPECT_EQ(Get(1), 2);
}

TEST_P(PurgeTest, WhatWasUnderWayIsNotStored) {
  Open();
  auto entered = std::make_unique<Bans::Entered>(bans().Enter());
  const absl::Time started = now();
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(Purge(1).ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(FillOf(started, 1));
  EXPECT_TRUE(FillOf(started, 2)) << "it is of another key";
  entered.reset();
  EXPECT_EQ(Get(1), -1);
}

TEST_P(PurgeTest, WhatWaitsToBeWrittenIsForgotten) {
  Open();
  Hold();
  ASSERT_TRUE(Fill(100));  // keeps the writer busy
  AwaitWriter();
  ASSERT_TRUE(Fill(1, 1));
  ASSERT_TRUE(Fill(2, 1));
  ASSERT_TRUE(Fill(3, 1, 1));
  EXPECT_EQ(store_->QueueDepth(), 4u);
  // Deletion on disk waits for the writer; this is what comes before.
  std::thread purge([&] { EXPECT_TRUE(Purge(1).ok()); });
  while (store_->QueueDepth() != 3) std::this_thread::yield();
  bans().Ban(Kind::kFunction, "second", "", now(), false);
  EXPECT_EQ(store_->Sweep(1, now()), 1u);
  EXPECT_EQ(store_->QueueDepth(), 2u);
  LetGo();
  purge.join();
  ASSERT_TRUE(bans().Save().ok());
  Open();
  EXPECT_EQ(Get(1), -1);
  EXPECT_TRUE(store_->Inspect(KeyOf(1)).empty());
  EXPECT_EQ(Get(2), 1);
  EXPECT_EQ(Get(3, 1), -1);
  EXPECT_TRUE(store_->Inspect(KeyOf(3)).empty());
}

TEST_P(PurgeTest, WhatIsBeingWrittenIsDeletedAfterwards) {
  Open();
  Hold();
  ASSERT_TRUE(Fill(1, 1));
  AwaitWriter();
  absl::Notification purged;
  std::thread purge([&] {
    EXPECT_TRUE(Purge(1).ok());
    purged.Notify();
  });
  // Calls are not held up, and are not answered with it.
  while (Get(1) != -1) std::this_thread::yield();
  EXPECT_FALSE(purged.HasBeenNotified()) << "it is not on disk yet";
  LetGo();
  purge.join();
  Open();
  EXPECT_EQ(Get(1), -1);
  EXPECT_TRUE(store_->Inspect(KeyOf(1)).empty());
}

TEST_P(PurgeDiskTest, OnADiskThatTakesNoWritesTheBanIsKept) {
  const auto system = std::make_shared<FullFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(system);
  options_.env = env.get();
  Open();
  ASSERT_TRUE(Fill(1, 1));
  store_->Flush();
  system->set_full(true);
  // The file of bans is not RocksDB's: it is written.
  EXPECT_TRUE(Purge(1).ok());
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(bans().Kept().size(), 1u);
  ASSERT_TRUE(std::filesystem::exists(BansFile()));
  // The next process finds entry and ban, and serves neither.
  const std::string copy = directory_.path() + "/copy";
  std::filesystem::copy(*options_.disk_dir, copy,
                        std::filesystem::copy_options::recursive);
  store_.reset();
  system->set_full(false);
  options_.disk_dir = copy;
  Open();
  ASSERT_EQ(bans().Kept().size(), 1u);
  EXPECT_EQ(Get(1), -1);
  // It is deleted as soon as anything is written.
  ASSERT_TRUE(Fill(2, 1));
  store_->Flush();
  EXPECT_TRUE(bans().Kept().empty());
  EXPECT_TRUE(store_->Inspect(KeyOf(1)).empty());
  EXPECT_EQ(bans().figures().keys, 0u);
  Open();
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(Get(2), 1);
  EXPECT_EQ(bans().figures().keys, 0u);
  store_.reset();
}

TEST_P(PurgeDiskTest, ABanThatCannotBeWrittenSaysSoAndIsWrittenLater) {
  Open();
  ASSERT_TRUE(Fill(1, 1));
  const std::string in_the_way = BansFile() + ".new";
  ASSERT_TRUE(std::filesystem::create_directories(in_the_way + "/full"));
  const absl::Status banned = Ban(Kind::kFunction, "first");
  EXPECT_TRUE(absl::IsUnavailable(banned)) << banned;
  EXPECT_NE(banned.message().find(*options_.disk_dir), std::string::npos);
  EXPECT_EQ(Get(1), -1) << "it is in force";
  std::filesystem::remove_all(in_the_way);
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(Fill(2, 1));
  // With the writes that follow, or a few seconds without any.
  while (!bans().saved()) std::this_thread::yield();
  Open();
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(Get(2), 1);
}

TEST_P(PurgeDiskTest, ADamagedFileBansWhatIsStoredAndNothingLater) {
  for (const bool whole : {false, true}) {
    Open();
    ASSERT_TRUE(Fill(1, 1, 0));
    ASSERT_TRUE(Fill(2, 1, 1));
    ASSERT_TRUE(Ban(Kind::kFunction, "first").ok());
    store_.reset();
    const auto size = std::filesystem::file_size(BansFile());
    if (whole) {
      std::fstream(BansFile())
          .seekp(static_cast<std::streamoff>(size) - 1)
          .put('\x7f');
    } else {
      std::filesystem::resize_file(BansFile(), size / 2);
    }
    Open();
    EXPECT_EQ(Get(1), -1);
    EXPECT_EQ(Get(2, 1), -1) << "for all that is known, it was purged";
    EXPECT_TRUE(Fill(2, 2, 1));
    EXPECT_EQ(Get(2, 1), 2);
    Open();
    EXPECT_EQ(Get(1), -1);
    EXPECT_EQ(Get(2, 1), 2) << "the file is whole again";
  }
}

TEST_P(PurgeTest, WhatIsOfAClockThatWasAheadIsPurgedToo) {
  // Less than what drops the database; or a replica whose clock is further
  // ahead does not use the shared tier.
  const absl::Duration ahead =
      is_shared() ? SharedStore::kClockLimit - absl::Milliseconds(1)
                  : absl::Seconds(3);
  Open();
  clock_.Advance(ahead);
  ASSERT_TRUE(Fill(1, 1));
  store_.reset();
  clock_.Advance(-ahead);
  Open();
  ASSERT_EQ(Get(1), 1);
  ASSERT_TRUE(Ban(Kind::kFunction, "first").ok());
  EXPECT_EQ(Get(1), -1);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(Get(1), -1);
  Open();
  EXPECT_EQ(Get(1), -1);
}

TEST_P(PurgeDiskTest, WithoutTheDiskAPurgeWaitsForIt) {
  Open();
  ASSERT_TRUE(Fill(1, 1, 0));
  ASSERT_TRUE(Fill(2, 1, 1));
  ASSERT_TRUE(Fill(3, 1, 1));
  store_.reset();
  const auto system = std::make_shared<FullFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(system);
  options_.env = env.get();
  system->set_full(true);
  Open();
  ASSERT_FALSE(store_->has_lower());
  EXPECT_TRUE(absl::IsUnavailable(Ban(Kind::kFunction, "first")));
  EXPECT_TRUE(absl::IsUnavailable(Purge(2)));
  EXPECT_FALSE(bans().saved());
  system->set_full(false);
  while (!store_->has_lower()) std::this_thread::yield();
  EXPECT_TRUE(bans().saved()) << "before anything is served";
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(Get(2, 1), -1);
  EXPECT_EQ(Get(3, 1), 1);
  Open();
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(Get(2, 1), -1);
  EXPECT_EQ(Get(3, 1), 1);
  store_.reset();
}

// ---------------------------------------------------------------- Orders

// A schedule of random fills (some long under way), look-ups, purges of all
// kinds and restarts. The model knows of each key which start it may at least
// be found with.
// Beyond memory, `shared` is over a shared tier.
void Schedule(uint32_t seed, TieredOptions options, bool shared,
              CountingObserver* observer, int* hits, int* misses) {
  std::mt19937 random(seed);
  const auto draw = [&random](int n) { return static_cast<int>(random() % n); };
  SimulatedClock clock(absl::FromUnixSeconds(1'700'000'000));
  constexpr int kKeys = 12;
  constexpr int kFunctions = 2;
  const auto function_of = [](uint64_t n) {
    return static_cast<FunctionId>(n % kFunctions);
  };
  std::vector<absl::Time> least(kKeys, absl::InfinitePast());
  struct Running {
    Bans::Entered entered;
    absl::Time started;
    uint64_t n;
  };
  std::unique_ptr<SharedTier> fleet;
  if (shared) {
    fleet = std::make_unique<SharedTier>(MakeSimulatedServer(&clock), &clock);
  }
  std::unique_ptr<TieredStore> store;
  std::vector<Running> running;
  const auto open = [&] {
    running.clear();
    store.reset();
    auto opened = shared ? fleet->Open(options, &clock, observer)
                         : OpenTiers(options, &clock, observer);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store = *std::move(opened);
  };
  const auto scope = [&](uint64_t n) -> const BanScope& {
    const StoredFunction& function = options.functions[function_of(n)];
    return store->bans().Of(function.name, function.generation);
  };
  open();
  for (int step = 0; step < 250; ++step) {
    clock.Advance(absl::Microseconds(1));
    const uint64_t n = static_cast<uint64_t>(draw(kKeys));
    switch (draw(12)) {
      case 0:
      case 1:
      case 2: {
        Bans::Entered entered = store->bans().Enter();
        running.push_back({std::move(entered), clock.Now(), n});
        break;
      }
      case 3:
      case 4:
      case 5: {
        if (running.empty()) break;
        const size_t which = static_cast<size_t>(draw(running.size()));
        Running run = std::move(running[which]);
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
        EntrySpec spec;
        spec.version = static_cast<uint64_t>(step);
        spec.started = run.started;
        spec.took = clock.Now() - run.started;
        spec.function = function_of(run.n);
        scope(run.n).FillUnlessBanned(KeyOf(run.n), run.started, [&] {
          store->Fill(KeyOf(run.n), EntryOf(run.n, spec), draw(4) != 0,
                      clock.Now());
        });
        break;
      }
      case 6: {
        const absl::Time before = clock.Now();
        const auto banned =
            store->bans().BanKey(KeyOf(n), before, false, absl::InfinitePast());
        ASSERT_TRUE(banned.has_value());
        ASSERT_TRUE(store->Purge(KeyOf(n), before, before).lasting);
        ASSERT_TRUE(store->bans().Save().ok());
        least[n] = before;
        break;
      }
      case 7: {
        if (draw(3) != 0) break;
        const auto kind = static_cast<Kind>(draw(3));
        const StoredFunction& function = options.functions[function_of(n)];
        const absl::Time before = clock.Now();
        store->bans().Ban(kind, function.name, function.generation, before,
                          false);
        if (draw(2) == 0) {
          store->Sweep(kind == Kind::kAll ? kNoFunction : function_of(n),
                       before);
        }
        ASSERT_TRUE(store->bans().Save().ok());
        for (uint64_t key = 0; key < kKeys; ++key) {
          if (kind == Kind::kAll || function_of(key) == function_of(n)) {
            least[key] = before;
          }
        }
        break;
      }
      case 8:
        if (draw(10) == 0) open();
        break;
      default: {
        const Found found = store->Get(KeyOf(n), clock.Now());
        if (!found.entry || scope(n).Covers(KeyOf(n), found.entry->started())) {
          ++*misses;
          break;
        }
        ++*hits;
        ASSERT_GT(found.entry->started(), least[n])
            << "purged, and served again; step " << step;
      }
    }
  }
  store->Flush();
  for (const Inspection& there : store->Inspect(KeyOf(0))) {
    if (!scope(0).Covers(KeyOf(0), there.entry->started())) {
      ASSERT_GT(there.entry->started(), least[0]);
    }
  }
}

using PurgeScheduleTest = ::testing::TestWithParam<Below>;

TEST_P(PurgeScheduleTest, WhatIsPurgedIsNeverServedAgain) {
  const bool shared = GetParam().server != nullptr;
  int hits = 0;
  int misses = 0;
  for (uint32_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    const TempDir directory;
    CountingObserver observer;
    TieredOptions options;
    // So little memory that most entries are on disk alone.
    options.memory_bytes = seed % 2 == 0 ? 64 << 10 : kMegabyte;
    options.max_entry_bytes = 4 << 10;
    options.disk_bytes = 64 * kMegabyte;
    options.functions = {{"first", "r1"}, {"second", "r2"}};
    if (seed % 3 != 0) options.disk_dir = directory.path();
    Schedule(seed, options, shared, &observer, &hits, &misses);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(hits, 200);
  EXPECT_GT(misses, 200);
}

// The same with threads: calls that look up, in memory and below, and fill; and
// operators that purge. No call that began after a purge was over is answered
// with what started before the purge.
using PurgeThreadsTest = ::testing::TestWithParam<Below>;

TEST_P(PurgeThreadsTest, WhatIsPurgedIsNeverServedAgain) {
  const bool shared = GetParam().server != nullptr;
  constexpr uint64_t kKeys = 8;
  for (const uint64_t memory : {uint64_t{64} << 10, kMegabyte}) {
    const TempDir directory;
    CountingObserver observer;
    SystemClock clock;
    TieredOptions options;
    options.memory_bytes = memory;
    options.max_entry_bytes = 4 << 10;
    options.disk_dir = directory.path();
    options.disk_bytes = 64 * kMegabyte;
    options.functions = {{"first", "r1"}};
    std::unique_ptr<SharedTier> fleet;
    if (shared) {
      fleet =
          std::make_unique<SharedTier>(MakeSimulatedServer(&clock), nullptr);
    }
    auto opened = shared ? fleet->Open(options, &clock, &observer)
                         : OpenTiers(options, &clock, &observer);
    ASSERT_TRUE(opened.ok()) << opened.status();
    TieredStore& store = **opened;
    Bans& bans = store.bans();
    const BanScope& scope = bans.Of("first", "r1");
    // When the last purge that is over was made, in nanoseconds.
    std::array<std::atomic<int64_t>, kKeys> purged{};
    std::atomic<bool> done{false};
    std::atomic<int> hits{0};
    const auto check = [&](uint64_t n, int64_t before, const Found& found) {
      if (!found.entry || scope.Covers(KeyOf(n), found.entry->started())) {
        return false;
      }
      ++hits;
      EXPECT_GT(absl::ToUnixNanos(found.entry->started()), before)
          << "purged, and served again";
      return true;
    };
    const auto call = [&](uint32_t seed) {
      std::mt19937 random(seed);
      while (!done) {
        const uint64_t n = random() % kKeys;
        const int64_t before = purged[n].load();
        if (check(n, before, store.GetMemory(KeyOf(n), clock.Now()))) continue;
        {
          const Bans::Entered entered = bans.Enter();
          absl::Notification looked;
          Found below;
          store.GetLower(KeyOf(n), 0, absl::InfinitePast(), clock.Now(),
                         [&](Found found) {
                           below = std::move(found);
                           ReleaseTo(&looked);
                           looked.Notify();
                         });
          looked.WaitForNotification();
          AcquireFrom(&looked);
          if (check(n, before, below)) continue;
        }
        const Bans::Entered entered = bans.Enter();
        EntrySpec spec;
        spec.started = clock.Now();
        if (random() % 4 == 0) std::this_thread::yield();
        spec.took = clock.Now() - spec.started;
        spec.size = 16 + random() % 3000;
        scope.FillUnlessBanned(KeyOf(n), spec.started, [&] {
          store.Fill(KeyOf(n), EntryOf(n, spec), random() % 8 != 0,
                     clock.Now());
        });
      }
    };
    const auto purge = [&] {
      std::mt19937 random(99);
      for (int i = 0; i < (shared ? 100 : 400); ++i) {
        // The calls go on meanwhile.
        for (const int seen = hits; hits < seen + 3;) std::this_thread::yield();
        if (random() % 20 == 0) {
          const absl::Time before = clock.Now();
          bans.Ban(Kind::kFunction, "first", "", before, false);
          if (random() % 2 == 0) store.Sweep(0, before);
          for (auto& of_key : purged) of_key = absl::ToUnixNanos(before);
          continue;
        }
        const uint64_t n = random() % kKeys;
        const absl::Time before = clock.Now();
        const auto banned =
            bans.BanKey(KeyOf(n), before, false, absl::InfinitePast());
        ASSERT_TRUE(store.Purge(KeyOf(n), before, clock.Now()).lasting);
        purged[n] = absl::ToUnixNanos(before);
      }
      done = true;
    };
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 3; ++t) threads.emplace_back(call, t);
    threads.emplace_back(purge);
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(hits, 100);
    // A fleet keeps them.
    EXPECT_TRUE(shared || bans.figures().keys == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Below, PurgeTest,
                         ::testing::Values(OnDisk(), OnSimulated()),
                         NameOfBelow);
INSTANTIATE_TEST_SUITE_P(Below, PurgeServersTest,
                         ::testing::Values(OnDisk(), OnSimulated(), OnRedis()),
                         NameOfBelow);
INSTANTIATE_TEST_SUITE_P(Below, PurgeDiskTest, ::testing::Values(OnDisk()),
                         NameOfBelow);
INSTANTIATE_TEST_SUITE_P(Below, PurgeScheduleTest,
                         ::testing::Values(OnDisk(), OnSimulated()),
                         NameOfBelow);
INSTANTIATE_TEST_SUITE_P(Below, PurgeThreadsTest,
                         ::testing::Values(OnDisk(), OnSimulated()),
                         NameOfBelow);

}  // namespace
}  // namespace fncache::cache::store::testing
