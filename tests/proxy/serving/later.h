// SPDX-License-Identifier: Apache-2.0
// Later: runs tasks on threads of its own, each after its delay: what a
// function that takes a while answers with. Tasks whose time has not come when
// it goes are dropped.
//
// Thread-safe.
#ifndef FNCACHE_TESTS_PROXY_SERVING_LATER_H_
#define FNCACHE_TESTS_PROXY_SERVING_LATER_H_

#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace fncache::proxy::serving {

class Later {
 public:
  explicit Later(int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { Work(); });
    }
  }
  ~Later() {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      changed_.SignalAll();
    }
    for (auto& thread : threads_) thread.join();
  }
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;

  void Run(absl::Duration delay, std::function<void()> task) {
    MutexLock lock(&mutex_);
    due_.emplace(absl::Now() + delay, std::move(task));
    changed_.Signal();
  }

 private:
  void Work() {
    while (true) {
      std::function<void()> next;
      {
        MutexLock lock(&mutex_);
        while (!stop_ && (due_.empty() || due_.begin()->first > absl::Now())) {
          if (due_.empty()) {
            changed_.Wait(&mutex_);
          } else {
            changed_.WaitWithTimeout(&mutex_,
                                     due_.begin()->first - absl::Now());
          }
        }
        if (stop_) return;
        next = std::move(due_.begin()->second);
        due_.erase(due_.begin());
      }
      next();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::multimap<absl::Time, std::function<void()>> due_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_TESTS_PROXY_SERVING_LATER_H_
