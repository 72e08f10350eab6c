// SPDX-License-Identifier: Apache-2.0
// The disk tier's look-ups, of entries as large as a real response: on the
// calling thread, and through the tiers as the daemon asks for them (on an I/O
// thread, 64 asked for at once, a memory tier far too small, each hit
// promoted). Keys are drawn at random over the whole store, files are in the
// operating system's cache. Takes FNCACHE_TEST_DATA, default ../shared/data.
#include <absl/synchronization/mutex.h>
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "bench/keys.h"
#include "cache/response.h"
#include "cache/store/disk_store.h"
#include "cache/store/tiered_store.h"
#include "common/mutex.h"

namespace fncache::cache {
namespace {

using bench::KeyOf;
using bench::Mix;

constexpr uint64_t kEntries = 50000;
constexpr uint64_t kCapacity = 1ull << 30;
constexpr int kAtOnce = 64;

std::string ReadAnswer() {
  const char* folder = std::getenv("FNCACHE_TEST_DATA");
  const std::string path =
      std::string(folder != nullptr ? folder
                                    : FNCACHE_SOURCE_DIR "/../shared/data") +
      "/requests/13k.rsp.bin";
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (bytes.empty()) {
    std::fprintf(stderr, "no response in %s\n", path.c_str());
    std::exit(1);
  }
  return bytes;
}

// A directory with kEntries entries, removed at exit.
class Filled {
 public:
  static Filled& Get() {
    static Filled filled;
    return filled;
  }
  const std::string& dir() const { return dir_; }
  const std::vector<store::StoredFunction>& functions() const {
    return functions_;
  }
  Clock* clock() { return &clock_; }

  std::unique_ptr<store::DiskStore> Open() {
    store::DiskStoreOptions options;
    options.dir = dir_;
    options.capacity = kCapacity;
    options.functions = functions_;
    auto store = store::DiskStore::Open(options, &clock_, nullptr);
    if (!store.ok()) {
      std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
      std::exit(1);
    }
    return *std::move(store);
  }

 private:
  Filled() {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    std::string dir =
        (std::filesystem::temp_directory_path() / "disk_bench.XXXXXX").string();
    if (mkdtemp(dir.data()) == nullptr) std::exit(1);
    dir_ = dir;
    const std::string answer = ReadAnswer();
    const auto view = ReadResponse(answer);
    store::EntryInfo info;
    info.started = info.arrived = clock_.Now();
    info.lifetime = absl::Hours(1);
    auto store = Open();
    for (uint64_t n = 0; n < kEntries; ++n) {
      store->Put(KeyOf(n), store::Entry::Create(info, "", view->body),
                 clock_.Now());
    }
  }
  ~Filled() { std::filesystem::remove_all(dir_); }

  std::string dir_;
  SystemClock clock_;
  const std::vector<store::StoredFunction> functions_{{"function", "1"}};
};

// range(0): per cent of look-ups that hit.
void BM_DiskGet(benchmark::State& state) {
  static store::DiskStore* const store = Filled::Get().Open().release();
  const uint64_t percent = static_cast<uint64_t>(state.range(0));
  uint64_t random = Mix(state.thread_index() + 1);
  uint64_t hits = 0;
  for (auto _ : state) {
    random = Mix(random);
    const uint64_t n = random % kEntries;
    const bool hit = (random >> 32) % 100 < percent;
    hits += static_cast<bool>(
        store->Get(KeyOf(hit ? n : n + kEntries), absl::Now()).entry);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.counters["hits"] = benchmark::Counter(
      static_cast<double>(hits) / static_cast<double>(state.iterations()),
      benchmark::Counter::kAvgThreads);
}
BENCHMARK(BM_DiskGet)->Arg(100)->Arg(0)->ThreadRange(1, 2)->UseRealTime();

}  // namespace
}  // namespace fncache::cache

BENCHMARK_MAIN();
