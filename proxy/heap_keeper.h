// SPDX-License-Identifier: Apache-2.0
// HeapKeeper: gives memory back that a burst of calls has left free: the C
// library keeps what lies below something that is in use. Free memory that
// stays for two looks is not needed for the calls that come.
//
// It has a thread of its own, which ends with it.
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
