// SPDX-License-Identifier: Apache-2.0
// `store_secrets` tightened: what an earlier process was allowed to leave on
// disk is gone before the next one uses the directory, wherever in it it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cache/store/disk_store_testing.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {
namespace {

namespace fs = std::filesystem;

constexpr char kSecret[] = "connection-details-of-database-7f3a9c51";
constexpr char kChildDir[] = "FNCACHE_TEST_SECRETS_DIR";

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

// The files below `dir` that hold the secret, in their names' order.
std::vector<std::string> FilesWithSecret(const std::string& dir) {
  std::vector<std::string> files;
  for (const auto& file : fs::recursive_directory_iterator(dir)) {
    if (file.is_regular_file() &&
        absl::StrContains(ReadFile(file.path()), kSecret)) {
      files.push_back(file.path().string());
    }
  }
  return files;
}

std::vector<StoredFunction> Functions(bool first, bool second) {
  return {{"first", "r1", first}, {"second", "r2", second}};
}

class DiskStoreSecretsTest : public store::testing::DiskStoreTest {
 protected:
  void Open(bool first, bool second) {
    options_.functions = Functions(first, second);
    const absl::Status opened = store::testing::DiskStoreTest::Open();
    ASSERT_TRUE(opened.ok()) << opened;
  }
  void PutSecret(uint64_t n, FunctionId function = 0) {
    EntryInfo info;
    info.function = function;
    info.started = now() - absl::Seconds(1);
    info.arrived = now();
    info.lifetime = absl::Hours(1);
    info.secrets = true;
    ASSERT_EQ(store_->Put(store::testing::KeyOf(n),
                          Entry::Create(info, "", {kSecret}), now()),
              PutResult::kStored);
  }
  // The database as it is becomes DIR/damaged at the next start.
  void DamageDatabase() {
    store_.reset();
    store::testing::WriteFile(Db("CURRENT"), "nothing of the kind\n");
  }
  std::vector<std::string> Found() { return FilesWithSecret(options_.dir); }
};

TEST_F(DiskStoreSecretsTest, TighteningDropsTheDatabaseAndTheDamagedOne) {
  Open(true, false);
  PutSecret(1);
  DamageDatabase();
  Open(true, false);
  PutSecret(2);
  ASSERT_EQ(Put(3, 3), PutResult::kStored);
  store_.reset();
  const std::vector<std::string> before = Found();
  ASSERT_EQ(before.size(), 2) << "one database and one that is damaged";
  EXPECT_TRUE(absl::StrContains(before[0] + before[1], "/damaged/"));

  Open(false, false);
  EXPECT_TRUE(Found().empty()) << Found()[0];
  EXPECT_FALSE(fs::exists(options_.dir + "/damaged"));
  EXPECT_EQ(Get(3), -1) << "it is dropped whole";
  EXPECT_EQ(store_->Stats().entries, 0);
  // Once, not at every start.
  ASSERT_EQ(Put(4, 4), PutResult::kStored);
  Open(false, false);
  EXPECT_EQ(Get(4), 4);
}

TEST_F(DiskStoreSecretsTest, AnyFunctionThatIsTightenedCounts) {
  for (const FunctionId tightened : {0, 1}) {
    Open(true, true);
    PutSecret(1, tightened);
    store_.reset();
    ASSERT_FALSE(Found().empty());
    Open(tightened != 0, tightened != 1);
    EXPECT_TRUE(Found().empty()) << Found()[0];
  }
}

TEST_F(DiskStoreSecretsTest, AFunctionThatIsNoLongerThereIsTightened) {
  Open(true, true);
  PutSecret(1, 1);
  options_.functions = {{"first", "r1", true}};
  ASSERT_TRUE(store::testing::DiskStoreTest::Open().ok());
  EXPECT_TRUE(Found().empty()) << Found()[0];
}

TEST_F(DiskStoreSecretsTest, WhatIsAllowedStays) {
  Open(false, true);
  ASSERT_EQ(Put(1, 1), PutResult::kStored);
  PutSecret(2, 1);
  Open(false, true);
  EXPECT_EQ(Get(1), 1) << "nothing has changed";
  Open(true, true);
  EXPECT_EQ(Get(1), 1) << "loosening drops nothing";
  options_.functions = {{"second", "r2", true}, {"first", "r1", true}};
  ASSERT_TRUE(store::testing::DiskStoreTest::Open().ok());
  EXPECT_TRUE(store_->Get(store::testing::KeyOf(2), now()).entry)
      << "the order is no matter";
}

// A version that did not note secrets has written such a directory.
TEST_F(DiskStoreSecretsTest, ADirectoryWithoutAMarkMayHoldAnything) {
  const std::string mark = options_.dir + "/secrets";
  for (const char* content : {"", "fncache secrets 1\n", "\0\0\0\0\0\0\0\0",
                              "fncache secrets 1\nfirst\nen", "absent"}) {
    SCOPED_TRACE(content);
    const auto forget = [&] {
      store_.reset();
      fs::remove(mark);
      if (std::string(content) != "absent")
        store::testing::WriteFile(mark, content);
    };
    Open(true, true);
    PutSecret(1);
    forget();
    Open(true, false);
    EXPECT_TRUE(Found().empty()) << Found()[0];
    EXPECT_EQ(store::testing::ModeOf(mark), 0600);
    // Also those of a function that is not there any more.
    PutSecret(1);
    forget();
    Open(true, true);
    EXPECT_TRUE(Found().empty()) << Found()[0];
  }
}

// Removing a link would leave the files that it leads to.
TEST_F(DiskStoreSecretsTest, LinkedFoldersAreRefused) {
  for (const char* const name : {"db", "damaged"}) {
    SCOPED_TRACE(name);
    Open(true, true);
    PutSecret(1);
    store_.reset();
    const std::string elsewhere = options_.dir + "-elsewhere";
    const std::string link = options_.dir + "/" + name;
    fs::create_directory(elsewhere);
    fs::rename(options_.dir + "/db", elsewhere + "/db");
    fs::create_directory_symlink(elsewhere + "/db", link);
    options_.functions = Functions(false, false);
    const absl::Status status = store::testing::DiskStoreTest::Open();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        std::string(status.message()),
        ::testing::HasSubstr(absl::StrCat(name, " is a symbolic link")));
    fs::remove(link);
    fs::remove_all(elsewhere);
  }
}

TEST_F(DiskStoreSecretsTest, WhatIsNoFileDoesNotHoldUpTheStart) {
  Open(false, false);
  store_.reset();
  for (const char* const name : {"seed", "secrets"}) {
    const std::string file = options_.dir + "/" + name;
    fs::remove(file);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(std::string(store::testing::DiskStoreTest::Open().message()),
                ::testing::HasSubstr(absl::StrCat(
                    name, ": is a named pipe, not a regular file")));
    fs::remove(file);
  }
}

TEST_F(DiskStoreSecretsTest, NamesOfAnyKindAreRemembered) {
  const std::string odd = "a\nend\n\\x41\t\"\xff";
  options_.functions = {{odd, "r", true}};
  ASSERT_TRUE(store::testing::DiskStoreTest::Open().ok());
  ASSERT_EQ(Put(1, 1), PutResult::kStored);
  ASSERT_TRUE(store::testing::DiskStoreTest::Open().ok());
  EXPECT_EQ(Get(1), 1);
  options_.functions = {{odd, "r", false}};
  ASSERT_TRUE(store::testing::DiskStoreTest::Open().ok());
  EXPECT_EQ(Get(1), -1);
}

// The note comes after the drop: if it cannot be written, the next start has it
// all to do again.
TEST_F(DiskStoreSecretsTest, AFailedNoteLeavesTheNextStartTheSameToDo) {
  Open(true, true);
  PutSecret(1);
  store_.reset();
  const std::string before = ReadFile(options_.dir + "/secrets");
  fs::create_directories(options_.dir + "/secrets.new/in the way");
  options_.functions = Functions(false, false);
  EXPECT_EQ(store::testing::DiskStoreTest::Open().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Found().empty()) << Found()[0];
  EXPECT_EQ(ReadFile(options_.dir + "/secrets"), before);
  fs::remove_all(options_.dir + "/secrets.new");
  Open(false, false);
  EXPECT_NE(ReadFile(options_.dir + "/secrets"), before);
}

// Opens the directory with settings that allow no secrets, and stays.
void Child() {
  SimulatedClock clock(absl::FromUnixSeconds(1'700'000'000));
  DiskStoreOptions options;
  options.dir = getenv(kChildDir);
  options.functions = Functions(false, false);
  const auto store = DiskStore::Open(options, &clock, nullptr);
  if (!store.ok()) _exit(3);
  while (true) pause();
}

// kill -9 at any moment: either the note still says that there may be secrets,
// or there are none.
TEST_F(DiskStoreSecretsTest, AKilledStartNeverForgetsWhatItHadToDrop) {
  if (getenv(kChildDir) != nullptr) Child();
  std::mt19937 random(20261123);
  int dropped = 0;
  int kept = 0;
  // Each round is bounded by its work: four starts of a database, and a few
  // writes. One secret in each of the two folders is enough,
  // for a folder is dropped whole. Fewer than eight rounds would kill at fewer
  // moments: four for each of the two signs spread over the drop and the note.
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    Open(true, true);
    const std::string loose = ReadFile(options_.dir + "/secrets");
    PutSecret(1);
    DamageDatabase();
    Open(true, true);
    PutSecret(2);
    store_.reset();
    ASSERT_EQ(Found().size(), 2);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      setenv(kChildDir, options_.dir.c_str(), 1);
      execl("/proc/self/exe", "cache_test",
            "--gtest_filter=DiskStoreSecretsTest.AKilled*", nullptr);
      _exit(2);
    }
    // Half of the rounds at the first sign of its work, half a moment later.
    // CURRENT is made again soon: a machine that stalls may hide that it was
    // gone, and only the note that follows stays changed.
    const std::string sign = round % 2 == 0 ? "/damaged" : "/db/CURRENT";
    while (fs::exists(options_.dir + sign) &&
           ReadFile(options_.dir + "/secrets") == loose) {
      int status;
      ASSERT_EQ(waitpid(child, &status, WNOHANG), 0) << "it has ended";
    }
    const uint64_t spin = random() % 100'000;
    for (volatile uint64_t i = 0; i < spin; i = i + 1) {
    }
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    if (ReadFile(options_.dir + "/secrets") == loose) {
      ++kept;
    } else {
      ++dropped;
      EXPECT_TRUE(Found().empty()) << Found()[0];
    }
    Open(false, false);
    EXPECT_TRUE(Found().empty()) << Found()[0];
    store_.reset();
  }
  EXPECT_GT(kept + dropped, 0);
  RecordProperty("killed_before_the_note", kept);
  RecordProperty("killed_after_it", dropped);
}

}  // namespace
}  // namespace fncache::cache::store::testing
