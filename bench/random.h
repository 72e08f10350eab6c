// SPDX-License-Identifier: Apache-2.0
// Random: the benchmark's own small generator of random numbers (SplitMix64),
// and Zipf, which picks some numbers more often than others.
//
// The same on every machine and in every version of the standard library, so
// that a seed names one set of requests for good. Not thread-safe.
#ifndef FNCACHE_BENCH_RANDOM_H_
#define FNCACHE_BENCH_RANDOM_H_

#include <algorithm>
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

// Numbers from 0 to `count` - 1 (at least 1): number k comes 1 / (k + 1) times
// as often as 0.
class Zipf {
 public:
  explicit Zipf(uint64_t count) {
    sums_.reserve(count);
    double sum = 0;
    for (uint64_t k = 1; k <= count; ++k) {
      sums_.push_back(sum += 1.0 / static_cast<double>(k));
    }
  }

  uint64_t Pick(Random* random) const {
    const double at = static_cast<double>(random->Next() >> 11) / (1ull << 53);
    const auto found =
        std::upper_bound(sums_.begin(), sums_.end(), at * sums_.back());
    return std::min<uint64_t>(found - sums_.begin(), sums_.size() - 1);
  }

 private:
  std::vector<double> sums_;  // of the weights up to each number
};

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_RANDOM_H_
