// SPDX-License-Identifier: Apache-2.0
// ReconcileQueue: when and why each composite reconciles. Events, timers and
// resyncs put it into the queue of its kind, whose workers take it. Its end
// sets the next timer, and is counted.
//
// Thread-safe. `begin` is called without a lock.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_RECONCILE_QUEUE_H_
#define FNCACHE_RUNNER_LOAD_MODEL_RECONCILE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "runner/load/model/agenda.h"
#include "runner/load/model/breaker.h"
#include "runner/load/model/model_options.h"
#include "runner/load/model/random.h"
#include "runner/load/model/reconcile.h"
#include "runner/load/model/reports.h"
#include "runner/load/model/templates.h"

namespace fncache::runner::load::model {

class ReconcileQueue {
 public:
  // References must outlive it. `composites`: all that may ever exist.
  ReconcileQueue(const ModelOptions& options, const Templates& templates,
                 int composites, Agenda* agenda,
                 std::function<void(const PipelineStart&)> begin);

  // Causes of reconciles. The composite exists from now on:
  void Create(int i);
  // Watch events of writes, each with its cost.
  void Events(int i, const std::vector<int>& costs);
  // An event of each object that is watched. False once stopped.
  bool Resync(int i);
  void Restart(int i);
  // The first timer of a settled composite, after a random fraction of its
  // wait.
  void StartTimer(int i);

  // Sets the tasks of a reconcile that begins: whether the breaker is closed,
  // and whether its answers are compared.
  void Prepare(Reconcile* reconcile) const;
  // The end of a reconcile: first the counters, which return how long after
  // its creation the composite is ready, if that is so for the first time.
  absl::optional<absl::Duration> Count(const Reconcile& reconcile);
  void End(const Reconcile& reconcile, const PipelineEnd& end);
  // A pipeline that no cause of the queue began.
  void BeginOther();
  void EndOther();

  void Stop();
  bool stopped() const;
  bool Idle() const;
  void WaitUntilIdle();

  // While all settle.
  void BeginSettling();
  void CountSettlingCall();
  // Another cause than the composite's own pipelines changed it.
  void NoteOtherCause(int i);
  // Runs the next due action, or waits for a reconcile in progress. False if
  // nothing is left until `end`.
  bool SettleStep(SimulatedScheduler* time, absl::Time end);
  // Fails with the first error if no pipeline succeeded.
  absl::StatusOr<Settled> EndSettling();

  Counters counters() const;
  Demand demand() const;
  Restless restless() const;
  static size_t BytesOfOne() { return sizeof(Composite); }

 private:
  struct Composite {
    bool exists = false;
    bool queued = false;
    bool running = false;
    bool again = false;  // an event came while it ran
    bool after_restart = false;
    bool ready = false;
    bool was_ready = false;      // once, or more often
    bool settled_ready = false;  // after settling
    bool unmarked = false;       // Counters::unmarked
    bool failed = false;         // the last pipeline
    absl::Time created;
    Trigger trigger = Trigger::kEvent;
    Trigger again_trigger = Trigger::kEvent;
    absl::Time due;
    uint64_t timer = 0;  // what was set before another number does not count
    int failures = 0;
    // While all settle: pipelines in a row that wrote, or failed, without any
    // other cause than the one before.
    int rounds = 0;
    // While all settle: pipelines that wrote or failed, whatever their cause.
    // At SettlingWrites() there is no further one.
    int settling_writes = 0;
    // Pipelines of the run whose desired state differs from the one before; -1
    // once one was equal, or another has written to the composite.
    int differing = 0;
    std::set<std::string> changing;  // in the pipelines that were compared
    size_t composed = 0;
    // Before jitter; 0 = for ever.
    absl::Duration wait = absl::ZeroDuration();
    Breaker breaker;
    SplitMix64 requeue;
  };

  // The workers of one kind of XR, and its waiting composites.
  struct Pool {
    int busy = 0;
    bool pump_is_due = false;
    std::deque<int> waiting;
  };

  Pool* PoolOf(int i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return &pools_[templates_.Of(i).kind];
  }
  void Enqueue(int i, Trigger trigger) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PumpSoon(Pool* pool, absl::Time when)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pump(size_t pool);
  void SetTimer(int i, absl::Duration after, Trigger trigger)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Admitted(Composite* composite, int cost)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Admit(int i, int cost, Trigger trigger)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (Admitted(&composites_[i], cost)) Enqueue(i, trigger);
  }
  // While all settle: no cause reconciles it any more.
  bool AtItsBound(const Composite& composite) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteAnswers(const Reconcile& reconcile, bool ok, Composite* composite)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Requeue(const Reconcile& reconcile, const PipelineEnd& end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ModelOptions& options_;
  const Templates& templates_;
  Agenda* const agenda_;
  const std::function<void(const PipelineStart&)> begin_;

  mutable Mutex mutex_;
  CondVar idle_;
  std::vector<Composite> composites_ ABSL_GUARDED_BY(mutex_);
  std::vector<Pool> pools_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool settles_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  Settled settled_ ABSL_GUARDED_BY(mutex_);
  absl::Status first_failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_RECONCILE_QUEUE_H_
