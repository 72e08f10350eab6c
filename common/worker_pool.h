// WorkerPool: a few threads that run tasks in the order of their arrival.
//
// For work that would hold up gRPC's own threads. Thread-safe. The destructor
// runs what was added before it and joins.
#ifndef FNCACHE_COMMON_WORKER_POOL_H_
#define FNCACHE_COMMON_WORKER_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "common/mutex.h"

namespace fncache {

class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Add(std::function<void()> task);

 private:
  void Work();

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_WORKER_POOL_H_
