// SPDX-License-Identifier: Apache-2.0
// AnswerWorkers: threads that continue pipelines once an answer has arrived.
// The threads that receive answers do nothing else, so that a call's latency
// ends when its answer arrives. The time that answers wait here is the
// generator's own delay.
//
// Thread-safe. The destructor runs all queued work before it returns.
#ifndef FNCACHE_RUNNER_LOAD_ANSWER_WORKERS_H_
#define FNCACHE_RUNNER_LOAD_ANSWER_WORKERS_H_

#include <cstdint>
#include <functional>

#include "common/thread_pool.h"

namespace fncache::runner::load {

class AnswerWorkers {
 public:
  // `on_wait` gets the time that each piece of work waited for a thread, in
  // nanoseconds, from that thread.
  AnswerWorkers(int threads, std::function<void(int64_t)> on_wait);

  void Run(std::function<void()> work);

 private:
  const std::function<void(int64_t)> on_wait_;
  ThreadPool pool_;  // last: its threads use the rest
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_ANSWER_WORKERS_H_
