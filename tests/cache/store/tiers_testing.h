// SPDX-License-Identifier: Apache-2.0
// TiersTest: memory and a tier below it, the disk or a shared one, in simulated
// time. Suites that are derived from it run over both.
#ifndef FNCACHE_TESTS_CACHE_STORE_TIERS_TESTING_H_
#define FNCACHE_TESTS_CACHE_STORE_TIERS_TESTING_H_

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "cache/observer.h"
#include "cache/store/open_tiers.h"
#include "cache/store/shared_scripts.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "tests/cache/store/held_file_system.h"
#include "tests/cache/store/shared_testing.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {

// A tier below memory.
struct Below {
  std::string name;
  // Makes the server of a shared tier. Null: the disk.
  std::function<std::unique_ptr<TestServer>(Clock*)> server;
};
inline void PrintTo(const Below& below, std::ostream* out) {
  *out << below.name;
}
inline Below OnDisk() { return {"Disk", nullptr}; }
inline Below OnSimulated() { return {"Shared", MakeSimulatedServer}; }
inline Below OnRedis() { return {"SharedRedis", MakeRedisServer}; }
inline std::string NameOfBelow(const ::testing::TestParamInfo<Below>& info) {
  return info.param.name;
}

class TiersTest : public ::testing::TestWithParam<Below> {
 protected:
  static constexpr uint64_t kMegabyte = 1 << 20;

  TiersTest()
      : system_(std::make_shared<HeldFileSystem>()),
        env_(rocksdb::NewCompositeEnv(system_)),
        clock_(absl::FromUnixSeconds(1'700'000'000)) {
    options_.memory_bytes = 4 * kMegabyte;
    options_.max_entry_bytes = kMegabyte;
    options_.disk_dir = directory_.path() + "/cache";
    options_.disk_bytes = 64 * kMegabyte;
    options_.env = env_.get();
    if (GetParam().server == nullptr) return;
    fleet_ = std::make_unique<SharedTier>(GetParam().server(&clock_), &clock_);
    if (GetParam().name == "Shared") Hook(nullptr);
  }
  ~TiersTest() override { LetGo(); }

  // The store ends before the file system that it was opened with.
  void TearDown() override {
    LetGo();
    store_.reset();
  }

  bool is_shared() const { return fleet_ != nullptr; }
  // The tier below.
  Tier tier() const { return is_shared() ? Tier::kShared : Tier::kDisk; }

  void Open() {
    store_.reset();
    auto store = is_shared() ? fleet_->Open(options_, &clock_, &observer_)
                             : OpenTiers(options_, &clock_, &observer_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  absl::Time now() { return clock_.Now(); }

  // Blocks the writes to the tier below. Not on a real server.
  void Hold() {
    gate_.Close();
    system_->Hold();
  }
  void LetGo() {
    gate_.Open();
    system_->LetGo();
  }
  void AwaitWriter() {
    if (is_shared()) return gate_.AwaitThread();
    system_->AwaitWriter();
  }
  // Calls `before` for each command of this process on a simulated server, once
  // Hold does not block it. Call it while no command is being sent.
  using Before =
      std::function<SimulatedServer::Fault(const resp::Command& command)>;
  void Hook(Before before) {
    SimulatedServer::Hooks hooks;
    hooks.before = [this, before = std::move(before)](
                       int replica, const resp::Command& command) {
      if (replica != 0) return SimulatedServer::Fault::kNone;
      if (IsWrite(command)) gate_.Pass();
      return before == nullptr ? SimulatedServer::Fault::kNone
                               : before(command);
    };
    fleet_->simulated().SetHooks(std::move(hooks));
  }
  static bool IsWrite(const resp::Command& command) {
    return command.words[0] == "EVAL" && (command.words[1] == kFillScript ||
                                          command.words[1] == kEraseScript);
  }

  TempDir directory_;
  std::shared_ptr<HeldFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  Gate gate_;
  SimulatedClock clock_;
  CountingObserver observer_;
  TieredOptions options_;
  std::unique_ptr<SharedTier> fleet_;
  std::unique_ptr<TieredStore> store_;
};

// The same with entries of one function.
class FilledTiersTest : public TiersTest {
 protected:
  PutResult Fill(uint64_t n, uint64_t version, bool lower = true,
                 absl::Duration started_ago = absl::Seconds(1),
                 size_t size = 1000) {
    return FillIn(store_.get(), n, version, lower, started_ago, size);
  }
  PutResult FillIn(TieredStore* store, uint64_t n, uint64_t version,
                   bool lower = true,
                   absl::Duration started_ago = absl::Seconds(1),
                   size_t size = 1000) {
    if (is_shared()) fleet_->FollowRealTime();
    EntrySpec spec;
    spec.version = version;
    spec.size = size;
    spec.started = now() - started_ago;
    spec.took = started_ago;
    return store->Fill(KeyOf(n), EntryOf(n, spec), lower, now());
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
  int64_t Below(uint64_t n, absl::Time than = absl::InfinitePast()) {
    Found result;
    absl::Notification done;
    store_->GetLower(KeyOf(n), 0, than, now(), [&](Found found) {
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
};

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_TIERS_TESTING_H_
