// SPDX-License-Identifier: Apache-2.0
// Prefetch: asks the caches for memory that is touched soon. Waits for nothing,
// and the memory need not be there any more.
//
// Kept for a measured figure: without it, a hit on 2,000 connections costs 1.10
// times the CPU (performance-experiments.md).
#ifndef FNCACHE_HTTP2_PREFETCH_H_
#define FNCACHE_HTTP2_PREFETCH_H_

#include <cstddef>
#include <cstdint>

namespace fncache::http2 {

inline void Prefetch(const void* memory, size_t bytes) {
  constexpr size_t kLine = 64;
  // A number: pointers must not leave what they point into.
  const auto from = reinterpret_cast<uintptr_t>(memory);
  for (size_t at = 0; at < bytes; at += kLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(from + at));
  }
}

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_PREFETCH_H_
