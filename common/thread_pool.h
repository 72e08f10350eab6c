// SPDX-License-Identifier: Apache-2.0
// ThreadPool: a few threads for work that would delay others.
//
// Some work blocks (look-ups on disk) or takes a while (keys of large requests,
// calls that cost CPU time). It runs here in the order of its arrival, while
// the serving threads continue. The pool's threads ask the scheduler for time
// as batch work (SCHED_BATCH), so that they do not preempt a serving thread
// when they are woken.
//
// Thread-safe. The owner of the pool ends it, after which no thread of it runs.
#ifndef FNCACHE_COMMON_THREAD_POOL_H_
#define FNCACHE_COMMON_THREAD_POOL_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <limits>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "common/mutex.h"

namespace fncache {

class ThreadPool {
 public:
  // Called exactly once, on a thread of the pool. `run` is false if the pool is
  // ending; the work can then be left undone.
  using Work = absl::AnyInvocable<void(bool run)>;

  // At most `max_waiting` pieces of work wait for a thread.
  explicit ThreadPool(int threads,
                      size_t max_waiting = std::numeric_limits<size_t>::max());
  // Ends the threads once they have called what waits.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // False, and `*work` untouched, if too much waits already. `is_long`: others
  // are better done elsewhere than to wait for it.
  bool Submit(Work* work, bool is_long = false);

  // All threads have long work, or will have before what is submitted now.
  bool taken_up() const {
    return long_.load(std::memory_order_relaxed) >=
           static_cast<int>(threads_.size());
  }

  // How much work waits for a thread.
  size_t waiting() const;

 private:
  struct Piece {
    Work work;
    bool is_long;
  };
  void Run();

  const size_t max_waiting_;
  std::atomic<int> long_{0};
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Piece> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_THREAD_POOL_H_
