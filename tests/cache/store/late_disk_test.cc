// SPDX-License-Identifier: Apache-2.0
// A disk tier without space costs the tier, not the start. It opens later,
// under its own seed, and no entry from before is found then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <sys/mount.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/store/open_tiers.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "tests/cache/store/full_file_system.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMegabyte = 1 << 20;

// A key as a digest makes them: another one under another seed.
key::Key KeyUnder(const key::Seed& seed, uint64_t n) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(
      seed.data(), seed.size(), n * 0x9e3779b97f4a7c15ull + 1);
  return {hash.high64, hash.low64};
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

class LateDiskTest : public ::testing::Test {
 protected:
  LateDiskTest() : clock_(absl::FromUnixSeconds(1'700'000'000)) {
    options_.memory_bytes = 4 * kMegabyte;
    options_.max_entry_bytes = kMegabyte;
    options_.disk_dir = directory_.path() + "/cache";
    options_.disk_bytes = 64 * kMegabyte;
    options_.functions = {{"first", "r1"}};
    options_.disk_retry = absl::Milliseconds(5);
  }
  // Before the environment that it was opened with.
  void TearDown() override { store_.reset(); }

  absl::Status Open() {
    store_.reset();
    auto store = OpenTiers(options_, &clock_, &observer_);
    if (!store.ok()) return store.status();
    store_ = *std::move(store);
    return absl::OkStatus();
  }
  absl::Time now() { return clock_.Now(); }
  PutResult Fill(TieredStore* store, uint64_t n, uint64_t version = 0) {
    return FillUnder(store, KeyUnder(store->seed(), n), n, version);
  }
  PutResult FillUnder(TieredStore* store, const key::Key& key, uint64_t n,
                      uint64_t version = 0) {
    store::testing::EntrySpec spec;
    spec.version = version;
    spec.started = now() - spec.took;
    return store->Fill(key, store::testing::EntryOf(n, spec), /*lower=*/true,
                       now());
  }
  int64_t Get(TieredStore* store, const key::Key& key, uint64_t n) {
    const Found found = store->Get(key, now());
    if (!found.entry) return -1;
    const int64_t version = store::testing::VersionOf(n, found.entry->body());
    EXPECT_GE(version, 0) << "another key's bytes";
    return version;
  }
  int64_t Get(TieredStore* store, uint64_t n) {
    return Get(store, KeyUnder(store->seed(), n), n);
  }
  // Waits until the disk tier is open.
  static void AwaitDisk(const TieredStore& store) {
    while (!store.has_lower()) std::this_thread::yield();
  }
  // A store whose start finds no space. `may_open` is called for each later
  // attempt; where it returns OK, the disk tier opens.
  std::unique_ptr<TieredStore> Late(std::function<absl::Status()> may_open) {
    auto first = std::make_shared<std::atomic<bool>>(true);
    auto store = OpenTiers(
        options_, &clock_, &observer_,
        [may_open = std::move(may_open), first](
            const TieredOptions& options, Clock* clock,
            Observer* observer) -> absl::StatusOr<std::unique_ptr<LowerStore>> {
          const absl::Status status =
              first->exchange(false)
                  ? absl::UnavailableError("no space, says the test")
                  : may_open();
          if (!status.ok()) return status;
          return OpenLower(options, clock, observer);
        });
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  store::testing::TempDir directory_;
  SimulatedClock clock_;
  store::testing::CountingObserver observer_;
  TieredOptions options_;
  std::unique_ptr<TieredStore> store_;
};

TEST_F(LateDiskTest, AFullDiskCostsTheTierUntilThereIsSpace) {
  const auto system = std::make_shared<FullFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(system);
  options_.env = env.get();
  system->set_full(true);
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Open().ok());
  EXPECT_FALSE(store_->has_lower());
  EXPECT_FALSE(store_->LowerStats().up);
  EXPECT_EQ(store_->LowerStats().capacity, 64 * kMegabyte);
  EXPECT_TRUE(store_->Stats().up);
  EXPECT_EQ(Fill(store_.get(), 1, 1), PutResult::kStored);
  EXPECT_EQ(Get(store_.get(), 1), 1);
  EXPECT_EQ(observer_.dropped(Tier::kDisk, Dropped::kError), 1);

  const key::Seed first = store_->seed();
  system->set_full(false);
  AwaitDisk(*store_);
  EXPECT_TRUE(store_->LowerStats().up);
  EXPECT_NE(store_->seed(), first);
  observer_.AwaitRemoved(Tier::kMemory, Removal::kDropped, 1);
  EXPECT_EQ(Get(store_.get(), 1), -1);
  EXPECT_EQ(Fill(store_.get(), 2, 2), PutResult::kStored);
  store_->Flush();
  EXPECT_EQ(observer_.written(Tier::kDisk), 1);
  EXPECT_EQ(store_->LowerStats().entries, 1);
  EXPECT_EQ(store_->Stats().entries, 1);
  const key::Seed seed = store_->seed();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(store_->seed(), seed);
  EXPECT_EQ(Get(store_.get(), 2), 2);
  store_.reset();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(CountOf(log, " error the cache on disk cannot be opened"), 1)
      << log;
  EXPECT_EQ(CountOf(log, "the cache on disk is open"), 1) << log;
  EXPECT_THAT(log, HasSubstr(*options_.disk_dir));
  EXPECT_THAT(log, Not(HasSubstr("damaged")));
}

TEST_F(LateDiskTest, MemoryIsEmptiedAndALateFillIsNotFound) {
  std::atomic<bool> may_open{false};
  const auto store = Late([&] {
    return may_open ? absl::OkStatus() : absl::UnavailableError("not yet");
  });
  std::vector<key::Key> old_keys;
  for (uint64_t n = 0; n < 1000; ++n) {
    old_keys.push_back(KeyUnder(store->seed(), n));
    Fill(store.get(), n, n);
  }
  ASSERT_EQ(store->Stats().entries, 1000);
  // A flight that is under way when the disk tier opens keeps its key.
  const key::Key old_key = KeyUnder(store->seed(), 5000);
  may_open = true;
  AwaitDisk(*store);
  observer_.AwaitRemoved(Tier::kMemory, Removal::kDropped, 1000);
  for (uint64_t n = 0; n < 1000; ++n) {
    ASSERT_EQ(Get(store.get(), old_keys[n], n), -1);
  }
  EXPECT_EQ(FillUnder(store.get(), old_key, 5000), PutResult::kStored)
      << "the callers of this flight get the answer";
  EXPECT_EQ(Get(store.get(), 5000), -1) << "new calls have another key";
}

TEST_F(LateDiskTest, AnAttemptFollowsOnlyAfterAWhile) {
  EXPECT_EQ(TieredOptions().disk_retry, absl::Seconds(30));
  options_.disk_retry = absl::Milliseconds(20);
  Mutex mutex;
  std::vector<std::chrono::steady_clock::time_point> times;
  const auto begin = std::chrono::steady_clock::now();
  ::testing::internal::CaptureStderr();
  {
    const auto store = Late([&]() -> absl::Status {
      MutexLock lock(&mutex);
      times.push_back(std::chrono::steady_clock::now());
      if (times.size() < 3) {
        return absl::UnavailableError("no space, says the test");
      }
      if (times.size() < 5) {
        return absl::FailedPreconditionError("now it is a file");
      }
      return absl::OkStatus();
    });
    AwaitDisk(*store);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(times.size(), 5) << "no attempt after the one that worked";
  auto last = begin;
  for (const auto time : times) {
    EXPECT_GE(time - last, std::chrono::milliseconds(20));
    last = time;
  }
  EXPECT_EQ(CountOf(log, "cannot be opened"), 2) << log;
  EXPECT_EQ(CountOf(log, "no space, says the test"), 1) << log;
  EXPECT_EQ(CountOf(log, "now it is a file"), 1) << log;
}

TEST_F(LateDiskTest, DestructionEndsTheWait) {
  options_.disk_retry = absl::Hours(1);
  Late([]() -> absl::Status {
    ADD_FAILURE() << "an attempt before its time";
    return absl::InternalError("");
  }).reset();
}

// Callers make a key under the seed of the moment and keep it. The
// disk tier may open at any moment: no caller gets another key's entry or,
// under the tier's seed, an entry that was filled before.
TEST_F(LateDiskTest, NoKeyMeetsEntriesOfAnotherSeed) {
  constexpr uint64_t kKeys = 200;
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<bool> may_open{false};
    const auto store = Late([&] {
      return may_open ? absl::OkStatus() : absl::UnavailableError("not yet");
    });
    const key::Seed& first = store->seed();
    std::atomic<bool> stop{false};
    std::atomic<int> hits{0};
    std::atomic<int> calls_after{0};
    const auto call = [&](uint64_t start) {
      for (uint64_t n = start; !stop; n = (n + 7) % kKeys) {
        const key::Seed& seed = store->seed();
        const bool late = &seed != &first;
        const key::Key key = KeyUnder(seed, n);
        const Found found = store->GetMemory(key, now());
        if (found.entry) {
          ++hits;
          EXPECT_EQ(store::testing::VersionOf(n, found.entry->body()),
                    late ? 2 : 1)
              << "an entry of the other seed";
        } else {
          FillUnder(store.get(), key, n, late ? 2 : 1);
        }
        if (late) ++calls_after;
      }
    };
    std::vector<std::thread> callers;
    for (uint64_t i = 0; i < 3; ++i) callers.emplace_back(call, i);
    while (hits < 1000) std::this_thread::yield();
    may_open = true;
    AwaitDisk(*store);
    while (calls_after < 1000) std::this_thread::yield();
    stop = true;
    for (std::thread& caller : callers) caller.join();
    store->Flush();
    for (uint64_t n = 0; n < kKeys; ++n) {
      const int64_t version = Get(store.get(), n);
      ASSERT_TRUE(version == 2 || version == -1) << version;
    }
    // In each round a caller may have filled one entry under the first seed
    // after the tier opened.
    EXPECT_LE(store->LowerStats().entries,
              kKeys + (round + 1) * callers.size());
  }
}

TEST_F(LateDiskTest, ASettingThatNeverCouldWorkEndsTheStart) {
  std::ofstream(directory_.path() + "/file") << "not a directory";
  for (const char* dir : {"/file", "/file/below"}) {
    options_.disk_dir = directory_.path() + dir;
    const absl::Status status = Open();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(status.message(), HasSubstr(*options_.disk_dir));
  }
}

TEST_F(LateDiskTest, ADirectoryThatIsNotOursToUseEndsTheStart) {
  fs::permissions(directory_.path(), fs::perms::owner_all);
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);  // an unprivileged user
  } else {
    fs::permissions(directory_.path(), fs::perms::none);
  }
  const absl::Status status = Open();
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  fs::permissions(directory_.path(), fs::perms::owner_all);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(status.message(), HasSubstr("Permission denied"));
}

// A small file system of its own, where the test may mount one.
class MountedLateDiskTest : public LateDiskTest {
 protected:
  void SetUp() override {
    mounted_ = directory_.path() + "/small";
    ASSERT_TRUE(fs::create_directory(mounted_));
    if (mount("none", mounted_.c_str(), "tmpfs", 0, "size=8m") != 0) {
      const int error = errno;
      mounted_.clear();
      GTEST_SKIP() << "may not mount here: " << strerror(error);
    }
    options_.disk_dir = mounted_ + "/cache";
    options_.disk_bytes = 4 * kMegabyte;
  }
  void TearDown() override {
    LateDiskTest::TearDown();
    if (!mounted_.empty()) {
      EXPECT_EQ(umount(mounted_.c_str()), 0);
    }
  }
  // Writes a file that leaves `left` bytes of space.
  void FillUpTo(uint64_t left) {
    const fs::space_info space = fs::space(mounted_);
    std::ofstream file(mounted_ + "/ballast", std::ios::binary);
    const std::string chunk(4096, 'b');
    for (uint64_t used = 0; used + left < space.available;
         used += chunk.size()) {
      file << chunk;
    }
  }
  void MakeSpace() { fs::remove(mounted_ + "/ballast"); }

  std::string mounted_;
};

TEST_F(MountedLateDiskTest, AReadOnlyFileSystemCostsTheTier) {
  for (const bool there : {false, true}) {
    SCOPED_TRACE(there ? "a directory with entries" : "no directory yet");
    ASSERT_EQ(mount("none", mounted_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY,
                    "size=8m"),
              0);
    const absl::Status opened = Open();
    ASSERT_TRUE(opened.ok()) << opened;
    EXPECT_FALSE(store_->LowerStats().up);
    EXPECT_EQ(Fill(store_.get(), 1, 1), PutResult::kStored);
    ASSERT_EQ(mount("none", mounted_.c_str(), "tmpfs", MS_REMOUNT, "size=8m"),
              0);
    AwaitDisk(*store_);
    EXPECT_TRUE(store_->LowerStats().up);
    EXPECT_EQ(Get(store_.get(), 1), there ? 7 : -1);
    Fill(store_.get(), 1, 7);
    store_.reset();
  }
}

TEST_F(MountedLateDiskTest, AttemptsInVainLeaveNoFiles) {
  ASSERT_TRUE(Open().ok());
  Fill(store_.get(), 1, 7);
  store_.reset();
  FillUpTo(0);
  const auto files = [this] {
    const fs::directory_iterator all(*options_.disk_dir + "/db");
    return std::distance(fs::begin(all), fs::end(all));
  };
  const auto before = files();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Open().ok());
    EXPECT_FALSE(store_->LowerStats().up);
    store_.reset();
  }
  EXPECT_EQ(files(), before);
}

TEST_F(MountedLateDiskTest, AFullFileSystemCostsNoEntries) {
  for (const bool there : {false, true}) {
    int without_tier = 0;
    for (const uint64_t left : {0 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10,
                                64 << 10, 128 << 10, 256 << 10, 512 << 10}) {
      SCOPED_TRACE(::testing::Message()
                   << (there ? "with entries, " : "new, ") << left);
      fs::remove_all(mounted_ + "/cache");
      if (there) {
        ASSERT_TRUE(Open().ok());
        for (uint64_t n = 0; n < 300; ++n) Fill(store_.get(), n, n);
        store_.reset();
      }
      FillUpTo(left);
      const absl::Status opened = Open();
      ASSERT_TRUE(opened.ok()) << opened;
      const bool up = store_->LowerStats().up;
      if (!up) ++without_tier;
      // A few attempts more in vain.
      if (!up) Fill(store_.get(), 1, 1);
      MakeSpace();
      AwaitDisk(*store_);
      EXPECT_FALSE(fs::exists(*options_.disk_dir + "/damaged"));
      if (there) {
        for (uint64_t n = 0; n < 300; ++n) {
          ASSERT_EQ(Get(store_.get(), n), static_cast<int64_t>(n));
        }
      }
      store_.reset();
    }
    EXPECT_GT(without_tier, 0) << "there was always space";
  }
}

}  // namespace
}  // namespace fncache::cache::store::testing
