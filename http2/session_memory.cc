// SPDX-License-Identifier: Apache-2.0
#include "http2/session_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "http2/recycler.h"

namespace fncache::http2 {
namespace {

// Larger blocks that last are not rounded up, as the recycler's are.
constexpr size_t kMostRounded = 512;
// Limit of cells for one block. Larger blocks are allocated elsewhere, and
// under sanitizers all blocks are.
constexpr size_t kMostCells = Recycler::kRecycles ? 3 : 0;

}  // namespace

// Before each block.
struct alignas(std::max_align_t) SessionMemory::Head {
  enum class Source : uint32_t { kCells, kRecycler, kHeap };

  size_t all() const { return sizeof(Head) + size; }
  size_t cells() const { return (all() + kCell - 1) / kCell; }

  size_t size;
  Source source;
};

void* SessionMemory::Allocate(size_t size) {
  Head head = {size, Head::Source::kCells};
  void* block = head.cells() <= kMostCells ? TakeCells(head.cells()) : nullptr;
  if (block == nullptr) {
    const bool exact = !set_up_ && size > kMostRounded;
    head.source = exact ? Head::Source::kHeap : Head::Source::kRecycler;
    block = exact ? ::operator new(head.all()) : Recycler::Allocate(head.all());
  }
  return new (block) Head(head) + 1;
}

void* SessionMemory::Reallocate(void* memory, size_t size) {
  void* const other = Allocate(size);
  if (memory == nullptr) return other;
  std::memcpy(other, memory,
              std::min(size, (static_cast<Head*>(memory) - 1)->size));
  Free(memory);
  return other;
}

void SessionMemory::Free(void* memory) {
  if (memory == nullptr) return;
  Head* const head = static_cast<Head*>(memory) - 1;
  switch (head->source) {
    case Head::Source::kCells:
      return GiveCells(head, head->cells());
    case Head::Source::kRecycler:
      return Recycler::Free(head, head->all());
    case Head::Source::kHeap:
      return ::operator delete(head);
  }
}

void* SessionMemory::TakeCells(size_t count) {
  // A bit stays set if enough set bits follow it.
  uint64_t fits = free_;
  for (size_t i = 1; i < count; ++i) fits &= free_ >> i;
  if (fits == 0) return nullptr;
  const auto first = static_cast<size_t>(__builtin_ctzll(fits));
  free_ &= ~(((uint64_t{1} << count) - 1) << first);
  return cells_ + first * kCell;
}

void SessionMemory::GiveCells(void* cells, size_t count) {
  const auto at = static_cast<size_t>(static_cast<char*>(cells) - cells_);
  free_ |= ((uint64_t{1} << count) - 1) << (at / kCell);
}

}  // namespace fncache::http2
