// SPDX-License-Identifier: Apache-2.0
// Contents for benchmarks of stores: keys that are as good as hashes and the
// same in every run, and a time that does not advance.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_BENCH_KEYS_H_
#define FNCACHE_BENCH_KEYS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "cache/key/key.h"

namespace fncache::bench {

// One step of SplitMix64: a number that looks like any, of each number.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

inline cache::key::Key KeyOf(uint64_t n) {
  return {Mix(2 * n), Mix(2 * n + 1)};
}

inline absl::Time Now() { return absl::FromUnixSeconds(1'700'000'000); }

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_KEYS_H_
