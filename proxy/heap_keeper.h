// SPDX-License-Identifier: Apache-2.0
// HeapKeeper: returns memory to the system that a burst of calls has left free.
// The C library keeps free memory below memory that is in use. Free memory that
// stays for two checks is not needed for further calls.
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
