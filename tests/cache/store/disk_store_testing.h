// SPDX-License-Identifier: Apache-2.0
// The tests of the disk tier share this: a store in a directory of its own, on
// a clock that is set, and closer looks at its files.
#ifndef FNCACHE_TESTS_CACHE_STORE_DISK_STORE_TESTING_H_
#define FNCACHE_TESTS_CACHE_STORE_DISK_STORE_TESTING_H_

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache/store/disk_store.h"
#include "common/clock.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {

inline constexpr uint64_t kMegabyte = 1 << 20;

inline mode_t ModeOf(const std::string& path) {
  struct stat status;
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

inline void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

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
    for (const auto& file :
         std::filesystem::directory_iterator(options_.dir + "/db")) {
      if (file.path().extension() == kind ||
          file.path().filename().string().rfind(kind, 0) == 0) {
        files.push_back(file.path().string());
      }
    }
    return files;
  }

  TempDir directory_;
  SimulatedClock clock_;
  CountingObserver observer_;
  DiskStoreOptions options_;
  std::unique_ptr<DiskStore> store_;
};

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_DISK_STORE_TESTING_H_
