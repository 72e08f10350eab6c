// What the disk tier owes beyond the contract of every store: its directory,
// its restarts, its bound, damage, and a disk that fails.
#include "cache/disk_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cache/clock.h"
#include "cache/tiered_store.h"
#include "tests/cache/store_testing.h"

namespace fncache::cache::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uint64_t kMegabyte = 1 << 20;

mode_t ModeOf(const std::string& path) {
  struct stat status;
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

uint64_t SizeOnDisk(const std::string& dir) {
  uint64_t size = 0;
  std::error_code ignored;
  for (const auto& file : fs::recursive_directory_iterator(dir, ignored)) {
    if (file.is_regular_file(ignored)) size += file.file_size(ignored);
  }
  return size;
}

// A file system on which writing can be made to fail as it does when full.
class FullFileSystem : public rocksdb::FileSystemWrapper {
 public:
  FullFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FullFileSystem"; }
  void set_full(bool full) { full_ = full; }

  rocksdb::IOStatus NewWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* result,
      rocksdb::IODebugContext* debug) override {
    if (full_) return Full();
    const rocksdb::IOStatus status =
        target()->NewWritableFile(name, options, result, debug);
    if (status.ok()) *result = std::make_unique<File>(std::move(*result), this);
    return status;
  }

 private:
  static rocksdb::IOStatus Full() {
    return rocksdb::IOStatus::NoSpace("injected");
  }

  class File : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, FullFileSystem* system)
        : FSWritableFileOwnerWrapper(std::move(file)), system_(system) {}
    using FSWritableFileOwnerWrapper::Append;
    rocksdb::IOStatus Append(const rocksdb::Slice& data,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (system_->full_) return Full();
      return FSWritableFileOwnerWrapper::Append(data, options, debug);
    }

   private:
    FullFileSystem* const system_;
  };

  std::atomic<bool> full_{false};
};

class DiskStoreTest : public ::testing::Test {
 protected:
  DiskStoreTest() : clock_(absl::FromUnixSeconds(1'700'000'000)) {
    options_.dir = directory_.path() + "/cache";
    options_.capacity = 64 * kMegabyte;
    options_.functions = {{"first", "r1"}, {"second", "r2"}};
    options_.retry = absl::ZeroDuration();
  }

  // Closes the one before, as a restart does.
  absl::Status Open() {
    store_.reset();
    auto store = DiskStore::Open(options_, &clock_, &observer_);
    if (!store.ok()) return store.status();
    store_ = *std::move(store);
    return absl::OkStatus();
  }
  absl::Time now() { return clock_.Now(); }
  PutResult Put(uint64_t n, uint64_t version = 0, size_t size = 1000,
                FunctionId function = 0) {
    EntrySpec spec;
    spec.version = version;
    spec.size = size;
    spec.started = now() - spec.took;
    spec.function = function;
    return store_->Put(KeyOf(n), EntryOf(n, spec), now());
  }
  int64_t Get(uint64_t n) {
    const Found found = store_->Get(KeyOf(n), now());
    if (!found.entry) return -1;
    const int64_t version = VersionOf(n, found.entry->body());
    EXPECT_GE(version, 0) << "wrong or torn bytes under key " << n;
    return version;
  }
  std::string Db(const std::string& name) {
    return options_.dir + "/db/" + name;
  }
  // The files of the database with this prefix or this extension.
  std::vector<std::string> Files(const std::string& kind) {
    std::vector<std::string> files;
    for (const auto& file : fs::directory_iterator(options_.dir + "/db")) {
      if (file.path().extension() == kind ||
          file.path().filename().string().rfind(kind, 0) == 0) {
        files.push_back(file.path().string());
      }
    }
    return files;
  }

  TemporaryDirectory directory_;
  SimulatedClock clock_;
  CountingObserver observer_;
  DiskStoreOptions options_;
  std::unique_ptr<DiskStore> store_;
};

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
  const Seed seed = store_->seed();
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
  const StoreStats stats = store_->Stats();
  EXPECT_GT(stats.entries, 1000);
  EXPECT_LE(stats.bytes, stats.capacity);
  EXPECT_EQ(stats.entries + observer_.removed(Tier::kDisk, Removal::kEvicted),
            kCount);
  EXPECT_GT(observer_.removed_of(Tier::kDisk, 0), 1000);
  EXPECT_GT(observer_.removed_of(Tier::kDisk, 1), 1000);
  EXPECT_EQ(observer_.removed_last(),
            observer_.removed(Tier::kDisk, Removal::kEvicted));
  // First in, first out; and what is counted is what is there. A file that a
  // reader held when it was dropped goes, and is counted, with a later flush.
  uint64_t count = kCount;
  uint64_t found = 0;
  for (int tries = 0; tries < 100; ++tries) {
    found = 0;
    bool gone = false;
    for (uint64_t n = count; n-- > 0;) {
      const bool there = Get(n) == static_cast<int64_t>(n);
      found += there;
      EXPECT_FALSE(there && gone) << n;
      gone |= !there;
    }
    if (found == store_->Stats().entries) break;
    for (int more = 0; more < 100; ++more, ++count) {
      ASSERT_EQ(Put(count, count, 4000, 0), PutResult::kStored);
    }
  }
  EXPECT_EQ(found, store_->Stats().entries);
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

// -------------------------------------------------------------------- Damage

TEST_F(DiskStoreTest, AMissingOrShortSeedIsANewSeedAndAnEmptyCache) {
  for (const std::string& seed : {std::string("short"), std::string(33, 'x'),
                                  std::string(32, '\0'), std::string()}) {
    ASSERT_TRUE(Open().ok());
    const Seed before = store_->seed();
    ASSERT_EQ(Put(1, 1), PutResult::kStored);
    store_.reset();
    WriteFile(options_.dir + "/seed", seed);
    ASSERT_TRUE(Open().ok());
    EXPECT_NE(store_->seed(), before);
    EXPECT_EQ(Get(1), -1);
    EXPECT_EQ(store_->Stats().entries, 0);
    EXPECT_EQ(ModeOf(options_.dir + "/seed"), 0600);
  }
  ASSERT_EQ(Put(1, 1), PutResult::kStored);
  store_.reset();
  fs::remove(options_.dir + "/seed");
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), -1);
}

TEST_F(DiskStoreTest, AnotherSeedThanTheEntriesWereMadeUnderDropsThem) {
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(Put(1, 1), PutResult::kStored);
  store_.reset();
  std::string seed = ReadFile(options_.dir + "/seed");
  seed[7] ^= 4;
  WriteFile(options_.dir + "/seed", seed);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(1), -1);
  EXPECT_EQ(store_->Stats().entries, 0);
}

// Every kind of file, damaged in every way: a wrong value never comes out, and
// the store opens, with what is left or with nothing.
TEST_F(DiskStoreTest, DamageOfAnyFileIsAMissAndNeverAWrongValue) {
  constexpr uint64_t kCount = 600;
  options_.capacity = 16 * kMegabyte;  // several files of entries
  const std::string pristine = directory_.path() + "/pristine";
  ASSERT_TRUE(Open().ok());
  for (uint64_t n = 0; n < kCount; ++n)
    ASSERT_EQ(Put(n, n, 4000), PutResult::kStored);
  store_.reset();
  ASSERT_FALSE(Files(".sst").empty());
  ASSERT_FALSE(Files(".log").empty());
  fs::rename(options_.dir, pristine);

  std::vector<std::string> victims = {"seed", "lock"};
  for (const auto& file : fs::directory_iterator(pristine + "/db")) {
    victims.push_back("db/" + file.path().filename().string());
  }
  enum Way { kFlipFirst, kFlipMiddle, kFlipLast, kHalve, kEmpty, kDelete };
  int damaged = 0;
  int served = 0;
  for (const std::string& victim : victims) {
    for (Way way :
         {kFlipFirst, kFlipMiddle, kFlipLast, kHalve, kEmpty, kDelete}) {
      store_.reset();
      fs::remove_all(options_.dir);
      fs::copy(pristine, options_.dir, fs::copy_options::recursive);
      const std::string path = options_.dir + "/" + victim;
      std::string content = ReadFile(path);
      if (content.empty() && way != kDelete) continue;
      switch (way) {
        case kFlipFirst:
          content[0] ^= 1;
          break;
        case kFlipMiddle:
          content[content.size() / 2] ^= 0x10;
          break;
        case kFlipLast:
          content[content.size() - 1] ^= 0x80;
          break;
        case kHalve:
          content.resize(content.size() / 2);
          break;
        case kEmpty:
          content.clear();
          break;
        case kDelete:
          break;
      }
      SCOPED_TRACE(victim + " way " + std::to_string(way));
      if (way == kDelete) {
        fs::remove(path);
      } else {
        WriteFile(path, content);
      }
      ++damaged;
      const absl::Status opened = Open();
      ASSERT_TRUE(opened.ok()) << opened;
      for (uint64_t n = 0; n < kCount; ++n) {
        const int64_t version = Get(n);
        ASSERT_TRUE(version == -1 || version == static_cast<int64_t>(n));
        served += version >= 0;
      }
      // And it works on.
      clock_.Advance(absl::Seconds(2));
      ASSERT_EQ(Put(kCount, 1), PutResult::kStored);
      ASSERT_EQ(Get(kCount), 1);
    }
  }
  EXPECT_GT(damaged, 40);
  EXPECT_GT(served, 0);
}

TEST_F(DiskStoreTest, ADamagedDatabaseIsSetAsideAndOnlyOneIsKept) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Open().ok());
    const Seed seed = store_->seed();
    ASSERT_EQ(Put(1, round), PutResult::kStored);
    store_.reset();
    for (const std::string& file : Files("MANIFEST-")) {
      WriteFile(file, "round " + std::to_string(round));
    }
    ASSERT_TRUE(Open().ok());
    EXPECT_EQ(Get(1), -1);
    EXPECT_EQ(store_->seed(), seed) << "the seed is not damaged";
    std::string aside;
    for (const auto& file : fs::directory_iterator(options_.dir + "/damaged")) {
      if (file.path().filename().string().rfind("MANIFEST-", 0) == 0) {
        aside += ReadFile(file.path().string());
      }
    }
    EXPECT_EQ(aside, "round " + std::to_string(round));
  }
}

TEST_F(DiskStoreTest, DamageFoundAtReadIsCountedAndTheEntryErased) {
  options_.capacity = 4 * kMegabyte;
  ASSERT_TRUE(Open().ok());
  constexpr uint64_t kCount = 300;
  for (uint64_t n = 0; n < kCount; ++n) Put(n, n, 4000);
  store_.reset();
  const std::vector<std::string> files = Files(".sst");
  ASSERT_FALSE(files.empty());
  std::string content = ReadFile(files[0]);
  for (size_t at = 100; at < 20000; at += 1000) content[at] ^= 1;
  WriteFile(files[0], content);
  ASSERT_TRUE(Open().ok());
  uint64_t missed = 0;
  for (uint64_t n = 0; n < kCount; ++n) {
    missed += !store_->Find(KeyOf(n), 1, clock_.Now()).entry;
  }
  EXPECT_GT(missed, 0);
  EXPECT_LT(missed, kCount);
  EXPECT_EQ(observer_.errors_of(Tier::kDisk, 1), missed)
      << "of the function whose look-up it was";
  EXPECT_EQ(observer_.errors(Tier::kDisk, TierError::kCorrupt), missed);
  for (uint64_t n = 0; n < kCount; ++n) Get(n);
  EXPECT_EQ(observer_.errors(Tier::kDisk, TierError::kCorrupt), missed)
      << "an erased entry is an ordinary miss";
}

// ------------------------------------------------------------------ No space

TEST_F(DiskStoreTest, AFullDiskCostsFillsAndIsTakenUpAgainWithSpace) {
  const auto system = std::make_shared<FullFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(system);
  options_.env = env.get();
  options_.capacity = 4 * kMegabyte;
  ASSERT_TRUE(Open().ok());
  uint64_t failed = 0;
  for (uint64_t base : {0, 1000, 2000}) {
    ASSERT_EQ(Put(base, base), PutResult::kStored);
    system->set_full(true);
    for (uint64_t n = 1; n < 200; ++n) {
      ASSERT_EQ(Put(base + n, n, 4000), PutResult::kFailed);
      ASSERT_EQ(Get(base), static_cast<int64_t>(base)) << "reads go on";
      ++failed;
    }
    // What could not be kept is later than what was.
    clock_.Advance(absl::Seconds(1));
    ASSERT_EQ(Put(base, base + 1), PutResult::kFailed);
    ++failed;
    EXPECT_EQ(observer_.errors_of(Tier::kDisk, 0), failed);
    EXPECT_EQ(Get(base), -1);
    system->set_full(false);
    ASSERT_EQ(Put(base + 500, 3), PutResult::kStored) << "space is back";
    EXPECT_EQ(Get(base + 500), 3);
    EXPECT_EQ(Get(base), -1);
  }
  EXPECT_EQ(observer_.dropped(Tier::kDisk, Dropped::kError), failed);
  EXPECT_EQ(observer_.errors(Tier::kDisk, TierError::kWrite), failed);
  EXPECT_EQ(store_->Stats().entries, 6);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(500), 3);
  EXPECT_EQ(Get(2500), 3);
  store_.reset();  // before its environment
}

TEST_F(DiskStoreTest, WhatFailsOnTheTiersOwnAccountIsNoFunctionsError) {
  const auto system = std::make_shared<FullFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(system);
  options_.env = env.get();
  ASSERT_TRUE(Open().ok());
  system->set_full(true);
  clock_.Advance(absl::Seconds(2));
  store_->Tick(clock_.Now());
  EXPECT_EQ(observer_.errors_of(Tier::kDisk, kNoFunction), 1);
  EXPECT_EQ(observer_.errors_of(Tier::kDisk, 0), 0);
  system->set_full(false);
  store_.reset();  // before its environment
}

TEST_F(DiskStoreTest, ADiskThatIsFullAtStartIsAnErrorThatNamesIt) {
  const auto system = std::make_shared<FullFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(system);
  options_.env = env.get();
  system->set_full(true);
  const absl::Status status = Open();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(options_.dir));
}

// The same on a real file system of 16 MiB, which somebody else fills up.
TEST_F(DiskStoreTest, ARealSmallDiskFillsUpAndIsTakenUpAgain) {
  const std::string mounted = directory_.path() + "/small";
  ASSERT_TRUE(fs::create_directory(mounted));
  if (mount("none", mounted.c_str(), "tmpfs", 0, "size=16m") != 0) {
    GTEST_SKIP() << "may not mount here: " << strerror(errno);
  }
  options_.dir = mounted + "/cache";
  options_.capacity = 64 * kMegabyte;  // more than there is
  ASSERT_TRUE(Open().ok());
  uint64_t stored = 0;
  uint64_t failed = 0;
  for (uint64_t n = 0; n < 8000; ++n) {
    const PutResult result = Put(n, n, 8000);
    ASSERT_TRUE(result == PutResult::kStored || result == PutResult::kFailed);
    stored += result == PutResult::kStored;
    failed += result == PutResult::kFailed;
  }
  EXPECT_GT(stored, 500);
  EXPECT_GT(failed, 100);
  uint64_t found = 0;
  for (uint64_t n = 0; n < 8000; ++n) found += Get(n) >= 0;
  EXPECT_GT(found, 500);
  EXPECT_LE(found, stored);
  // The operator makes the disk larger.
  ASSERT_EQ(mount("none", mounted.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  clock_.Advance(absl::Seconds(1));
  ASSERT_EQ(Put(9000, 1), PutResult::kStored);
  EXPECT_EQ(Get(9000), 1);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Get(9000), 1);
  store_.reset();
  EXPECT_EQ(umount(mounted.c_str()), 0);
}

}  // namespace
}  // namespace fncache::cache::testing
