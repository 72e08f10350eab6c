// SPDX-License-Identifier: Apache-2.0
#include "proxy/heap_keeper.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "absl/time/time.h"

namespace fncache::proxy {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(250);
constexpr int kLooksOfCheck = 20;
constexpr size_t kKept = 32 << 20;

// Bytes of the process that are resident and belong to no file. The file stays
// open, so that it can be read when no more files can be opened.
size_t Resident() {
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  char text[128] = {};
  size_t resident = 0, shared = 0;
  if (pread(file, text, sizeof(text) - 1, 0) <= 0 ||
      std::sscanf(text, "%*u %zu %zu", &resident, &shared) != 2) {
    return 0;
  }
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

// How many of the `resident` bytes are free in the heap. They are more where
// blocks have pages that were never touched. Takes milliseconds where a heap
// has much free memory, in which no thread allocates.
size_t FreeOf(size_t resident) {
  const struct mallinfo2 heap = mallinfo2();
  const size_t used = heap.uordblks + heap.hblkhd;
  return resident > used ? resident - used : 0;
}

}  // namespace

HeapKeeper::HeapKeeper() : thread_([this] { Run(); }) {}

HeapKeeper::~HeapKeeper() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    stopped_.SignalAll();
  }
  thread_.join();
}

void HeapKeeper::Run() {
  size_t base = Resident();  // the least since the last look at what is free
  int looks = 0;
  bool much = false;
  MutexLock lock(&mutex_);
  while (!stop_) {
    if (!stopped_.WaitWithTimeout(&mutex_, kLook)) continue;
    const size_t resident = Resident();
    base = std::min(base, resident);
    const bool grown = resident > base + kKept;
    bool trim = grown && FreeOf(resident) > kKept;
    if (++looks == kLooksOfCheck) {
      looks = 0;
      const bool before = much;
      much = FreeOf(resident) > kKept;
      trim |= before && much;
    }
    if (trim) malloc_trim(kKept / 2);
    if (trim || grown) base = Resident();
  }
}

}  // namespace fncache::proxy
