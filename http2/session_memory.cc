// SPDX-License-Identifier: Apache-2.0
#include "http2/session_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "http2/recycler.h"

namespace fncache::http2 {
namespace {

// But for what each session has one of, which is not to be rounded up.
constexpr size_t kMostRecycled = 1000;
constexpr size_t kSizeBefore = alignof(std::max_align_t);
// What takes more cells lies elsewhere, and so does all that sanitizers watch.
constexpr size_t kMostCells = Recycler::kRecycles ? 3 : 0;

size_t CellsOf(size_t bytes, size_t cell) { return (bytes + cell - 1) / cell; }

size_t SizeOf(void* memory) {
  size_t size = 0;
  std::memcpy(&size, static_cast<char*>(memory) - kSizeBefore, sizeof size);
  return size;
}

}  // namespace

void* SessionMemory::Allocate(size_t size) {
  const size_t all = size + kSizeBefore;
  const size_t cells = CellsOf(all, kCell);
  void* block = cells <= kMostCells ? TakeCells(cells) : nullptr;
  if (block == nullptr) {
    block =
        size > kMostRecycled ? ::operator new(all) : Recycler::Allocate(all);
  }
  std::memcpy(block, &size, sizeof size);
  return static_cast<char*>(block) + kSizeBefore;
}

void* SessionMemory::Reallocate(void* memory, size_t size) {
  void* const other = Allocate(size);
  if (memory == nullptr) return other;
  std::memcpy(other, memory, std::min(size, SizeOf(memory)));
  Free(memory);
  return other;
}

void SessionMemory::Free(void* memory) {
  if (memory == nullptr) return;
  const size_t size = SizeOf(memory);
  const size_t all = size + kSizeBefore;
  void* const block = static_cast<char*>(memory) - kSizeBefore;
  if (IsCell(block)) return GiveCells(block, CellsOf(all, kCell));
  if (size > kMostRecycled) return ::operator delete(block);
  Recycler::Free(block, all);
}

void* SessionMemory::TakeCells(size_t count) {
  // A bit stays where enough others follow it.
  uint64_t fits = free_;
  for (size_t i = 1; i < count; ++i) fits &= free_ >> i;
  if (fits == 0) return nullptr;
  const auto first = static_cast<size_t>(__builtin_ctzll(fits));
  free_ &= ~(((uint64_t{1} << count) - 1) << first);
  return cells_ + first * kCell;
}

void SessionMemory::GiveCells(void* block, size_t count) {
  const auto at = static_cast<size_t>(static_cast<char*>(block) - cells_);
  free_ |= ((uint64_t{1} << count) - 1) << (at / kCell);
}

}  // namespace fncache::http2
