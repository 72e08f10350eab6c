// SPDX-License-Identifier: Apache-2.0
#include "runner/load/real_scheduler.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace fncache::runner::load {

int StartThreads() {
  return static_cast<int>(
      std::min(16U, std::max(2U, std::thread::hardware_concurrency())));
}

void WakeOnTime() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  // The kernel's struct sched_attr, whose header does not go with glibc's.
  struct {
    uint32_t size = 48;
    uint32_t policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime = 100'000;  // nanoseconds, the least there is
    uint64_t deadline = 0;
    uint64_t period = 0;
  } attributes;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

RealScheduler::RealScheduler(Clock* clock, int threads,
                             std::function<void(int64_t)> on_lag)
    : clock_(clock), on_lag_(std::move(on_lag)) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

RealScheduler::~RealScheduler() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    vacant_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void RealScheduler::At(absl::Time time, std::function<void()> run) {
  MutexLock lock(&mutex_);
  const bool first = entries_.empty() || time < entries_.begin()->first.first;
  entries_.emplace(std::make_pair(time, order_++), std::move(run));
  if (first) changed_.Signal();
}

void RealScheduler::Work() {
  WakeOnTime();
  for (;;) {
    std::function<void()> run;
    int64_t lag = 0;
    {
      MutexLock lock(&mutex_);
      for (;;) {
        if (stopping_) return;
        if (waiting_) {
          vacant_.Wait(&mutex_);
          continue;
        }
        const absl::Duration wait =
            entries_.empty() ? absl::InfiniteDuration()
                             : entries_.begin()->first.first - clock_->Now();
        if (wait > absl::ZeroDuration()) {
          waiting_ = true;
          changed_.WaitWithTimeout(&mutex_, wait);
          waiting_ = false;
          continue;
        }
        lag = absl::ToInt64Nanoseconds(-wait);
        run = std::move(entries_.begin()->second);
        entries_.erase(entries_.begin());
        vacant_.Signal();
        break;
      }
    }
    if (on_lag_ != nullptr) on_lag_(lag);
    run();
  }
}

}  // namespace fncache::runner::load
