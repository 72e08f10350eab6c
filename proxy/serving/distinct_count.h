// SPDX-License-Identifier: Apache-2.0
// DistinctCount: counts different things in 1 KiB of memory, whatever their
// number. HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, 2007) with 1,024
// registers: the standard error is 3.3 %. It counts small numbers by the
// registers that are still empty, so they are nearly always exact.
//
// Thread-compatible. A plain value.
#ifndef FNCACHE_PROXY_SERVING_DISTINCT_COUNT_H_
#define FNCACHE_PROXY_SERVING_DISTINCT_COUNT_H_

#include <array>
#include <cstdint>

namespace fncache::proxy::serving {

class DistinctCount {
 public:
  // `hash` is a hash of the thing. All of its 64 bits must be well mixed.
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
