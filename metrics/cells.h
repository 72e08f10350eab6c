// SPDX-License-Identifier: Apache-2.0
// Cells: the numbers under counters and histograms, one copy per thread.
//
// A cell is a number that any thread may add to. Each thread adds to its own
// copy of it, in its own slab of memory that no other thread writes: an
// addition is a load, an add and a store, without lock, allocation, look-up or
// shared cache line. A reader sums the copies of all slabs.
//
// A slab is lent to a thread at its first addition and handed back when the
// thread ends; the next new thread adds to it. So nothing that was
// counted is ever lost or moved, and there are as many slabs as there were
// threads at once. (A thread's first addition to a slab allocates.)
//
// Only metrics/ uses this; what others hold is counter.h and histogram.h.
// Thread-safe.
#ifndef FNCACHE_METRICS_CELLS_H_
#define FNCACHE_METRICS_CELLS_H_

#include <atomic>
#include <cstdint>

#include "absl/base/optimization.h"

namespace fncache::metrics::internal {

// 16 KiB a chunk; eight million cells are enough for 4,000 functions.
inline constexpr uint32_t kCellsPerChunk = 2048;
inline constexpr uint32_t kMaxChunks = 4096;

struct alignas(ABSL_CACHELINE_SIZE) Chunk {
  std::atomic<uint64_t> cells[kCellsPerChunk] = {};
};

// Written by the thread that has it; read by anyone.
struct alignas(ABSL_CACHELINE_SIZE) Slab {
  std::atomic<Chunk*> chunks[kMaxChunks] = {};
};

inline thread_local Slab* current_slab = nullptr;

// The first addition of a thread, or to a chunk; and those of a thread that
// has ended but for its last thread_local destructors.
void AddToCellSlowly(uint32_t cell, uint64_t n);

// This thread's copy of a cell; null where AddToCellSlowly is needed. The
// copies of cells that were reserved together lie in a row.
inline std::atomic<uint64_t>* OwnCopy(uint32_t cell) {
  Slab* const slab = current_slab;
  if (ABSL_PREDICT_FALSE(slab == nullptr)) return nullptr;
  Chunk* const chunk =
      slab->chunks[cell / kCellsPerChunk].load(std::memory_order_relaxed);
  if (ABSL_PREDICT_FALSE(chunk == nullptr)) return nullptr;
  return &chunk->cells[cell % kCellsPerChunk];
}

// Adds to a copy that no other thread writes.
inline void AddToOwn(std::atomic<uint64_t>* copy, uint64_t n) {
  copy->store(copy->load(std::memory_order_relaxed) + n,
              std::memory_order_relaxed);
}

// Adds modulo 2^64: adding a negative number's two's complement subtracts.
// Precondition: the cell is reserved, or 0.
inline void AddToCell(uint32_t cell, uint64_t n) {
  std::atomic<uint64_t>* const mine = OwnCopy(cell);
  if (ABSL_PREDICT_FALSE(mine == nullptr)) return AddToCellSlowly(cell, n);
  AddToOwn(mine, n);
}

// Adds 1 to the cell and `n` to the next one. Precondition: both were reserved
// together.
inline void CountInCells(uint32_t cell, uint64_t n) {
  std::atomic<uint64_t>* const mine = OwnCopy(cell);
  if (ABSL_PREDICT_FALSE(mine == nullptr)) {
    AddToCellSlowly(cell, 1);
    AddToCellSlowly(cell + 1, n);
    return;
  }
  AddToOwn(mine, 1);
  AddToOwn(mine + 1, n);
}

// The sum over all threads. An addition that happened before the call is in it.
uint64_t CellSum(uint32_t cell);
// The same for cells in a row, as reserved together.
void CellSums(uint32_t first, uint32_t count, uint64_t* sums);

// Reserves `count` cells in a row, all zero. The first one's number is never 0:
// unbound handles count in cell 0, which is never read. Aborts if there are
// none left: that is eight million, at start-up.
// Precondition: 0 < count <= kCellsPerChunk.
uint32_t ReserveCells(uint32_t count);

// Gives them back, for later reservations of the same count.
// Precondition: no thread adds to them any more.
void FreeCells(uint32_t first, uint32_t count);

}  // namespace fncache::metrics::internal

#endif  // FNCACHE_METRICS_CELLS_H_
