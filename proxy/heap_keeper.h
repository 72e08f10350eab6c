// SPDX-License-Identifier: Apache-2.0
// HeapKeeper: returns memory to the system that a burst of calls has left free.
// The C library keeps free memory below memory that is in use. Only resident
// memory counts, as only that can be returned:
// - More than 32 MiB that stay free for two checks, 5 s apart, are not needed
//   for further calls.
// - More than 32 MiB are returned at once where the process has grown by as
//   much. Then calls need memory of another kind (mappings of large blocks, or
//   small blocks), and the process would keep both.
//
// It has its own thread, which ends with it.
#ifndef FNCACHE_PROXY_HEAP_KEEPER_H_
#define FNCACHE_PROXY_HEAP_KEEPER_H_

#include <thread>

#include "common/mutex.h"

namespace fncache::proxy {

class HeapKeeper {
 public:
  HeapKeeper();
  ~HeapKeeper();

 private:
  void Run();

  Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_HEAP_KEEPER_H_
