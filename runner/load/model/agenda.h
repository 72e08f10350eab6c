// SPDX-License-Identifier: Apache-2.0
// Agenda: the simulation's later actions. The scheduler runs them, or simulated
// time does while all composites settle.
//
// Thread-safe. A scheduled action keeps the owner alive.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_AGENDA_H_
#define FNCACHE_RUNNER_LOAD_MODEL_AGENDA_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "runner/load/model/scheduler.h"

namespace fncache::runner::load::model {

class Agenda {
 public:
  explicit Agenda(Scheduler* scheduler)
      : scheduler_(scheduler), active_(scheduler) {}

  // Called once, before anything is scheduled.
  void SetOwner(const std::shared_ptr<void>& owner) { owner_ = owner; }
  std::shared_ptr<void> owner() const { return owner_.lock(); }

  absl::Time Now() const { return active_.load()->Now(); }
  void At(absl::Time time, std::function<void()> run) {
    active_.load()->At(time,
                       [owner = owner(), run = std::move(run)] { run(); });
  }

  // From now on all actions run by simulated time, which begins at `start`.
  SimulatedScheduler* Simulate(absl::Time start) {
    simulated_ = std::make_unique<SimulatedScheduler>(start);
    active_ = simulated_.get();
    return simulated_.get();
  }
  // Drops the actions left in simulated time, which keep the owner alive.
  void EndSimulated() {
    active_ = scheduler_;
    simulated_.reset();
  }
  bool simulates() const { return active_.load() != scheduler_; }
  Scheduler* scheduler() const { return scheduler_; }

 private:
  Scheduler* const scheduler_;
  std::weak_ptr<void> owner_;
  std::unique_ptr<SimulatedScheduler> simulated_;
  std::atomic<Scheduler*> active_;
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_AGENDA_H_
