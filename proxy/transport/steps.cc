// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/steps.h"

#include <algorithm>

#include "absl/time/time.h"

namespace fncache::proxy::transport {

void Steps::Add(Task* task, const void* connection) {
  std::deque<Task*>& line = lines_[connection];
  line.push_back(task);
  if (line.size() == 1) order_.push_back(connection);
  const bool alone = order_.size() == 1 && line.size() == 1;
  if (alone && !does_ && done_ < a_turn_) DoNext();
  ArmTimer();
}

void Steps::Forget(Task* task, const void* connection) {
  const auto line = lines_.find(connection);
  if (line == lines_.end()) return;
  std::deque<Task*>& tasks = line->second;
  const auto found = std::find(tasks.begin(), tasks.end(), task);
  if (found == tasks.end()) return;
  tasks.erase(found);
  if (!tasks.empty()) return;
  lines_.erase(line);
  order_.erase(std::find(order_.begin(), order_.end(), connection));
}

void Steps::DoNext() {
  const void* const connection = order_.front();
  Task* const task = lines_[connection].front();
  does_ = true;
  const Task::Step step = task->OnStep();
  does_ = false;
  done_ += step.done;
  if (!step.more) Forget(task, connection);
  // Whoever is next may have been forgotten meanwhile.
  if (order_.empty() || order_.front() != connection) return;
  order_.pop_front();
  order_.push_back(connection);
}

void Steps::ArmTimer() {
  if (timer_.has_value()) return;
  timer_ = worker_->After(absl::ZeroDuration(), [this] {
    timer_.reset();
    done_ = 0;
    while (!order_.empty() && done_ < a_turn_) DoNext();
    if (!order_.empty()) ArmTimer();
  });
}

}  // namespace fncache::proxy::transport
