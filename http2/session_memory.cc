// SPDX-License-Identifier: Apache-2.0
#include "http2/session_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "http2/recycler.h"

namespace fncache::http2 {
namespace {

// With its size before each block; but for what each connection has one of, and
// mostly does not use.
constexpr size_t kMostRecycled = 8 << 10;
constexpr size_t kSizeBefore = alignof(std::max_align_t);

void* Allocate(size_t size, void* /*data*/) {
  auto* const block = static_cast<char*>(
      size > kMostRecycled ? ::operator new(size + kSizeBefore)
                           : Recycler::Allocate(size + kSizeBefore));
  std::memcpy(block, &size, sizeof size);
  return block + kSizeBefore;
}

size_t SizeOf(void* memory) {
  size_t size = 0;
  std::memcpy(&size, static_cast<char*>(memory) - kSizeBefore, sizeof size);
  return size;
}

void Free(void* memory, void* /*data*/) {
  if (memory == nullptr) return;
  const size_t size = SizeOf(memory);
  void* const block = static_cast<char*>(memory) - kSizeBefore;
  if (size > kMostRecycled) return ::operator delete(block);
  Recycler::Free(block, size + kSizeBefore);
}

void* AllocateZeroed(size_t count, size_t size, void* data) {
  void* const memory = Allocate(count * size, data);
  std::memset(memory, 0, count * size);
  return memory;
}

void* Reallocate(void* memory, size_t size, void* data) {
  void* const larger = Allocate(size, data);
  if (memory != nullptr) {
    std::memcpy(larger, memory, std::min(size, SizeOf(memory)));
    Free(memory, data);
  }
  return larger;
}

}  // namespace

nghttp2_mem* SessionMemory() {
  static nghttp2_mem memory = {nullptr, &Allocate, &Free, &AllocateZeroed,
                               &Reallocate};
  return &memory;
}

}  // namespace fncache::http2
