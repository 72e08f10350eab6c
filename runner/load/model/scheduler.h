// SPDX-License-Identifier: Apache-2.0
// Scheduler: a clock that also calls. The load's loop has one that waits for
// real time; SimulatedScheduler skips it.
//
// Thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_SCHEDULER_H_
#define FNCACHE_RUNNER_LOAD_MODEL_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace fncache::runner::load::model {

class Scheduler : public Clock {
 public:
  // Calls `run` once at `time`, or at once if that has passed, but never within
  // At. Equal times run in the order of At. The end drops all that is left.
  virtual void At(absl::Time time, std::function<void()> run) = 0;
};

// A clock whose time jumps from one due action to the next.
class SimulatedScheduler : public Scheduler {
 public:
  explicit SimulatedScheduler(absl::Time start) : now_(start) {}

  absl::Time Now() override {
    MutexLock lock(&mutex_);
    return now_;
  }
  void At(absl::Time time, std::function<void()> run) override;

  // The time of the next action; infinite future if there is none.
  absl::Time Next();
  // Runs all actions that are due up to `end`, one after the other. Then the
  // time is `end`.
  void RunUntil(absl::Time end);
  // Runs the next due action, at its time, and returns true; false if there is
  // none, or none until `end`.
  bool RunOne(absl::Time end);

 private:
  struct Entry {
    absl::Time time;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Entry& other) const {  // the largest comes first
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  uint64_t order_ ABSL_GUARDED_BY(mutex_) = 0;
  std::priority_queue<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_SCHEDULER_H_
