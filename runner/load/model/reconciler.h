// SPDX-License-Identifier: Apache-2.0
// Reconciler: runs one reconcile after another as the runner does. It observes
// the composite's cluster, has the engine run the pipeline, writes the results,
// and reports to the observer and to the queue.
//
// Thread-safe. The work after an answer runs on the thread that delivers it.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_RECONCILER_H_
#define FNCACHE_RUNNER_LOAD_MODEL_RECONCILER_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "proto/function_v1.pb.h"
#include "runner/client/function_caller.h"
#include "runner/engine/composition.h"
#include "runner/engine/pipeline.h"
#include "runner/load/model/agenda.h"
#include "runner/load/model/composite_state.h"
#include "runner/load/model/model_options.h"
#include "runner/load/model/other_writers.h"
#include "runner/load/model/reconcile.h"
#include "runner/load/model/reconcile_queue.h"
#include "runner/load/model/reports.h"
#include "runner/load/model/templates.h"

namespace fncache::runner::load::model {

class Reconciler {
 public:
  // All must outlive it; `observer` may be null.
  Reconciler(const ModelOptions& options, const Templates& templates,
             std::vector<CompositeState>* composites, ReconcileQueue* queue,
             OtherWriters* writers, Agenda* agenda,
             client::FunctionCaller* caller, Clock* wall,
             SimulationObserver* observer)
      : options_(options),
        templates_(templates),
        composites_(*composites),
        queue_(*queue),
        writers_(*writers),
        agenda_(*agenda),
        caller_(caller),
        wall_(wall),
        observer_(observer) {}

  void Begin(const PipelineStart& start);
  // As Simulation::RunSettled.
  void RunSettled(int i, absl::Time due,
                  std::function<void(const PipelineEnd&)> done);

 private:
  struct Job;

  void Prepare(Job* job, apiextensions::fn::proto::v1::State* observed);
  std::shared_ptr<const engine::Composition> Seeded(
      const Template& of, const std::vector<Seed>& seeds) const;
  std::vector<Seed> SeedsOf(int i);
  std::shared_ptr<const engine::SharedObserved> Unpacked(int i);
  void Launch(std::shared_ptr<Job> job,
              std::shared_ptr<const engine::SharedObserved> observed,
              const std::vector<Seed>& seeds);
  void End(Job* job, engine::PipelineOutcome outcome);
  absl::Status Write(Job* job, engine::PipelineOutcome outcome);
  // Whether the answers differ from those before.
  void NoteAnswer(Job* job, CompositeState* composite, uint64_t digest) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(composite->mutex);

  const ModelOptions& options_;
  const Templates& templates_;
  std::vector<CompositeState>& composites_;
  ReconcileQueue& queue_;
  OtherWriters& writers_;
  Agenda& agenda_;
  client::FunctionCaller* const caller_;
  Clock* const wall_;
  SimulationObserver* const observer_;
  std::atomic<size_t> unpacked_bytes_{0};
};

// The state of a cluster that the steps observe.
apiextensions::fn::proto::v1::State ObservedIn(const SimulatedCluster& cluster);

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_RECONCILER_H_
