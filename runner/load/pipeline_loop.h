// SPDX-License-Identifier: Apache-2.0
// PipelineLoop: starts and ends the pipelines of one run, in one of three ways.
// The reconciler's model starts them itself, a schedule makes an open loop, and
// a number of pipelines at once a closed one. It divides the run into warm-up,
// measured phase and drain.
//
// Blocks. Each object runs one of the three, once.
#ifndef FNCACHE_RUNNER_LOAD_PIPELINE_LOOP_H_
#define FNCACHE_RUNNER_LOAD_PIPELINE_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "runner/load/callers.h"
#include "runner/load/measure.h"
#include "runner/load/model/simulation.h"
#include "runner/load/options.h"
#include "runner/load/pipeline_hooks.h"
#include "runner/load/pipeline_watcher.h"
#include "runner/load/results.h"
#include "runner/load/schedule.h"

namespace fncache::runner::load {

class PipelineLoop {
 public:
  // References and pointers must outlive it. `abandon` ends pipelines in
  // progress, which are not counted then; `cancel` ends them, too, and they
  // count.
  PipelineLoop(const LoadOptions& options, const PipelineLoadHooks& hooks,
               model::Simulation* simulation, PipelineWatcher* watcher,
               Clock* clock, Measure* measure, Reach* reach,
               std::function<void()> abandon, std::function<void()> cancel)
      : options_(options),
        hooks_(hooks),
        abandon_(std::move(abandon)),
        cancel_(std::move(cancel)),
        reach_(reach),
        simulation_(simulation),
        watcher_(watcher),
        clock_(clock),
        measure_(measure) {}

  // Functions that were not reached when the run was over. Pipelines that
  // waited for them were cancelled.
  const std::vector<UnreachedResults>& unreached() const { return unreached_; }

  void ByModel();
  void ByConcurrency();
  void BySchedule();

 private:
  // The open loop's starts. Several threads make them, one after the other.
  struct Starts {
    Starts(Schedule when, int64_t now, const LoadOptions& options)
        : began(now),
          from(now + absl::ToInt64Nanoseconds(options.warmup)),
          until(options.duration == absl::InfiniteDuration()
                    ? INT64_MAX
                    : from + absl::ToInt64Nanoseconds(options.duration)),
          schedule(std::move(when)) {}

    const int64_t began;
    const int64_t from;  // what is due from then on counts
    const int64_t until;
    absl::Time time;  // where nanoseconds are counted from
    // When the last one that counts was started; never, where the time ends
    // the run.
    std::atomic<int64_t> all_started{INT64_MAX};

    Mutex mutex;  // held by the thread that waits for what is due next
    Schedule schedule ABSL_GUARDED_BY(mutex);
    uint64_t next ABSL_GUARDED_BY(mutex) = 0;
    uint64_t measured ABSL_GUARDED_BY(mutex) = 0;
  };

  // Waits until the next one is due; -1 if there is none.
  int64_t WaitForNext(Starts* starts);
  // A thread that starts a pipeline lets another thread wait meanwhile. So a
  // slow start does not delay the next one, and nothing is between the end of
  // the wait and the start.
  void StartAsDue(Starts* starts);
  // From now on it counts.
  void Measured();
  // Updates the timeline; returns whether the run must end.
  bool LookUp(int64_t now);
  // True if the run is to end before.
  bool WaitUntil(int64_t until);
  void Start(absl::Time due, std::function<void()> done);
  // Closed loop: one ends, the next starts. A pipeline that ends within
  // RunSettled must not nest the next one in it: a loop that runs on this
  // thread makes that start.
  void Next();
  void Ended();
  // Waits for pipelines in progress, unless the run must end, or no function
  // has ever answered.
  void Drain();

  const LoadOptions& options_;
  const PipelineLoadHooks& hooks_;
  const std::function<void()> abandon_;  // what is under way
  const std::function<void()> cancel_;   // the same, which then counts
  Reach* const reach_;
  std::vector<UnreachedResults> unreached_;
  model::Simulation* const simulation_;
  PipelineWatcher* const watcher_;
  Clock* const clock_;
  Measure* const measure_;
  int64_t looked_ = 0;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> begun_{0};
  std::atomic<bool> over_{false};
  Mutex mutex_;
  CondVar changed_;
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_PIPELINE_LOOP_H_
