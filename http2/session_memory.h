// SPDX-License-Identifier: Apache-2.0
// SessionMemory: the memory of one nghttp2 session. Small blocks, mostly the
// entries of its header tables, are stored together in its connection. So they
// can be prefetched when there are too many connections for the CPU caches. All
// other blocks come from the recycler.
//
// Kept for a measured figure: without it, a hit on 2,000 connections costs 1.13
// times the CPU (performance-experiments.md).
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

  // Blocks that are allocated before this call last as long as the session.
  void EndSetUp() { set_up_ = true; }

  // Prefetches the small blocks.
  void Prefetch() const { http2::Prefetch(this, sizeof *this); }

 private:
  // A block of these is a run of cells. An entry of a header table takes two.
  static constexpr size_t kCell = 48;
  static constexpr size_t kCells = 64;
  static_assert(kCell % alignof(std::max_align_t) == 0, "blocks are aligned");
  static_assert(kCells == 64, "there is a bit for each");
  struct Head;

  // Null if no such run of cells is free.
  void* TakeCells(size_t count);
  void GiveCells(void* cells, size_t count);

  bool set_up_ = false;
  uint64_t free_ = ~uint64_t{0};  // a bit for each cell
  alignas(64) char cells_[kCells * kCell];
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_SESSION_MEMORY_H_
