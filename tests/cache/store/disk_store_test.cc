// SPDX-License-Identifier: Apache-2.0
// Holds the disk tier to what it owes beyond the contract of every store: its
// directory, its lock, its restarts and its bound. Damage and a full disk have
// files of their own.
#include "cache/store/disk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tests/cache/store/disk_store_testing.h"
#include "tests/cache/store/store_testing.h"
#include "tests/common/eventually.h"

namespace fncache::cache::store::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

uint64_t SizeOnDisk(const std::string& dir) {
  uint64_t size = 0;
  std::error_code ignored;
  for (const auto& file : fs::recursive_directory_iterator(dir, ignored)) {
    if (file.is_regular_file(ignored)) size += file.file_size(ignored);
  }
  return size;
}

TEST_F(DiskStoreTest, DirectoriesAndFilesArePrivate) {
  options_.dir = directory_.path() + "/a b/cache dir/";
  options_.capacity = kMegabyte;
  ASSERT_TRUE(Open().ok());
  for (uint64_t n = 0; n < 2000; ++n) Put(n);
  EXPECT_EQ(ModeOf(directory_.path() + "/a b"), 0700);
  EXPECT_EQ(ModeOf(options_.dir), 0700);
  EXPECT_EQ(ModeOf(options_.dir + "/db"), 0700);
  EXPECT_EQ(ModeOf(options_.dir + "/seed"), 0600);
  EXPECT_EQ(ModeOf(options_.dir + "/lock"), 0600);
  EXPECT_EQ(fs::file_size(options_.dir + "/seed"), 32);
  store_.reset();
  int files = 0;
  for (const auto& file : fs::directory_iterator(options_.dir + "/db")) {
    EXPECT_EQ(ModeOf(file.path().string()), 0600) << file.path();
    ++files;
  }
  EXPECT_GE(files, 4);
}

TEST_F(DiskStoreTest, ARelativeDirectoryStaysWhereItWasWhenOpened) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_.path());
  options_.dir = "relative";
  const absl::Status opened = Open();
  fs::current_path(before);
  ASSERT_TRUE(opened.ok()) << opened;
  for (uint64_t n = 0; n < 3000; ++n) Put(n, 7);
  EXPECT_EQ(Get(2999), 7);
  EXPECT_TRUE(fs::exists(directory_.path() + "/relative/db/CURRENT"));
}

TEST_F(DiskStoreTest, AFileWhereTheDirectoryShouldBeIsAnErrorThatNamesIt) {
  WriteFile(options_.dir, "not a directory");
  const absl::Status status = Open();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(options_.dir));
}

TEST_F(DiskStoreTest, AParentThatIsAFileIsAnErrorThatNamesIt) {
  WriteFile(options_.dir, "not a directory");
  options_.dir += "/below";
  const absl::Status status = Open();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(options_.dir));
}

TEST_F(DiskStoreTest, ADirectoryThatMayNotBeWrittenIsAnErrorThatNamesIt) {
  ASSERT_TRUE(fs::create_directory(options_.dir));
  ASSERT_EQ(chmod(options_.dir.c_str(), 0500), 0);
  if (access(options_.dir.c_str(), W_OK) == 0) {
    GTEST_SKIP() << "this user may write everywhere";
  }
  const absl::Status status = Open();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(options_.dir));
}

TEST_F(DiskStoreTest, ADirectoryOfTheSystemThatTakesNoFilesIsAnError) {
  options_.dir = "/proc/fncache";
  const absl::Status status = Open();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("/proc/fncache"));
}

TEST_F(DiskStoreTest, ADatabaseThatIsAFileEndsTheStart) {
  ASSERT_TRUE(fs::create_directory(options_.dir));
  ASSERT_TRUE(Open().ok());
  store_.reset();
  fs::remove_all(options_.dir + "/db");
  WriteFile(options_.dir + "/db", "x");
  const absl::Status status = Open();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(options_.dir));
}

// ------------------------------------------------------------------ The lock

TEST_F(DiskStoreTest, ALockThatIsHeldEndsTheWaitWithTheDirectorysName) {
  ASSERT_TRUE(Open().ok());
  DiskStoreOptions second = options_;
  second.lock_wait = absl::Milliseconds(30);
  const auto store = DiskStore::Open(second, &clock_, &observer_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(store.status().message(), HasSubstr(options_.dir));
}

TEST_F(DiskStoreTest, AWaitForTheLockCanBeCancelled) {
  ASSERT_TRUE(Open().ok());
  DiskStoreOptions second = options_;
  second.lock_wait = absl::Hours(1);
  int asked = 0;
  second.cancelled = [&asked] { return ++asked == 3; };
  const auto store = DiskStore::Open(second, &clock_, &observer_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
}

TEST_F(DiskStoreTest, TheNextProcessGetsTheLockWhenThePredecessorLeaves) {
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(Put(1, 5), PutResult::kStored);
  DiskStoreOptions second = options_;
  second.lock_wait = absl::Hours(1);
  std::atomic<bool> waits{false};
  second.cancelled = [&waits] {
    waits = true;
    return false;
  };
  absl::StatusOr<std::unique_ptr<DiskStore>> next;
  std::thread successor(
      [&] { next = DiskStore::Open(second, &clock_, &observer_); });
  while (!waits) std::this_thread::yield();
  store_.reset();
  successor.join();
  ASSERT_TRUE(next.ok()) << next.status();
  store_ = *std::move(next);
  EXPECT_EQ(Get(1), 5);
}

// ------------------------------------------------------------------ Restarts

TEST_F(DiskStoreTest, ARestartFindsEntriesSeedAndCounts) {
  ASSERT_TRUE(Open().ok());
  const key::Seed seed = store_->seed();
  for (uint64_t n = 0; n < 3000; ++n)
    ASSERT_EQ(Put(n, n, 2000, n % 2), PutResult::kStored);
  for (uint64_t n = 0; n < 1000; ++n)
    ASSERT_EQ(Put(n, n + 10000), PutResult::kStored);
  ASSERT_EQ(store_->Stats().entries, 3000);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(store_->seed(), seed);
  EXPECT_EQ(store_->Stats().entries, 3000);
  for (uint64_t n = 0; n < 3000; ++n) {
    ASSERT_EQ(Get(n), static_cast<int64_t>(n < 1000 ? n + 10000 : n));
  }
  EXPECT_EQ(observer_.removed(Tier::kDisk, Removal::kReplaced), 1000);
}

TEST_F(DiskStoreTest, AnotherGenerationOrAFunctionThatIsGoneIsAMiss) {
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(Put(1, 1, 100, 0), PutResult::kStored);
  ASSERT_EQ(Put(2, 2, 100, 1), PutResult::kStored);
  options_.functions = {{"second", "r2"}, {"first", "r1"}};  // another order
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), 1);
  EXPECT_EQ(store_->Get(KeyOf(1), now()).entry->function(), 1);
  options_.functions = {{"first", "r9"}};
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(Get(2), -1);
  options_.functions = {{"first", "r1"}, {"second", "r2"}};
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), 1) << "reachable again";
  EXPECT_EQ(observer_.errors(Tier::kDisk, TierError::kCorrupt), 0);
}

TEST_F(DiskStoreTest, AStartMoreThanFiveSecondsBackDropsEverything) {
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(Put(1, 1), PutResult::kStored);
  clock_.Advance(absl::Minutes(1));
  store_->Tick(now());
  clock_.Advance(-absl::Seconds(5));
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), 1) << "within the tolerance";
  clock_.Advance(-absl::Nanoseconds(1));
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(store_->Stats().entries, 0);
  EXPECT_EQ(observer_.removed(Tier::kDisk, Removal::kDropped), 1);
  ASSERT_EQ(Put(1, 2), PutResult::kStored);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), 2) << "from here on, that is the time";
}

TEST_F(DiskStoreTest, TheTimeIsKeptAtCloseAndWithEveryFill) {
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(Put(1, 1), PutResult::kStored);
  clock_.Advance(absl::Minutes(1));
  store_.reset();  // close
  clock_.Advance(-absl::Seconds(30));
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), -1);
}

// -------------------------------------------------------------------- Bounds

TEST_F(DiskStoreTest, FilesStayWithinTheBoundAndDroppedEntriesAreCounted) {
  options_.capacity = 8 * kMegabyte;
  ASSERT_TRUE(Open().ok());
  uint64_t most = 0;
  constexpr uint64_t kCount = 12000;
  for (uint64_t n = 0; n < kCount; ++n) {
    ASSERT_EQ(Put(n, n, 4000, n % 2), PutResult::kStored);
    if (n % 50 == 0) most = std::max(most, SizeOnDisk(options_.dir));
  }
  EXPECT_LE(most, options_.capacity * 102 / 100);
  // A file that goes leaves one count first, and then enters the other.
  StoreStats stats;
  uint64_t evicted = 0;
  for (int tries = 0; tries < 100; ++tries) {
    stats = store_->Stats();
    ASSERT_LE(stats.entries, kCount);
    const uint64_t gone = kCount - stats.entries;
    evicted = observer_.AwaitRemoved(Tier::kDisk, Removal::kEvicted, gone);
    if (evicted <= gone) break;  // otherwise one went in between
  }
  EXPECT_EQ(stats.entries + evicted, kCount);
  EXPECT_GT(stats.entries, 1000);
  EXPECT_LE(stats.bytes, stats.capacity);
  EXPECT_GT(observer_.removed_of(Tier::kDisk, 0), 1000);
  EXPECT_GT(observer_.removed_of(Tier::kDisk, 1), 1000);
  EXPECT_TRUE(Eventually([&] {
    return observer_.removed_last() ==
           observer_.removed(Tier::kDisk, Removal::kEvicted);
  }));
  // First in, first out; and what is counted is what is there. A file that a
  // reader held when it was dropped goes, and is counted, with a later flush.
  uint64_t count = kCount;
  uint64_t found = 0;
  bool counted = false;
  for (int tries = 0; tries < 100; ++tries) {
    found = 0;
    bool gone = false;
    for (uint64_t n = count; n-- > 0;) {
      const bool there = Get(n) == static_cast<int64_t>(n);
      found += there;
      EXPECT_FALSE(there && gone) << n;
      gone |= !there;
    }
    counted = found == store_->Stats().entries;
    if (counted) break;
    for (int more = 0; more < 100; ++more, ++count) {
      ASSERT_EQ(Put(count, count, 4000, 0), PutResult::kStored);
    }
  }
  EXPECT_TRUE(counted) << found;
}

// A disk that takes its time to drop files.
class HangingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  HangingFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "HangingFileSystem"; }

  rocksdb::IOStatus DeleteFile(const std::string& name,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    if (absl::EndsWith(name, ".sst")) {
      if (!hangs.HasBeenNotified()) hangs.Notify();
      go_on.WaitForNotification();
    }
    return target()->DeleteFile(name, options, debug);
  }

  absl::Notification hangs;
  absl::Notification go_on;
};

TEST_F(DiskStoreTest, FilesStayWithinTheBoundWhileTheDiskHangs) {
  const auto system = std::make_shared<HangingFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(system);
  options_.env = env.get();
  options_.capacity = 8 * kMegabyte;
  ASSERT_TRUE(Open().ok());
  absl::Notification written;
  std::thread writer([&] {
    for (uint64_t n = 0; n < 3000; ++n) {
      EXPECT_EQ(Put(n, n, 4000), PutResult::kStored);
    }
    written.Notify();
  });
  system->hangs.WaitForNotification();
  EXPECT_FALSE(written.WaitForNotificationWithTimeout(absl::Seconds(1)));
  EXPECT_LE(SizeOnDisk(options_.dir), options_.capacity);
  system->go_on.Notify();
  writer.join();
  EXPECT_LE(SizeOnDisk(options_.dir), options_.capacity);
  EXPECT_EQ(Get(2999), 2999);
  store_.reset();  // before its environment
}

TEST_F(DiskStoreTest, FilesOfExpiredEntriesCountAsExpired) {
  options_.capacity = 4 * kMegabyte;
  ASSERT_TRUE(Open().ok());
  for (uint64_t n = 0; n < 500; ++n) Put(n, n, 4000);
  clock_.Advance(absl::Hours(2));
  for (uint64_t n = 1000; n < 4000; ++n) Put(n, n, 4000);
  // All but those that share a file with live ones.
  EXPECT_GE(observer_.removed(Tier::kDisk, Removal::kExpired), 250);
  EXPECT_LE(observer_.removed(Tier::kDisk, Removal::kExpired), 500);
}

TEST_F(DiskStoreTest, AnEntryOverAnEighthOfTheCapacityIsTooLarge) {
  options_.capacity = 8 * kMegabyte;
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Put(1, 1, kMegabyte - 100), PutResult::kStored);
  EXPECT_EQ(Put(1, 2, kMegabyte + 1), PutResult::kTooLarge);
  EXPECT_EQ(observer_.dropped(Tier::kDisk, Dropped::kTooLarge), 1);
  EXPECT_EQ(Get(1), -1) << "an older answer must not stand in for a newer one";
}

// ------------------------------------------------------- Order, once more

TEST_F(DiskStoreTest, TheLaterEntryThatStaysIsHandedOut) {
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(Put(1, 9), PutResult::kStored);
  EntrySpec older;
  older.started = now() - absl::Seconds(20);
  EntryRef later;
  EXPECT_EQ(store_->PutOrGet(KeyOf(1), EntryOf(1, older), now(), &later),
            PutResult::kOlder);
  ASSERT_TRUE(later);
  EXPECT_EQ(VersionOf(1, later->body()), 9);
  later = nullptr;
  EXPECT_EQ(store_->EraseUpTo(KeyOf(1), older.started, 0, now(), &later),
            PutResult::kOlder);
  ASSERT_TRUE(later);
  EXPECT_EQ(store_->EraseUpTo(KeyOf(1), now(), 0, now(), nullptr),
            PutResult::kStored);
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(store_->Stats().entries, 0);
}

TEST_F(DiskStoreTest, HiddenStaysHiddenUntilALaterFill) {
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(Put(1, 1), PutResult::kStored);
  ASSERT_EQ(Put(2, 1), PutResult::kStored);
  store_->Hide(KeyOf(1), now());
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(Get(2), 1);
  EXPECT_EQ(Put(1, 2), PutResult::kOlder) << "what was hidden was later";
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Put(1, 3), PutResult::kStored);
  EXPECT_EQ(Get(1), 3);
}

TEST_F(DiskStoreTest, HidingMoreThanCanBeRememberedHidesAllThatIsAsOld) {
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(Put(1, 1), PutResult::kStored);
  for (uint64_t n = 100; n < 100 + 65537; ++n) store_->Hide(KeyOf(n), now());
  EXPECT_EQ(Get(1), -1);
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Put(1, 2), PutResult::kStored);
  EXPECT_EQ(Get(1), 2);
}

}  // namespace
}  // namespace fncache::cache::store::testing
