// SPDX-License-Identifier: Apache-2.0
// Random: the benchmark's own small generator of random numbers (SplitMix64).
//
// The same on every machine and in every version of the standard library, so
// that a seed names one set of requests for good. Not thread-safe.
#ifndef FNCACHE_BENCH_RANDOM_H_
#define FNCACHE_BENCH_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fncache::bench {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  // 0 to `bound` - 1, for bounds far below 2^64; `bound` is at least 1.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>(
        (static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

  template <typename T>
  void Shuffle(std::vector<T>* values) {
    for (size_t i = values->size(); i > 1; --i) {
      std::swap((*values)[i - 1], (*values)[Below(i)]);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_RANDOM_H_
