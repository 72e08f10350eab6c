// SPDX-License-Identifier: Apache-2.0
#include "http2/recycler.h"

#include <array>
#include <new>
#include <vector>

namespace fncache::http2 {
namespace {

// Blocks have sizes that are powers of two from 32 bytes on, and from 16 KiB on
// so much more: what a whole window lets come fits, with its owner's head.
constexpr size_t kSmallest = 32;
constexpr size_t kClasses = 14;
constexpr size_t kHeaded = 16 << 10;
constexpr size_t kHead = 64;
constexpr size_t SizeOf(size_t index) {
  const size_t size = kSmallest << index;
  return size < kHeaded ? size : size + kHead;
}
constexpr size_t kLargest = SizeOf(kClasses - 1);  // 256 KiB
// The bytes that a thread keeps of each size, heads not counted.
constexpr size_t kKept = 2 << 20;

size_t ClassOf(size_t bytes) {
  if (bytes > kHeaded) bytes -= kHead;
  size_t index = 0;
  for (size_t size = kSmallest; size < bytes; size <<= 1) ++index;
  return index;
}

struct Kept {
  ~Kept() {
    over = true;
    for (auto& blocks : classes) {
      for (void* block : blocks) ::operator delete(block);
    }
  }
  bool over = false;  // the thread ends
  std::array<std::vector<void*>, kClasses> classes;
};
thread_local Kept kept;

}  // namespace

size_t Recycler::Rounded(size_t bytes) {
  return bytes > kLargest ? bytes : SizeOf(ClassOf(bytes));
}

void* Recycler::Allocate(size_t bytes) {
  if (!kRecycles || bytes > kLargest) return ::operator new(bytes);
  const size_t index = ClassOf(bytes);
  std::vector<void*>& blocks = kept.classes[index];
  if (blocks.empty()) return ::operator new(SizeOf(index));
  void* const block = blocks.back();
  blocks.pop_back();
  return block;
}

void Recycler::Free(void* block, size_t bytes) {
  if (block == nullptr) return;
  if (kRecycles && bytes <= kLargest && !kept.over) {
    const size_t index = ClassOf(bytes);
    std::vector<void*>& blocks = kept.classes[index];
    if ((blocks.size() + 1) * (kSmallest << index) <= kKept) {
      blocks.push_back(block);
      return;
    }
  }
  ::operator delete(block);
}

}  // namespace fncache::http2
