// SPDX-License-Identifier: Apache-2.0
// DistinctCount: how many different things there were, in 1 KiB however many
// there are. HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, 2007) with 1,024
// registers: within 3.3 % as a standard error; small numbers, which it counts
// by the registers that are still empty, are nearly always exact.
//
// Thread-compatible. A plain value.
#ifndef FNCACHE_PROXY_SERVING_DISTINCT_COUNT_H_
#define FNCACHE_PROXY_SERVING_DISTINCT_COUNT_H_

#include <array>
#include <cstdint>

namespace fncache::proxy::serving {

class DistinctCount {
 public:
  // `hash` is a hash of the thing, all of whose 64 bits are good.
  void Add(uint64_t hash) {
    const uint64_t rest = hash << kIndexBits | uint64_t{1} << (kIndexBits - 1);
    const auto rank = static_cast<uint8_t>(__builtin_clzll(rest) + 1);
    uint8_t& most = ranks_[hash >> (64 - kIndexBits)];
    if (rank > most) most = rank;
  }

  uint64_t Estimate() const;

 private:
  static constexpr int kIndexBits = 10;
  std::array<uint8_t, 1 << kIndexBits> ranks_{};
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_DISTINCT_COUNT_H_
