// SPDX-License-Identifier: Apache-2.0
#include "proxy/heap_keeper.h"

#include <malloc.h>

#include "absl/time/time.h"

namespace fncache::proxy {
namespace {

constexpr absl::Duration kLook = absl::Seconds(5);
constexpr size_t kKept = 32 << 20;

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
  bool much = false;
  MutexLock lock(&mutex_);
  while (!stop_) {
    if (!stopped_.WaitWithTimeout(&mutex_, kLook)) continue;
    const bool before = much;
    much = mallinfo2().fordblks > kKept;
    if (before && much) malloc_trim(kKept / 2);
  }
}

}  // namespace fncache::proxy
