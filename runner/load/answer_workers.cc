// SPDX-License-Identifier: Apache-2.0
#include "runner/load/answer_workers.h"

#include <utility>

#include "runner/load/measure.h"

namespace fncache::runner::load {

AnswerWorkers::AnswerWorkers(int threads, std::function<void(int64_t)> on_wait)
    : on_wait_(std::move(on_wait)), pool_(threads) {}

void AnswerWorkers::Run(std::function<void()> work) {
  ThreadPool::Work run = [this, work = std::move(work),
                          arrived = MonotonicNanos()](bool /*run*/) {
    on_wait_(MonotonicNanos() - arrived);
    work();
  };
  // A pool without a limit refuses work only while it ends. Then no client is
  // left whose answers could arrive.
  pool_.Submit(&run);
}

}  // namespace fncache::runner::load
