// SPDX-License-Identifier: Apache-2.0
// Steps: work of a worker's that may take long, done in steps, of which each
// turn has a few: others' calls wait for no more than those, however many such
// tasks there are. Those of one connection are done one after the other, and
// connections have their steps in turn.
//
// Not thread-safe: on its worker's thread only.
#ifndef FNCACHE_PROXY_TRANSPORT_STEPS_H_
#define FNCACHE_PROXY_TRANSPORT_STEPS_H_

#include <cstddef>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class Steps {
 public:
  class Task {
   public:
    struct Step {
      size_t done;  // how much it was
      bool more;    // there is more to do
    };
    // Does one step. The task may be gone when this returns, unless there is
    // more to do.
    virtual Step OnStep() = 0;

   protected:
    ~Task() = default;
  };

  // Once the steps of a turn come to `a_turn`, others wait for the next one. A
  // turn has that twice at most: as calls come, and of those that wait.
  Steps(Worker* worker, size_t a_turn) : worker_(worker), a_turn_(a_turn) {}
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // Does `task`, of `connection`: its first step at once, if nobody else's is
  // to be done before.
  void Add(Task* task, const void* connection);
  // Takes that back. Harmless for one that was not added, or is done.
  void Forget(Task* task, const void* connection);

 private:
  // The next step. Precondition: there is one.
  void DoNext();
  void ArmTimer();

  Worker* const worker_;
  const size_t a_turn_;
  size_t done_ = 0;  // in this turn
  bool does_ = false;
  absl::flat_hash_map<const void*, std::deque<Task*>> lines_;
  std::deque<const void*> order_;  // of the connections that have tasks
  absl::optional<TimerId> timer_;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_STEPS_H_
