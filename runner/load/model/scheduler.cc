// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/scheduler.h"

#include <algorithm>
#include <utility>

namespace fncache::runner::load::model {

void SimulatedScheduler::At(absl::Time time, std::function<void()> run) {
  MutexLock lock(&mutex_);
  entries_.push({std::max(time, now_), order_++, std::move(run)});
}

absl::Time SimulatedScheduler::Next() {
  MutexLock lock(&mutex_);
  return entries_.empty() ? absl::InfiniteFuture() : entries_.top().time;
}

bool SimulatedScheduler::RunOne(absl::Time end) {
  std::function<void()> run;
  {
    MutexLock lock(&mutex_);
    if (entries_.empty() || entries_.top().time > end) return false;
    now_ = entries_.top().time;
    run = entries_.top().run;
    entries_.pop();
  }
  run();
  return true;
}

void SimulatedScheduler::RunUntil(absl::Time end) {
  while (RunOne(end)) {
  }
  MutexLock lock(&mutex_);
  now_ = std::max(now_, end);
}

}  // namespace fncache::runner::load::model
