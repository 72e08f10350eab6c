// SPDX-License-Identifier: Apache-2.0
// A disk without space costs the disk tier fills, nothing else, until there is
// space again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "cache/store/disk_store.h"
#include "tests/cache/store/disk_store_testing.h"
#include "tests/cache/store/full_file_system.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using DiskStoreFullTest = DiskStoreTest;

TEST_F(DiskStoreFullTest, AFullDiskCostsFillsAndIsTakenUpAgainWithSpace) {
  const auto system = std::make_shared<testing::FullFileSystem>();
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
    // The entry that cannot be kept has a later time than those that were.
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

TEST_F(DiskStoreFullTest, WhatFailsOnTheTiersOwnAccountIsNoFunctionsError) {
  const auto system = std::make_shared<testing::FullFileSystem>();
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

TEST_F(DiskStoreFullTest, ADiskThatIsFullAtStartIsAnErrorThatNamesIt) {
  const auto system = std::make_shared<testing::FullFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(system);
  options_.env = env.get();
  system->set_full(true);
  const absl::Status status = Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr(options_.dir));
  system->set_full(false);
  EXPECT_TRUE(Open().ok());
  EXPECT_FALSE(fs::exists(options_.dir + "/damaged"))
      << "the first files of the failed start pass for a damaged database";
  store_.reset();  // before its environment
}

// The same on a real file system of 16 MiB, which another writer fills up.
TEST_F(DiskStoreFullTest, ARealSmallDiskFillsUpAndIsTakenUpAgain) {
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
}  // namespace fncache::cache::store::testing
