// SPDX-License-Identifier: Apache-2.0
// PipelineWatcher: measures the pipelines and calls of the simulation, keeps
// the last failure of settling, and has calls traced.
//
// Thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_PIPELINE_WATCHER_H_
#define FNCACHE_RUNNER_LOAD_PIPELINE_WATCHER_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/latency_histogram.h"
#include "common/mutex.h"
#include "insight/trace/writer.h"
#include "runner/load/load_trace.h"
#include "runner/load/measure.h"
#include "runner/load/model/simulation.h"

namespace fncache::runner::load {

class PipelineWatcher : public model::SimulationObserver {
 public:
  // Pointers must outlive it. `writer` may be null.
  PipelineWatcher(Measure* measure, const model::Simulation* const* simulation,
                  insight::trace::TraceWriter* writer, absl::Duration patience)
      : measure_(measure), simulation_(simulation), patience_(patience) {
    if (writer != nullptr) trace_.emplace(writer);
  }

  void SetPhase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  // Counts pipelines that started in this time, or in an open loop were due in
  // it.
  void SetWindow(absl::Time from, absl::Time until) {
    from_ = absl::ToUnixNanos(from);
    until_ =
        until == absl::InfiniteFuture() ? INT64_MAX : absl::ToUnixNanos(until);
  }
  // The open and the closed loop count by the due time of a pipeline. The
  // reconciler's queue may be older than the measured phase.
  void CountByDue() { by_due_ = true; }

  // From now on pipelines that end are neither counted nor traced.
  void Discard() { discarding_ = true; }
  // Whether any call was answered.
  bool answered() const { return answered_; }
  // A call that is cancelled from now on had no answer `patience` after the
  // duration.
  void Cancelled() { cancelled_ = true; }

  // The last failure of settling, and the function it was of, which may be
  // empty. Without a failure, a function whose call was cancelled.
  struct Failure {
    std::string function;
    std::string why;
  };
  Failure failure() const {
    MutexLock lock(&failure_mutex_);
    return failure_;
  }

  void OnPipelineStart(const model::PipelineStart& /*start*/) override {}

  void OnCall(const model::PipelineStart& start,
              const engine::CallReport& report) override;

  void OnReady(int /*composite*/, absl::Duration since) override {
    MutexLock lock(&ready_mutex_);
    ready_.Add(absl::ToInt64Nanoseconds(since));
  }

  // Times from creation to ready, of composites that were created in the run.
  LatencyHistogram ready() const {
    MutexLock lock(&ready_mutex_);
    return ready_;
  }

  void OnPipelineEnd(const model::PipelineEnd& end) override;

 private:
  void NoteFailure(std::string function, const absl::Status& status);
  std::string PlainError(const absl::Status& status) const;

  bool Counts(const model::PipelineStart& start) const {
    const int64_t at = absl::ToUnixNanos(by_due_ ? start.due : start.started);
    return at >= from_ && at < until_;
  }

  Measure* const measure_;
  const model::Simulation* const* const simulation_;
  absl::optional<LoadTrace> trace_;
  const absl::Duration patience_;  // LoadOptions::patience
  std::atomic<Phase> phase_{Phase::kSettle};
  std::atomic<int64_t> from_{INT64_MAX};
  std::atomic<int64_t> until_{INT64_MAX};
  std::atomic<bool> discarding_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> answered_{false};
  mutable Mutex failure_mutex_;
  Failure failure_ ABSL_GUARDED_BY(failure_mutex_);
  bool by_due_ = false;
  mutable Mutex ready_mutex_;
  LatencyHistogram ready_ ABSL_GUARDED_BY(ready_mutex_);
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_PIPELINE_WATCHER_H_
