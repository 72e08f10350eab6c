// SPDX-License-Identifier: Apache-2.0
// ThreadPool: a few threads for work that would delay others.
//
// Some work blocks (look-ups on disk) or takes a while (keys of large requests,
// calls that cost CPU time). It runs here in the order of its arrival, while
// the serving threads continue. The pool's threads ask the scheduler for time
// as batch work (SCHED_BATCH), so that they do not preempt a serving thread
// when they are woken.
//
// Short work needs few threads: more of them wake each other, and a core that
// changes threads for each piece of 10 us spends half its time on that. So a
// pool may have more threads than it uses at once. The others join in where
// work waits longer than kPatience: then what runs blocks, or is not short.
//
// Thread-safe. The owner of the pool ends it, after which no thread of it runs.
#ifndef FNCACHE_COMMON_THREAD_POOL_H_
#define FNCACHE_COMMON_THREAD_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace fncache {

class ThreadPool {
 public:
  // Called exactly once, on a thread of the pool. `run` is false if the pool is
  // ending; the work can then be left undone.
  using Work = absl::AnyInvocable<void(bool run)>;

  static constexpr absl::Duration kPatience = absl::Milliseconds(1);

  // At most `max_waiting` pieces of work wait for a thread. `at_once` threads
  // do short work, if that is fewer.
  explicit ThreadPool(int threads,
                      size_t max_waiting = std::numeric_limits<size_t>::max(),
                      int at_once = std::numeric_limits<int>::max());
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
  struct Idle {
    CondVar changed;
    bool called = false;
  };
  void Run();
  void Watch();
  void Call(size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_waiting_;
  const size_t spare_;  // threads that do no short work
  std::atomic<int> long_{0};
  mutable Mutex mutex_;
  CondVar watched_;
  std::deque<Piece> waiting_ ABSL_GUARDED_BY(mutex_);
  // Threads that none has called. The last to wait is the first to be called:
  // its stack is still in a cache.
  std::vector<Idle*> idle_ ABSL_GUARDED_BY(mutex_);
  // Pieces of work that have begun.
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  bool watching_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
  std::thread watch_;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_THREAD_POOL_H_
