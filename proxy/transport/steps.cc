// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/steps.h"

#include <algorithm>

#include "absl/time/time.h"

namespace fncache::proxy::transport {

void Steps::Add(Task* task) {
  if (!does_ && tasks_.empty() && done_ < a_turn_) return Do(task);
  tasks_.push_back(task);
  ArmTimer();
}

void Steps::Forget(Task* task) {
  const auto found = std::find(tasks_.begin(), tasks_.end(), task);
  if (found != tasks_.end()) tasks_.erase(found);
}

void Steps::Do(Task* task) {
  does_ = true;
  done_ += task->OnStep();
  does_ = false;
  ArmTimer();
}

void Steps::ArmTimer() {
  if (timer_.has_value()) return;
  timer_ = worker_->After(absl::ZeroDuration(), [this] {
    timer_.reset();
    done_ = 0;
    while (!tasks_.empty() && done_ < a_turn_) {
      Task* const task = tasks_.front();
      tasks_.pop_front();
      Do(task);
    }
  });
}

}  // namespace fncache::proxy::transport
