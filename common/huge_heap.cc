// SPDX-License-Identifier: Apache-2.0
#include "common/huge_heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace fncache {

#if defined(__GLIBC__)
namespace {

// A large heap grows by this many bytes at a time. The kernel gives a huge page
// only if the program asks for all of its 2 MiB before it touches one byte. So
// the last pages of each step are small. Steps of 128 KiB, glibc's own, would
// have no huge page at all. Untouched bytes are not resident.
constexpr int kStep = 32 << 20;

// Where the heap was when this began; null: it is not followed.
std::atomic<char*> heap_begin{nullptr};
// Its end when it was last seen.
std::atomic<char*> heap_end{nullptr};

char* HeapEnd() { return static_cast<char*>(sbrk(0)); }

}  // namespace

void UseHugeHeap() {
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables != nullptr &&
      std::strstr(tunables, "glibc.malloc.hugetlb") != nullptr) {
    return;
  }
  // The address is rounded down to the start of a page, as madvise requires.
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  char* const begin = HeapEnd();
  heap_begin = begin - reinterpret_cast<uintptr_t>(begin) % page;
}

void FollowHeap() {
  char* const begin = heap_begin.load(std::memory_order_relaxed);
  if (begin == nullptr) return;
  char* const end = HeapEnd();
  char* const seen = heap_end.load(std::memory_order_relaxed);
  if (end == seen) return;
  // Two threads may get here at once, and do the same.
  heap_end.store(end, std::memory_order_relaxed);
  if (end < begin + kHugeHeapFrom) return;
  if (seen < begin + kHugeHeapFrom &&
      std::getenv("MALLOC_TOP_PAD_") == nullptr) {
    mallopt(M_TOP_PAD, kStep);
  }
  // All of it: what was given back and taken again was not asked for. A kernel
  // without huge pages refuses: then there are none.
  madvise(begin, static_cast<size_t>(end - begin), MADV_HUGEPAGE);
}

#else

void UseHugeHeap() {}
void FollowHeap() {}

#endif

}  // namespace fncache
