// SPDX-License-Identifier: Apache-2.0
// Damage of the disk tier's files: what cannot be read is a miss, never a wrong
// value and never the end of the store.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cache/store/disk_store.h"
#include "tests/cache/store/disk_store_testing.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {
namespace {

namespace fs = std::filesystem;
using DiskStoreDamageTest = DiskStoreTest;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

TEST_F(DiskStoreDamageTest, AMissingOrShortSeedIsANewSeedAndAnEmptyCache) {
  for (const std::string& seed : {std::string("short"), std::string(33, 'x'),
                                  std::string(32, '\0'), std::string()}) {
    ASSERT_TRUE(Open().ok());
    const key::Seed before = store_->seed();
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

TEST_F(DiskStoreDamageTest, AnotherSeedThanTheEntriesWereMadeUnderDropsThem) {
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
TEST_F(DiskStoreDamageTest, DamageOfAnyFileIsAMissAndNeverAWrongValue) {
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

  std::vector<std::string> victims = {"seed", "lock", "secrets"};
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

TEST_F(DiskStoreDamageTest, ADamagedDatabaseIsSetAsideAndOnlyOneIsKept) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Open().ok());
    const key::Seed seed = store_->seed();
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

TEST_F(DiskStoreDamageTest, DamageFoundAtReadIsCountedAndTheEntryErased) {
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
  ::testing::internal::CaptureStderr();
  for (uint64_t n = 0; n < kCount; ++n) {
    missed += !store_->Find(KeyOf(n), 1, clock_.Now(), {}).entry;
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const size_t line = log.find("an entry on disk is damaged");
  EXPECT_NE(line, std::string::npos) << log;
  EXPECT_EQ(log.find("an entry on disk is damaged", line + 1),
            std::string::npos)
      << "once a minute is enough: " << log;
  EXPECT_GT(missed, 0);
  EXPECT_LT(missed, kCount);
  EXPECT_EQ(observer_.errors_of(Tier::kDisk, 1), missed)
      << "of the function whose look-up it was";
  EXPECT_EQ(observer_.errors(Tier::kDisk, TierError::kCorrupt), missed);
  for (uint64_t n = 0; n < kCount; ++n) Get(n);
  EXPECT_EQ(observer_.errors(Tier::kDisk, TierError::kCorrupt), missed)
      << "an erased entry is an ordinary miss";
}

}  // namespace
}  // namespace fncache::cache::store::testing
