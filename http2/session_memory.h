// SPDX-License-Identifier: Apache-2.0
// SessionMemory: what one nghttp2 session lives in. Small blocks, which are
// above all the entries of its header tables, lie together in its connection:
// where connections are so many that no cache holds them, they can be asked for
// before they are needed. All else is the recycler's.
//
// Lives on its session's thread, and longer than that.
#ifndef FNCACHE_HTTP2_SESSION_MEMORY_H_
#define FNCACHE_HTTP2_SESSION_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "http2/prefetch.h"

namespace fncache::http2 {

class SessionMemory {
 public:
  SessionMemory() = default;
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;

  // As malloc, realloc and free; there always is memory.
  void* Allocate(size_t size);
  void* Reallocate(void* memory, size_t size);
  void Free(void* memory);

  // Asks the caches for the small blocks.
  void Prefetch() const { http2::Prefetch(cells_, sizeof cells_); }

 private:
  // A block is a run of cells, with its size before it. An entry of a header
  // table takes two.
  static constexpr size_t kCell = 48;
  static constexpr size_t kCells = 64;

  // Null: there is no room.
  void* TakeCells(size_t count);
  void GiveCells(void* block, size_t count);
  bool IsCell(const void* block) const {
    return block >= cells_ && block < cells_ + sizeof cells_;
  }

  uint64_t free_ = ~uint64_t{0};  // a bit for each cell
  alignas(64) char cells_[kCells * kCell];
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_SESSION_MEMORY_H_
