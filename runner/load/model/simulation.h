// SPDX-License-Identifier: Apache-2.0
// Simulation: N composite resources, each in a simulated cluster of its own,
// and the runner that reconciles them, as PROTOCOL.md ("When the runner
// reconciles") says it does. The pipelines are the engine's and call real
// functions; all else is simulated: API servers, providers, people who write.
//
// Flow: construct, then for the starts kSteady and kCold Settle(), then
// Start(), then Stop(). Without Start(), RunSettled() runs single pipelines for
// the open and the closed loop.
//
// Thread-safe. Nothing here has threads of its own: what is due runs where the
// Scheduler runs it, and what follows an answer runs on the thread that brought
// it. Determined by the seed where the functions answer within Call.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_SIMULATION_H_
#define FNCACHE_RUNNER_LOAD_MODEL_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "runner/client/function_caller.h"
#include "runner/engine/engine.h"
#include "runner/engine/pipeline.h"
#include "runner/load/model/provider_status.h"
#include "runner/load/model/scheduler.h"

namespace fncache::runner::load::model {

enum class StartFrom {
  kCreate,  // nothing exists; all are created at once
  kSteady,  // settled, with phases spread over what each waits for
  kCold,    // settled, all at once: the runner has just been restarted
};

// Writes by others, of each composite, by the hour. Their times follow from the
// seed and the composite's index alone.
struct Churn {
  double spec = 0;      // a field of the XR's spec
  double composed = 0;  // a heartbeat: ModelOptions::status says which fields
  double status = 0;    // a field of the XR's status
  double noop = 0;      // resourceVersion and a managedFields time only
};

// Something that happens while it runs. Times count from Start().
struct ScenarioEvent {
  enum class Kind {
    kFlapping,  // Synced of the first composed resource turns False and True,
                // again and again, and ends as True
    kUpgrade,   // of a function: `action` is called; nothing reconciles by it
    kBurst,     // `composites` new ones are created at once
    kRestart,   // of the runner
  };
  Kind kind = Kind::kRestart;
  absl::Duration at = absl::ZeroDuration();
  absl::Duration length = absl::ZeroDuration();  // kFlapping
  double share = 1;                              // kFlapping: of composites
  double rate = 1;               // kFlapping: flips a second, of each composite
  int composites = 0;            // kBurst
  std::function<void()> action;  // kUpgrade; may be null
};

struct ModelOptions {
  int composites = 1;  // from 1
  StartFrom start = StartFrom::kCreate;
  int workers = 100;  // of each kind of XR, from 1
  absl::Duration reconcile_timeout = absl::Minutes(2);
  bool realtime = true;
  absl::Duration poll_interval = absl::Minutes(1);
  absl::Duration resync = absl::Hours(1);  // infinite = never
  bool breaker = true;
  bool seed_requirements = true;
  absl::Duration ready_after = absl::Seconds(5);
  int ready_writes = 3;  // 0 = resources never become ready
  std::vector<StatusField> status = DefaultStatus();
  Churn churn;
  uint64_t seed = 1;
  std::vector<ScenarioEvent> events;
  // How long composites have to settle, in simulated time.
  absl::Duration settle_limit = absl::Minutes(50);
};

// InvalidArgument names the flag and the accepted range.
absl::Status Validate(const ModelOptions& options);

// What a reconcile was for: the earliest of its reasons.
enum class Trigger {
  kCreate,   // a new XR
  kEvent,    // a write, also one of the runner's own: an echo
  kTimer,    // TTL, poll interval
  kBackoff,  // after a failure, or unready without realtime
  kResync,
  kRestart,
  kDriver,  // RunSettled
};
const char* TriggerName(Trigger trigger);

struct PipelineStart {
  int composite = 0;
  Trigger trigger = Trigger::kEvent;
  absl::Time due;      // when it came into the queue
  absl::Time started;  // when a worker took it; both by the scheduler's clock
  bool settling = false;
};

struct PipelineEnd {
  PipelineStart start;
  absl::Time ended;
  absl::Status status;  // of functions, FATAL, and of writing what came of it
  bool fatal = false;
  // Writing what came of it failed: the functions had answered.
  bool write_failed = false;
  absl::Duration ttl = absl::ZeroDuration();  // the pipeline's; 0 = none
  int writes = 0;  // of the runner, that had an effect
};

// What the driver measures with. Called from any thread, for one composite
// never by two at once, and never with a lock of the simulation's held.
class SimulationObserver {
 public:
  virtual ~SimulationObserver() = default;
  virtual void OnPipelineStart(const PipelineStart& start) = 0;
  virtual void OnCall(const PipelineStart& start,
                      const engine::CallReport& report) = 0;
  virtual void OnPipelineEnd(const PipelineEnd& end) = 0;
  // The composite is ready for the first time, so long after its creation.
  // Not while all settle, where time is simulated.
  virtual void OnReady(int /*composite*/, absl::Duration /*since*/) {}
};

struct Counters {
  uint64_t composites = 0;  // that exist
  uint64_t ready = 0;       // whose Ready condition is True
  // Composites that were ready after settling and are not now, without those
  // that are unmarked.
  uint64_t lost_ready = 0;
  // Composites whose providers are done, and whose last pipeline marked neither
  // a resource nor the composite as ready or unready.
  uint64_t unmarked = 0;
  uint64_t settled_ok = 0;  // pipelines of settling that succeeded
  uint64_t requeues = 0;    // timers that were set
  uint64_t breaker_openings = 0;
  uint64_t events_dropped = 0;  // by breakers
  uint64_t in_flight = 0;       // reconciles that run
  uint64_t queued = 0;          // that wait for a worker
};

struct Settled {
  uint64_t pipelines = 0;
  uint64_t calls = 0;
  absl::Duration took = absl::ZeroDuration();  // real time
  absl::Duration simulated = absl::ZeroDuration();
  uint64_t ready = 0;  // when nothing was left to do
  // Composites of which kSettlingRounds pipelines in a row wrote something,
  // although nothing but the composite itself had written, or that still had
  // something to write after SettlingWrites.
  uint64_t never = 0;
  // Names of the fields that kept changing (ChangedFields), the most frequent
  // first, kMostChanging at most.
  std::vector<std::string> changing;
};

// Pipelines in a row that write without a cause but themselves, after which a
// composite counts as one that never settles.
inline constexpr int kSettlingRounds = 30;
// Pipelines that write, whatever their cause, after which it does, too. A wave
// of resources takes about three pipelines for each write of their providers,
// so that tens of waves settle before. Without it, resources that come and go
// keep providers busy, whose writes are causes of their own.
int SettlingWrites(const ModelOptions& options);
inline constexpr size_t kMostChanging = 3;

// With StartFrom::kCreate: composites of which every pipeline of the run wanted
// something else than the one before, kDiffering of them at least, although
// nothing but the composite and its providers wrote to it. A composition that
// settles answers the echo of its own writes as before.
struct Restless {
  uint64_t composites = 0;
  std::vector<std::string> changing;  // as Settled::changing
};
inline constexpr int kDiffering = 10;

// How often composites come back by themselves, as they are now.
struct Demand {
  double pipelines = 0;  // a second, of timers: TTLs, poll intervals, resyncs
  double churn = 0;      // a second, of writes by others
  // The shortest and the longest wait of a composite. Zero: none comes back.
  absl::Duration shortest = absl::ZeroDuration();
  absl::Duration longest = absl::ZeroDuration();
};

class Simulation {
 public:
  // What is given by pointer outlives the simulation. `templates` (at least
  // one) are dealt out in turn: copy i has the name NAME-%06d, its own uid and
  // its own cluster. Their `observed` are left aside, since composed resources
  // come of the pipelines. `wall` is what the functions' deadlines are read by;
  // `scheduler` is what the model lives by, and usually shows the same time.
  // `observer` may be null.
  Simulation(ModelOptions options, std::vector<engine::EngineInput> templates,
             client::FunctionCaller* caller, Scheduler* scheduler, Clock* wall,
             SimulationObserver* observer);
  // Waits for the pipelines that run.
  ~Simulation();

  // Creates all composites and lets them settle by real pipelines in simulated
  // time, which jumps to what is due next when nothing is in flight; it ends
  // before the scheduler's time begins. Blocks. Not for kCreate, but for
  // RunSettled. Composites that never settle are left as they are. An error if
  // none could be settled, with the first failure. `cancelled` (may be null) is
  // asked between pipelines.
  absl::StatusOr<Settled> Settle(const std::function<bool()>& cancelled);

  // Begins: what is due comes by the scheduler from now on.
  void Start();
  // Starts no more pipelines. Those that run go on; Idle() says when they have
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
  // What the steps would observe now. For tests.
  apiextensions::fn::proto::v1::State Observe(int composite) const;
  // Bytes that the composites' clusters hold. For tests.
  size_t HeldBytes() const;

 private:
  class Impl;
  // Shared with what is scheduled and what is in flight.
  std::shared_ptr<Impl> impl_;
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_SIMULATION_H_
