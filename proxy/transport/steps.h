// SPDX-License-Identifier: Apache-2.0
// Steps: long tasks of a worker, done in steps, a few in each event-loop
// iteration. So other calls wait only for those few, however many tasks there
// are. The tasks of one connection run one after the other. Connections are
// served round robin, each with the same amount of work. A connection that
// sends tasks faster than they are done gets a long line, which is reported.
//
// Not thread-safe: on its worker's thread only.
#ifndef FNCACHE_PROXY_TRANSPORT_STEPS_H_
#define FNCACHE_PROXY_TRANSPORT_STEPS_H_

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/types/optional.h"
#include "http2/connection.h"
#include "http2/loop.h"

namespace fncache::proxy::transport {

class Steps {
 public:
  class Task {
   public:
    struct Step {
      size_t done;  // the amount of work, in the unit of `per_iteration`
      bool more;    // there is more to do
    };
    // Does one step. The task may be gone when this returns, unless there is
    // more to do.
    virtual Step OnStep() = 0;

   protected:
    ~Task() = default;
  };

  // Called when a connection's line becomes long (true), or short again.
  using OnLong = absl::AnyInvocable<void(http2::Connection*, bool)>;

  // Once the steps of an event-loop iteration have done `per_iteration`, other
  // tasks wait for the next iteration. An iteration does at most twice that:
  // once as calls arrive, once for tasks that wait. A line becomes long when
  // tasks of more than `a_line` bytes wait, and short again at half of that.
  Steps(http2::Loop* loop, size_t per_iteration, size_t a_line, OnLong on_long)
      : loop_(loop),
        per_iteration_(per_iteration),
        a_line_(a_line),
        on_long_(std::move(on_long)) {}
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // Queues `task`, which counts as `bytes` of the connection's line. Its first
  // step runs at once if no other task waits.
  void Add(Task* task, size_t bytes, http2::Connection* connection);
  // Removes `task`. No effect if it was not added, or is done.
  void Forget(Task* task, http2::Connection* connection);

 private:
  struct Line {
    struct Queued {
      Task* task;
      size_t bytes;
    };
    std::deque<Queued> queue;
    size_t bytes = 0;
    bool is_long = false;
  };

  // Runs the next step. Precondition: a task waits.
  void DoNext();
  // Calls on_long_ if the line has become long or short.
  void Weigh(Line& line, http2::Connection* connection);
  void ArmTimer();

  http2::Loop* const loop_;
  const size_t per_iteration_;
  const size_t a_line_;
  OnLong on_long_;
  size_t done_ = 0;      // in this event-loop iteration
  size_t of_front_ = 0;  // for the connection at the front of order_
  bool does_ = false;
  absl::flat_hash_map<http2::Connection*, Line> lines_;
  std::deque<http2::Connection*> order_;  // of the connections that have tasks
  absl::optional<http2::TimerId> timer_;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_STEPS_H_
