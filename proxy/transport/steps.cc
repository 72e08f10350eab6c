// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/steps.h"

#include <algorithm>

#include "absl/time/time.h"

namespace fncache::proxy::transport {

void Steps::Add(Task* task, size_t bytes, http2::Connection* connection) {
  Line& line = lines_[connection];
  if (line.queue.empty()) order_.push_back(connection);
  line.queue.push_back({task, bytes});
  line.bytes += bytes;
  Weigh(line, connection);
  const bool alone = order_.size() == 1 && line.queue.size() == 1;
  if (alone && !does_ && done_ < per_iteration_) DoNext();
  ArmTimer();
}

void Steps::Forget(Task* task, http2::Connection* connection) {
  const auto found = lines_.find(connection);
  if (found == lines_.end()) return;
  Line& line = found->second;
  const auto queued =
      std::find_if(line.queue.begin(), line.queue.end(),
                   [&](const Line::Queued& one) { return one.task == task; });
  if (queued == line.queue.end()) return;
  line.bytes -= queued->bytes;
  line.queue.erase(queued);
  Weigh(line, connection);
  if (!line.queue.empty()) return;
  lines_.erase(found);
  if (order_.front() == connection) of_front_ = 0;
  order_.erase(std::find(order_.begin(), order_.end(), connection));
}

void Steps::Weigh(Line& line, http2::Connection* connection) {
  // The first task is being done, so it does not wait.
  const size_t waits =
      line.queue.empty() ? 0 : line.bytes - line.queue.front().bytes;
  const bool is_long = waits > (line.is_long ? a_line_ / 2 : a_line_);
  if (is_long == line.is_long) return;
  line.is_long = is_long;
  on_long_(connection, is_long);
}

void Steps::DoNext() {
  http2::Connection* const connection = order_.front();
  Task* const task = lines_[connection].queue.front().task;
  does_ = true;
  const Task::Step step = task->OnStep();
  does_ = false;
  done_ += step.done;
  of_front_ += step.done;
  if (!step.more) Forget(task, connection);
  // The step may have removed other tasks, or those of this connection.
  if (order_.empty() || order_.front() != connection) return;
  if (of_front_ < per_iteration_) return;
  of_front_ = 0;
  order_.pop_front();
  order_.push_back(connection);
}

void Steps::ArmTimer() {
  if (timer_.has_value()) return;
  timer_ = loop_->After(absl::ZeroDuration(), [this] {
    timer_.reset();
    done_ = 0;
    while (!order_.empty() && done_ < per_iteration_) DoNext();
    if (!order_.empty()) ArmTimer();
  });
}

}  // namespace fncache::proxy::transport
