// SPDX-License-Identifier: Apache-2.0
// Simulation: N composite resources, each in a simulated cluster of its own,
// and the runner that reconciles them, as PROTOCOL.md ("When the runner
// reconciles") describes it. The pipelines are the engine's and call real
// functions. All else is simulated: API servers, providers, people who write.
//
// Flow: construct, then for the starts kSteady and kCold Settle(), then
// Start(), then Stop(). Without Start(), RunSettled() runs single pipelines for
// the open and the closed loop.
//
// Thread-safe. It has no threads of its own. Due actions run on the Scheduler's
// threads, and the work after an answer runs on the thread that delivers it.
// The seed determines everything if the functions answer within Call.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_SIMULATION_H_
#define FNCACHE_RUNNER_LOAD_MODEL_SIMULATION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/client/function_caller.h"
#include "runner/engine/engine.h"
#include "runner/load/model/model_options.h"
#include "runner/load/model/reports.h"
#include "runner/load/model/scheduler.h"

namespace fncache::runner::load::model {

class Simulation {
 public:
  // Objects that are passed by pointer must outlive the simulation. `templates`
  // (at least one) are used round robin: copy i has the name NAME-%06d, its own
  // uid and its own cluster. Their `observed` are ignored, since composed
  // resources come from the pipelines. `wall` is the clock for the functions'
  // deadlines. `scheduler` is the clock of the model, and usually shows the
  // same time. `observer` may be null.
  Simulation(ModelOptions options, std::vector<engine::EngineInput> templates,
             client::FunctionCaller* caller, Scheduler* scheduler, Clock* wall,
             SimulationObserver* observer);
  // Waits for the running pipelines.
  ~Simulation();

  // Creates all composites and lets them settle by real pipelines in simulated
  // time. The time jumps to the next due action when nothing is in flight; it
  // ends before the scheduler's time begins. Blocks. Not for kCreate, but for
  // RunSettled. Composites that never settle are left as they are. An error if
  // none could be settled, with the first failure. `cancelled` (may be null) is
  // called between pipelines.
  absl::StatusOr<Settled> Settle(const std::function<bool()>& cancelled);

  // Begins: from now on the scheduler runs due actions.
  void Start();
  // Starts no more pipelines. Running ones continue; Idle() says when they have
  // ended.
  void Stop();
  bool Idle() const;
  // Blocks until Idle().
  void WaitUntilIdle();

  // Runs the pipeline of a settled composite once, changes nothing, and calls
  // `done` after its OnPipelineEnd. Any number at once, also of one composite.
  void RunSettled(int composite, absl::Time due,
                  std::function<void(const PipelineEnd&)> done);

  // For tests and scenarios of the driver: as if the runner was restarted.
  void Restart();
  // A write to a required resource: reconciles the composites whose last
  // pipeline's selectors take the object.
  void TouchRequired(const google::protobuf::Struct& object);

  Counters counters() const;
  Demand demand() const;
  Restless restless() const;
  int composites() const;
  // NAMESPACE/NAME, or the name.
  std::string NameOf(int composite) const;
  // The state that the steps would observe now. For tests.
  apiextensions::fn::proto::v1::State Observe(int composite) const;
  // Bytes of the composites' clusters. For tests.
  size_t MemoryBytes() const;

 private:
  class Impl;
  // Scheduled actions and pipelines in flight share it.
  std::shared_ptr<Impl> impl_;
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_SIMULATION_H_
