// SPDX-License-Identifier: Apache-2.0
// Measures what a memory tier of N small entries takes, and what it counts:
// bytes an entry, resident bytes of the process, and the cost of a look-up.
//
//   memory_footprint [--value 300] [--entries 1000,100000,1000000,5000000]
//                    [--drift 1]
//   memory_footprint --evidence KINDS
//
// With `--drift 1` entries have a drift digest, as with `tune: on`. The second
// form measures the evidence of keys whose requests have that number of kinds
// of drift, and prints one object.
//
// Prints one JSON array on stdout, an object for each N. Each N has a process
// of its own, so that none profits from another's pages. Bytes are those
// requested from the allocator; this program intercepts the requests to count
// them.
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <absl/synchronization/mutex.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/keys.h"
#include "cache/key/drift_kinds.h"
#include "cache/store/memory_store.h"
#include "common/huge_heap.h"
#include "proxy/serving/evidence.h"

// ------------------------------------------------------------ The allocator

namespace {

// Bytes requested and not freed. For freed bytes only the usable size is known,
// which is 8 more than the requested size on average.
std::atomic<int64_t> g_requested{0};

}  // namespace

extern "C" {

void* __libc_malloc(size_t size);                      // NOLINT
void* __libc_calloc(size_t n, size_t size);            // NOLINT
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT
void __libc_free(void* memory);                        // NOLINT

void* malloc(size_t size) {
  g_requested.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  return __libc_malloc(size);
}

void* calloc(size_t n, size_t size) {
  g_requested.fetch_add(static_cast<int64_t>(n * size),
                        std::memory_order_relaxed);
  return __libc_calloc(n, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  g_requested.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}

void free(void* memory) {
  if (memory == nullptr) return;
  g_requested.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)),
                        std::memory_order_relaxed);
  __libc_free(memory);
}
}

namespace {

using fncache::bench::KeyOf;
using fncache::bench::Mix;
using fncache::bench::Now;
using fncache::cache::store::Entry;
using fncache::cache::store::EntryInfo;
using fncache::cache::store::Found;
using fncache::cache::store::MemoryStore;

constexpr int kKeyBytes = 16;
constexpr uint64_t kLookups = 2'000'000;

int64_t Resident() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Nanoseconds a look-up, which reads what it finds as sending it would.
double LookupNanos(MemoryStore* store, uint64_t entries, uint64_t thread) {
  uint64_t random = Mix(thread + 1);
  uint64_t sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < kLookups; ++i) {
    random = Mix(random);
    const Found found = store->Get(KeyOf(random % entries), Now());
    if (!found.entry) {
      std::fprintf(stderr, "an entry is gone\n");
      std::exit(1);
    }
    const absl::string_view body = found.entry->body();
    for (size_t at = 0; at < body.size(); at += 64) {
      sum += static_cast<unsigned char>(body[at]);
    }
  }
  const std::chrono::duration<double, std::nano> took =
      std::chrono::steady_clock::now() - begin;
  // The output keeps the compiler from removing the reads.
  if (sum == 0) std::fprintf(stderr, "values are empty\n");
  return took.count() / kLookups;
}

void Measure(uint64_t entries, uint64_t value, bool drift, bool last) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // The daemon's allocator has one heap, in huge pages where it is large.
  mallopt(M_ARENA_MAX, 1);
  fncache::UseHugeHeap();
  const std::string body(value, 'x');
  const int64_t requested_before = g_requested;
  const int64_t resident_before = Resident();
  fncache::cache::store::MemoryStoreOptions options;
  options.capacity = entries * (value + 256) * 2 + (64 << 20);
  options.max_entry_bytes = 1 << 20;
  auto store = std::make_unique<MemoryStore>(options, nullptr);
  for (uint64_t n = 0; n < entries; ++n) {
    EntryInfo info;
    info.started = info.arrived = Now();
    info.lifetime = absl::Hours(1);
    info.ttl = absl::Hours(1);
    if (drift) info.drift = KeyOf(~n);
    store->Put(KeyOf(n), Entry::Create(info, "", {body}), Now());
  }
  const auto stats = store->Stats();
  const int64_t requested = g_requested - requested_before;
  const int64_t resident = Resident() - resident_before;
  if (stats.entries != entries) {
    std::fprintf(stderr, "an entry was evicted\n");
    std::exit(1);
  }
  LookupNanos(store.get(), entries, 0);  // warm up
  const double alone = LookupNanos(store.get(), entries, 1);
  double together[2];
  {
    std::thread other(
        [&] { together[1] = LookupNanos(store.get(), entries, 2); });
    together[0] = LookupNanos(store.get(), entries, 3);
    other.join();
  }
  const auto per_entry = [entries](double bytes) {
    return bytes / static_cast<double>(entries);
  };
  const double beside = static_cast<double>(value + kKeyBytes);
  std::printf(
      "{\"entries\": %llu, \"value_bytes\": %llu, \"key_bytes\": %d, "
      "\"shards\": %zu, \"counted_bytes\": %llu, \"requested_bytes\": %lld, "
      "\"resident_bytes\": %lld, \"resident_over_counted\": %.4f, "
      "\"overhead_requested_per_entry\": %.2f, "
      "\"overhead_counted_per_entry\": %.2f, "
      "\"lookup_ns_1_thread\": %.1f, \"lookup_ns_2_threads\": %.1f}%s\n",
      static_cast<unsigned long long>(entries),
      static_cast<unsigned long long>(value), kKeyBytes, store->shards(),
      static_cast<unsigned long long>(stats.bytes),
      static_cast<long long>(requested), static_cast<long long>(resident),
      static_cast<double>(resident) / static_cast<double>(stats.bytes),
      per_entry(static_cast<double>(requested)) - beside,
      per_entry(static_cast<double>(stats.bytes)) - beside, alone,
      (together[0] + together[1]) / 2, last ? "" : ",");
}

// As many keys as are surely kept, each with three runs of other drift.
int MeasureEvidence(uint64_t kinds) {
  using fncache::cache::key::DriftKinds;
  using fncache::proxy::serving::Evidence;
  using fncache::proxy::serving::RunNews;
  using fncache::proxy::serving::TunedEntry;
  using fncache::proxy::serving::TunedRun;
  constexpr uint64_t kKeys = Evidence::kMostBytes / Evidence::kMostBytesOfKey;
  constexpr uint64_t kRuns = 3;
  const int64_t before = g_requested;
  auto evidence = std::make_unique<Evidence>();
  for (uint64_t n = 0; n < kKeys; ++n) {
    TunedEntry older;
    for (uint64_t i = 0; i < kRuns; ++i) {
      DriftKinds drift;
      for (uint64_t kind = 0; kind < kinds; ++kind) {
        drift.push_back({kind, Mix(n * kRuns + i), /*is_time=*/kind > 0});
      }
      TunedRun run;
      run.step = KeyOf(~uint64_t{0});
      run.key = KeyOf(n);
      run.entry = {Now() + absl::Seconds(i), KeyOf(n * kRuns + i), KeyOf(0),
                   absl::Hours(1)};
      run.kinds = &drift;
      const auto note =
          evidence->OnRun(run, i > 0 ? &older : nullptr, run.entry.started);
      if (i > 0 && note.news != RunNews::kRepeat) {
        std::fprintf(stderr, "a repeat left no evidence\n");
        return 1;
      }
      older = run.entry;
    }
  }
  const auto per_key = [](int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(kKeys);
  };
  std::printf(
      "{\"kinds\": %llu, \"keys\": %llu, \"counted_per_key\": %.2f, "
      "\"requested_per_key\": %.2f}\n",
      static_cast<unsigned long long>(kinds),
      static_cast<unsigned long long>(kKeys),
      per_key(static_cast<int64_t>(evidence->bytes())),
      per_key(g_requested - before));
  return 0;
}

int Usage() {
  std::fprintf(stderr,
               "usage: memory_footprint [--value BYTES] [--entries N,N...]"
               " [--drift 0|1]\n"
               "       memory_footprint --evidence KINDS\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t value = 300;
  uint64_t drift = 0;
  uint64_t kinds = 0;
  std::vector<uint64_t> sizes = {1000, 100'000, 1'000'000, 5'000'000};
  for (int i = 1; i < argc; i += 2) {
    const absl::string_view name = argv[i];
    if (i + 1 == argc) return Usage();
    if (name == "--value") {
      if (!absl::SimpleAtoi(argv[i + 1], &value) || value > (1 << 19)) {
        return Usage();
      }
    } else if (name == "--drift") {
      if (!absl::SimpleAtoi(argv[i + 1], &drift) || drift > 1) return Usage();
    } else if (name == "--evidence" && argc == 3) {
      if (!absl::SimpleAtoi(argv[i + 1], &kinds) || kinds == 0 ||
          kinds > fncache::cache::key::kMostKinds) {
        return Usage();
      }
      return MeasureEvidence(kinds);
    } else if (name == "--entries") {
      sizes.clear();
      for (absl::string_view size : absl::StrSplit(argv[i + 1], ',')) {
        sizes.emplace_back();
        if (!absl::SimpleAtoi(size, &sizes.back()) || sizes.back() == 0) {
          return Usage();
        }
      }
    } else {
      return Usage();
    }
  }
  std::printf("[\n");
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      Measure(sizes[i], value, drift == 1, /*last=*/i + 1 == sizes.size());
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  std::printf("]\n");
  return 0;
}
