// SPDX-License-Identifier: Apache-2.0
// RealScheduler: the model's scheduler in real time.
//
// One of a few threads waits by an absolute time. It runs what is due itself,
// and meanwhile another one waits, so that a long action delays no other.
// Thread-safe; the destructor drops what is not due yet.
#ifndef FNCACHE_RUNNER_LOAD_REAL_SCHEDULER_H_
#define FNCACHE_RUNNER_LOAD_REAL_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"
#include "runner/load/model/scheduler.h"

namespace fncache::runner::load {

// How many threads start pipelines: one for each core, from 2 to 16.
int StartThreads();

// For a thread that waits for a time and then does little. Its sleeps end on
// time, and it asks for short time slices, for which the kernel (Linux 6.12)
// schedules it sooner. Requests that the kernel refuses are skipped.
void WakeOnTime();

class RealScheduler : public model::Scheduler {
 public:
  // `on_lag` gets the delay of each action, in nanoseconds, on the thread that
  // is about to run it.
  RealScheduler(Clock* clock, int threads, std::function<void(int64_t)> on_lag);
  ~RealScheduler() override;

  absl::Time Now() override { return clock_->Now(); }
  void At(absl::Time time, std::function<void()> run) override;

 private:
  void Work();

  Clock* const clock_;
  const std::function<void(int64_t)> on_lag_;
  Mutex mutex_;
  CondVar changed_;  // for the thread that waits for what is due
  CondVar vacant_;   // for those that wait to be that one
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t order_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> entries_
      ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_REAL_SCHEDULER_H_
