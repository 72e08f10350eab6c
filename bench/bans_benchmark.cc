// SPDX-License-Identifier: Apache-2.0
// The cost of purges for a hit: each entry that is found is checked against the
// bans. A look-up in memory is measured for comparison. Cases: nothing purged;
// a function purged earlier; and, the worst, ten thousand keys purged during
// calls.
#include <absl/synchronization/mutex.h>
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/keys.h"
#include "cache/store/bans.h"
#include "cache/store/memory_store.h"

namespace {

using fncache::bench::KeyOf;
using fncache::bench::Now;
using fncache::cache::key::Key;
using fncache::cache::store::Bans;
using fncache::cache::store::BanScope;
using fncache::cache::store::Entry;
using fncache::cache::store::EntryInfo;
using fncache::cache::store::EntryRef;

constexpr uint64_t kKeys = 4096;

EntryRef MakeEntry() {
  EntryInfo info;
  info.started = info.arrived = Now();
  info.lifetime = absl::Hours(1);
  return Entry::Create(info, "", {"body"});
}

struct Case {
  Case() {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  }
  Bans bans;
  const BanScope& scope = bans.Of("function", "r1");
  std::vector<Bans::Entered> under_way;
};

// Both of what a hit asks: whether it is purged, and whether it is stale.
void Look(benchmark::State& state, const Case& of) {
  const EntryRef entry = MakeEntry();
  std::vector<Key> keys;
  for (uint64_t n = 0; n < kKeys; ++n) keys.push_back(KeyOf(n));
  const absl::Time now = Now() + absl::Seconds(1);
  uint64_t n = 0;
  for (auto _ : state) {
    const Key& key = keys[n++ % kKeys];
    benchmark::DoNotOptimize(of.scope.Covers(key, entry->started()));
    benchmark::DoNotOptimize(
        of.scope.FreshFor(key, entry->started(), absl::Minutes(1), now));
  }
}

void BM_NothingPurged(benchmark::State& state) {
  static const auto* const of = new Case;
  Look(state, *of);
}
BENCHMARK(BM_NothingPurged)->ThreadRange(1, 2)->UseRealTime();

void BM_PurgedEarlier(benchmark::State& state) {
  static const auto* const of = [] {
    auto* made = new Case;
    made->bans.Ban(Bans::Kind::kFunction, "function", "",
                   Now() - absl::Hours(1), false);
    return made;
  }();
  Look(state, *of);
}
BENCHMARK(BM_PurgedEarlier)->ThreadRange(1, 2)->UseRealTime();

// Entries of before purges of other keys, whose bans still last.
void BM_KeysPurgedLater(benchmark::State& state) {
  static const auto* const of = [] {
    auto* made = new Case;
    made->under_way.push_back(made->bans.Enter());
    for (uint64_t n = 0; n < Bans::kMostKeys; ++n) {
      made->bans
          .BanKey(KeyOf(1'000'000 + n), Now() + absl::Seconds(1), false,
                  absl::InfinitePast())
          .reset();
    }
    return made;
  }();
  Look(state, *of);
}
BENCHMARK(BM_KeysPurgedLater)->ThreadRange(1, 2)->UseRealTime();

// The cost for a miss: to enter and to leave.
void BM_Enter(benchmark::State& state) {
  static auto* const of = new Case;
  for (auto _ : state) benchmark::DoNotOptimize(of->bans.Enter());
}
BENCHMARK(BM_Enter)->ThreadRange(1, 2)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
