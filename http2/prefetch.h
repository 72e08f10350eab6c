// SPDX-License-Identifier: Apache-2.0
// Prefetch: asks the caches for memory that is touched soon. Waits for nothing,
// and the memory need not be there any more.
#ifndef FNCACHE_HTTP2_PREFETCH_H_
#define FNCACHE_HTTP2_PREFETCH_H_

#include <cstddef>

namespace fncache::http2 {

inline void Prefetch(const void* memory, size_t bytes) {
  constexpr size_t kLine = 64;
  const char* const from = static_cast<const char*>(memory);
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(from + at);
}

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_PREFETCH_H_
