// SPDX-License-Identifier: Apache-2.0
#include "metrics/cells.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "common/log.h"
#include "common/mutex.h"

namespace fncache::metrics::internal {
namespace {

// Every slab and every reservation of the process. Never destroyed: threads may
// end after main has.
class Space {
 public:
  static Space& Get() {
    static Space* const space = new Space;
    return *space;
  }

  Slab* Lend() {
    MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      Slab* const slab = idle_.back();
      idle_.pop_back();
      return slab;
    }
    slabs_.push_back(new Slab);
    return slabs_.back();
  }

  void TakeBack(Slab* slab) {
    MutexLock lock(&mutex_);
    idle_.push_back(slab);
  }

  void AddForEndingThread(uint32_t cell, uint64_t n) {
    MutexLock lock(&mutex_);
    if (ending_ == nullptr) {
      ending_ = new Slab;
      slabs_.push_back(ending_);
    }
    AddToOwn(CopyIn(ending_, cell), n);
  }

  // `slab`'s copy of the cell, made where there is none. Only for the thread
  // that has the slab.
  static std::atomic<uint64_t>* CopyIn(Slab* slab, uint32_t cell) {
    std::atomic<Chunk*>& place = slab->chunks[cell / kCellsPerChunk];
    Chunk* chunk = place.load(std::memory_order_relaxed);
    if (chunk == nullptr) {
      chunk = new Chunk;
      place.store(chunk, std::memory_order_release);
    }
    return &chunk->cells[cell % kCellsPerChunk];
  }

  void Sum(uint32_t first, uint32_t count, uint64_t* sums) {
    std::fill_n(sums, count, 0);
    MutexLock lock(&mutex_);
    for (const Slab* slab : slabs_) {
      const Chunk* const chunk =
          slab->chunks[first / kCellsPerChunk].load(std::memory_order_acquire);
      if (chunk == nullptr) continue;
      const std::atomic<uint64_t>* const cells =
          chunk->cells + first % kCellsPerChunk;
      for (uint32_t i = 0; i < count; ++i) {
        sums[i] += cells[i].load(std::memory_order_relaxed);
      }
    }
  }

  uint32_t Reserve(uint32_t count) {
    MutexLock lock(&mutex_);
    std::vector<uint32_t>& free = free_[count];
    if (!free.empty()) {
      const uint32_t first = free.back();
      free.pop_back();
      return first;
    }
    // Cells that are reserved together lie in one chunk, which CountInCells
    // relies on, and on neighbouring lines.
    if (next_ % kCellsPerChunk + count > kCellsPerChunk) {
      next_ += kCellsPerChunk - next_ % kCellsPerChunk;
    }
    if (next_ + count > kCellsPerChunk * kMaxChunks) {
      Log(LogLevel::kError, "too many metrics: fewer functions, please");
      std::abort();
    }
    const uint32_t first = next_;
    next_ += count;
    return first;
  }

  void Free(uint32_t first, uint32_t count) {
    MutexLock lock(&mutex_);
    for (Slab* slab : slabs_) {
      Chunk* const chunk =
          slab->chunks[first / kCellsPerChunk].load(std::memory_order_acquire);
      if (chunk == nullptr) continue;
      for (uint32_t i = 0; i < count; ++i) {
        chunk->cells[first % kCellsPerChunk + i].store(
            0, std::memory_order_relaxed);
      }
    }
    free_[count].push_back(first);
  }

 private:
  Mutex mutex_;
  std::vector<Slab*> slabs_ ABSL_GUARDED_BY(mutex_);  // every one there is
  std::vector<Slab*> idle_ ABSL_GUARDED_BY(mutex_);   // without an owner
  Slab* ending_ ABSL_GUARDED_BY(mutex_) = nullptr;    // see AddForEndingThread
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  // Keeps the rows of cells that were given back, by the number of cells in a
  // row.
  std::map<uint32_t, std::vector<uint32_t>> free_ ABSL_GUARDED_BY(mutex_);
};

// Set once a thread has handed its slab back.
thread_local bool ended = false;

// Hands the slab back when the thread ends.
struct Lease {
  Lease() { current_slab = Space::Get().Lend(); }
  ~Lease() {
    Space::Get().TakeBack(current_slab);
    current_slab = nullptr;
    ended = true;
  }
};

}  // namespace

void AddToCellSlowly(uint32_t cell, uint64_t n) {
  if (ended) return Space::Get().AddForEndingThread(cell, n);
  thread_local Lease lease;
  AddToOwn(Space::CopyIn(current_slab, cell), n);
}

uint64_t CellSum(uint32_t cell) {
  uint64_t sum;
  CellSums(cell, 1, &sum);
  return sum;
}
void CellSums(uint32_t first, uint32_t count, uint64_t* sums) {
  Space::Get().Sum(first, count, sums);
}
uint32_t ReserveCells(uint32_t count) { return Space::Get().Reserve(count); }
void FreeCells(uint32_t first, uint32_t count) {
  Space::Get().Free(first, count);
}

}  // namespace fncache::metrics::internal
