// SPDX-License-Identifier: Apache-2.0
// Steps: work of a worker's that may take long, done in steps, of which each
// turn has a few: others' calls wait for no more than those, however many such
// tasks there are. Those of one connection are done one after the other, and
// connections have their turn, each for as much as the others. One that sends
// them faster than they are done is held up.
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

  // A connection's line has become long, or is long no longer.
  using OnLong = absl::AnyInvocable<void(http2::Connection*, bool)>;

  // Once the steps of a turn come to `a_turn`, others wait for the next one. A
  // turn has that twice at most: as calls come, and of those that wait. A
  // connection has a long line while tasks of more than `a_line` bytes wait,
  // until half of that does.
  Steps(Worker* worker, size_t a_turn, size_t a_line, OnLong on_long)
      : worker_(worker),
        a_turn_(a_turn),
        a_line_(a_line),
        on_long_(std::move(on_long)) {}
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // Does `task`, which is `bytes` of the connection's: its first step at once,
  // if nobody else's is to be done before.
  void Add(Task* task, size_t bytes, http2::Connection* connection);
  // Takes that back. Harmless for one that was not added, or is done.
  void Forget(Task* task, http2::Connection* connection);

 private:
  struct Line {
    struct Place {
      Task* task;
      size_t bytes;
    };
    std::deque<Place> places;
    size_t bytes = 0;
    bool is_long = false;
  };

  // The next step. Precondition: there is one.
  void DoNext();
  // Tells whether the line is long, where that has changed.
  void Weigh(Line& line, http2::Connection* connection);
  void ArmTimer();

  Worker* const worker_;
  const size_t a_turn_;
  const size_t a_line_;
  OnLong on_long_;
  size_t done_ = 0;      // in this turn
  size_t of_front_ = 0;  // of the connection whose turn it is
  bool does_ = false;
  absl::flat_hash_map<http2::Connection*, Line> lines_;
  std::deque<http2::Connection*> order_;  // of the connections that have tasks
  absl::optional<TimerId> timer_;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_STEPS_H_
