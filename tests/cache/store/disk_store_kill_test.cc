// SPDX-License-Identifier: Apache-2.0
// kill -9 of a writing process, again and again: never a wrong or torn value,
// and what was acknowledged is there.
//
// The child is this very test, started anew (RocksDB's threads do not survive a
// fork), which fills a tiered store and tells its parent through a pipe what is
// through the write-behind queue.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cache/store/disk_store.h"
#include "cache/store/open_tiers.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "tests/cache/store/store_testing.h"
#include "tests/common/long_form.h"

namespace fncache::cache::store::testing {
namespace {

constexpr char kChildDir[] = "FNCACHE_TEST_KILL_DIR";
constexpr char kChildPipe[] = "FNCACHE_TEST_KILL_PIPE";
constexpr char kChildFirst[] = "FNCACHE_TEST_KILL_FIRST";
constexpr uint64_t kKeys = 700;
constexpr uint64_t kCapacity = 16 << 20;
constexpr uint64_t kBatch = 16;

absl::Time Begin() { return absl::FromUnixSeconds(1'700'000'000); }

// The n-th fill of all rounds: version n of key n % kKeys.
EntryRef Fill(uint64_t n) {
  EntrySpec spec;
  spec.version = n;
  spec.size = 16 + n * 7919 % 6000;
  spec.started = Begin() + absl::Nanoseconds(n);
  spec.took = absl::ZeroDuration();
  return EntryOf(n % kKeys, spec);
}

std::vector<StoredFunction> OneFunction() { return {{"function", "r1"}}; }

// Writes until it is killed.
void Child() {
  SimulatedClock clock(Begin() + absl::Minutes(1));
  TieredOptions options;
  options.disk_dir = getenv(kChildDir);
  options.disk_bytes = kCapacity;
  options.functions = OneFunction();
  const int pipe = atoi(getenv(kChildPipe));
  auto store = OpenTiers(options, &clock, nullptr);
  if (!store.ok()) _exit(3);
  for (uint64_t n = strtoull(getenv(kChildFirst), nullptr, 10);; ++n) {
    (*store)->Fill(KeyOf(n % kKeys), Fill(n), /*lower=*/true, clock.Now());
    if (n % kBatch != 0) continue;
    (*store)->Flush();
    if (write(pipe, &n, sizeof(n)) != sizeof(n)) _exit(4);
  }
}

TEST(DiskStoreKillHeavy, KilledWritersLoseNothingAcknowledged) {
  if (getenv(kChildDir) != nullptr) Child();
  const int rounds = fncache::testing::ShortOrLong(40, 100);
  const TempDir directory;
  const std::string dir = directory.path() + "/cache";
  std::mt19937_64 random(20231114);
  uint64_t first = 1;
  std::map<uint64_t, uint64_t> acknowledged;  // key -> version
  uint64_t found = 0;
  for (int round = 0; round < rounds; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const std::string pipe_text = std::to_string(ends[1]);
    const std::string first_text = std::to_string(first);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(ends[0]);
      setenv(kChildDir, dir.c_str(), 1);
      setenv(kChildPipe, pipe_text.c_str(), 1);
      setenv(kChildFirst, first_text.c_str(), 1);
      execl("/proc/self/exe", "cache_test",
            "--gtest_filter=DiskStoreKillHeavy.*", nullptr);
      _exit(2);
    }
    close(ends[1]);
    // Killed at some point after some number of acknowledgements.
    const uint64_t wanted = 1 + random() % 30;
    uint64_t last = first - 1;
    uint64_t n;
    uint64_t got = 0;
    while (got < wanted && read(ends[0], &n, sizeof(n)) == sizeof(n)) {
      last = n;
      ++got;
    }
    const uint64_t spin = random() % 200'000;
    for (volatile uint64_t i = 0; i < spin; i = i + 1) {
    }
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << status;
    // Writes that it acknowledged before it died count as well.
    while (read(ends[0], &n, sizeof(n)) == sizeof(n)) last = n;
    close(ends[0]);
    ASSERT_GE(got, 1);
    for (uint64_t i = first; i <= last; ++i) acknowledged[i % kKeys] = i;

    SimulatedClock clock(Begin() + absl::Minutes(1));
    CountingObserver observer;
    DiskStoreOptions options;
    options.dir = dir;
    options.capacity = kCapacity;
    options.functions = OneFunction();
    auto store = DiskStore::Open(options, &clock, &observer);
    ASSERT_TRUE(store.ok()) << store.status();
    uint64_t newest = last;
    for (uint64_t key = 0; key < kKeys; ++key) {
      const Found there = (*store)->Get(KeyOf(key), clock.Now());
      const auto it = acknowledged.find(key);
      if (!there.entry) {
        ASSERT_TRUE(it == acknowledged.end())
            << "round " << round << ": key " << key << " is lost";
        continue;
      }
      const int64_t version = VersionOf(key, there.entry->body());
      ASSERT_GE(version, 0) << "round " << round << ": a torn value";
      if (it != acknowledged.end()) {
        ASSERT_GE(static_cast<uint64_t>(version), it->second)
            << "round " << round << ": an older value";
      }
      newest = std::max(newest, static_cast<uint64_t>(version));
      ++found;
    }
    ASSERT_EQ(observer.errors(Tier::kDisk, TierError::kCorrupt), 0);
    first = newest + 1;
  }
  EXPECT_GT(found, static_cast<uint64_t>(kKeys * rounds / 2));
  ::testing::Test::RecordProperty("fills", static_cast<int>(first));
}

}  // namespace
}  // namespace fncache::cache::store::testing
