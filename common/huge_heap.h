// SPDX-License-Identifier: Apache-2.0
// Huge pages for a heap that has become large.
//
// A look-up among millions of entries touches pages that were not touched for
// long. With pages of 4 KiB the processor waits twice for each: for the page's
// address, then for its content. Pages of 2 MiB avoid most of the former, and
// filling them is cheaper, too.
//
// The kernel gives huge pages to a program that asks for them (where
// /sys/kernel/mm/transparent_hugepage/enabled says `madvise` or `always`).
// glibc's allocator does not ask automatically, and has no function to enable
// it. So the code that fills the heap calls FollowHeap() now and then, which
// asks for huge pages where the heap has grown. A small heap stays as it is: it
// has few pages, and rounding it up to huge ones would cost more than it saves.
//
// Only the process's heap (brk) is followed. Blocks with mappings of their own
// and heaps of threads, if there are any, are not.
//
// Kept for a measured figure: without it, a hit among a million small entries
// costs 1.08 times the CPU (1.04 to 1.13; docs/performance-experiments.md).
//
// Thread-safe.
#ifndef FNCACHE_COMMON_HUGE_HEAP_H_
#define FNCACHE_COMMON_HUGE_HEAP_H_

#include <cstddef>

namespace fncache {

// The size from which on a heap is large.
constexpr size_t kHugeHeapFrom = size_t{128} << 20;

// From here on FollowHeap() does what it says. For `main`, early: what the heap
// grows by from now on counts. Does nothing where the environment decides the
// matter (GLIBC_TUNABLES names glibc.malloc.hugetlb), or without glibc.
void UseHugeHeap();

// Asks for huge pages for what the heap has grown by since the last call, once
// it is large. Costs a few nanoseconds where it has not changed.
void FollowHeap();

}  // namespace fncache

#endif  // FNCACHE_COMMON_HUGE_HEAP_H_
