// SPDX-License-Identifier: Apache-2.0
// The memory tier under 1 to 4 threads: look-ups of which all, or half, hit,
// and fills that evict. Keys are drawn at random over the whole store.
#include <absl/synchronization/mutex.h>
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/keys.h"
#include "cache/store/memory_store.h"

namespace {

using fncache::bench::KeyOf;
using fncache::bench::Mix;
using fncache::bench::Now;
using fncache::cache::store::Entry;
using fncache::cache::store::EntryInfo;
using fncache::cache::store::EntryRef;
using fncache::cache::store::MemoryStore;

constexpr uint64_t kEntries = 10000;
constexpr size_t kBody = 13000;  // what a real response has

EntryRef MakeEntry() {
  EntryInfo info;
  info.started = info.arrived = Now();
  info.lifetime = absl::Hours(1);
  static const std::string* const body = new std::string(kBody, 'x');
  return Entry::Create(info, "", {*body});
}

MemoryStore* Filled() {
  static MemoryStore* const store = [] {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    auto* filled = new MemoryStore({256ull << 20, 16ull << 20}, nullptr);
    for (uint64_t n = 0; n < kEntries; ++n) {
      filled->Put(KeyOf(n), MakeEntry(), Now());
    }
    return filled;
  }();
  return store;
}

// range(0): per cent of look-ups that hit.
void BM_Get(benchmark::State& state) {
  MemoryStore* const store = Filled();
  const uint64_t percent = static_cast<uint64_t>(state.range(0));
  uint64_t random = Mix(state.thread_index() + 1);
  uint64_t hits = 0;
  for (auto _ : state) {
    random = Mix(random);
    const uint64_t n = random % kEntries;
    const bool hit = (random >> 32) % 100 < percent;
    hits += static_cast<bool>(
        store->Get(KeyOf(hit ? n : n + kEntries), Now()).entry);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.counters["hits"] = benchmark::Counter(
      static_cast<double>(hits) / static_cast<double>(state.iterations()),
      benchmark::Counter::kAvgThreads);
}
BENCHMARK(BM_Get)->Arg(100)->Arg(50)->ThreadRange(1, 4)->UseRealTime();

// Fills of new keys into a full store: each evicts.
void BM_PutAndEvict(benchmark::State& state) {
  static MemoryStore* const store = [] {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    return new MemoryStore({64ull << 20, 1ull << 20}, nullptr);
  }();
  uint64_t n = static_cast<uint64_t>(state.thread_index()) << 40;
  for (auto _ : state) store->Put(KeyOf(n++), MakeEntry(), Now());
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(BM_PutAndEvict)->ThreadRange(1, 4)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
