// SPDX-License-Identifier: Apache-2.0
// Steps: work of a worker's that may take long, done in steps, of which each
// turn has a few: others' calls wait for no more than those, however many such
// tasks there are.
//
// Not thread-safe: on its worker's thread only.
#ifndef FNCACHE_PROXY_TRANSPORT_STEPS_H_
#define FNCACHE_PROXY_TRANSPORT_STEPS_H_

#include <cstddef>
#include <deque>

#include "absl/types/optional.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class Steps {
 public:
  class Task {
   public:
    // Does one step, and returns how much that was. Adds itself again if there
    // is more to do.
    virtual size_t OnStep() = 0;

   protected:
    ~Task() = default;
  };

  // Once a turn's steps come to `a_turn`, others are done in the next one.
  Steps(Worker* worker, size_t a_turn) : worker_(worker), a_turn_(a_turn) {}
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // Does a step of `task`, at once if nothing else is to be done before.
  void Add(Task* task);
  // Takes that back. Harmless for one that was not added.
  void Forget(Task* task);

 private:
  void Do(Task* task);
  void ArmTimer();

  Worker* const worker_;
  const size_t a_turn_;
  size_t done_ = 0;  // in this turn
  bool does_ = false;
  std::deque<Task*> tasks_;
  absl::optional<TimerId> timer_;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_STEPS_H_
