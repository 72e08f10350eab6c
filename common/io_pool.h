// IoPool: a few threads for work that blocks, with a bounded queue.
//
// The threads ask the scheduler for turns as batch work does (SCHED_BATCH):
// they do not take a serving thread off its core when they are woken.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_IO_POOL_H_
#define FNCACHE_COMMON_IO_POOL_H_

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "common/mutex.h"

namespace fncache {

class IoPool {
 public:
  // Called once each: with true on a thread of the pool, or with false where
  // it is not to be worked on any more because the pool is ending.
  using Work = absl::AnyInvocable<void(bool run)>;

  IoPool(int threads, size_t max_waiting);
  // What waits is called with false.
  ~IoPool();

  // False, and `*work` untouched, if too much waits already.
  bool Submit(Work* work);

  // Work that waits for a thread.
  size_t waiting() const;

 private:
  void Run();

  const size_t max_waiting_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Work> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_IO_POOL_H_
