// SPDX-License-Identifier: Apache-2.0
// Reports of the simulation: the reconciles that its observer sees, and the
// figures that it is asked for.
//
// Plain data; the functions are pure and thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_REPORTS_H_
#define FNCACHE_RUNNER_LOAD_MODEL_REPORTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runner/engine/pipeline.h"
#include "runner/load/model/model_options.h"

namespace fncache::runner::load::model {

// The cause of a reconcile: the earliest of its reasons.
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
  // Writing the results failed: the functions had answered.
  bool write_failed = false;
  absl::Duration ttl = absl::ZeroDuration();  // the pipeline's; 0 = none
  int writes = 0;  // of the runner, that had an effect
};

// The driver's interface for measuring. Called from any thread, for one
// composite never by two at once, and never while a mutex of the simulation is
// locked.
class SimulationObserver {
 public:
  virtual ~SimulationObserver() = default;
  virtual void OnPipelineStart(const PipelineStart& start) = 0;
  virtual void OnCall(const PipelineStart& start,
                      const engine::CallReport& report) = 0;
  virtual void OnPipelineEnd(const PipelineEnd& end) = 0;
  // The composite is ready for the first time; `since` is the time since its
  // creation. Not called while all settle, where time is simulated.
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
  uint64_t deleted = 0;     // composed resources, by the runner
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
  // although only the composite itself had written, or that still had something
  // to write after SettlingWrites.
  uint64_t never = 0;
  // Names of the fields that kept changing (ChangedFields), the most frequent
  // first, kMostChanging at most.
  std::vector<std::string> changing;
};

// Pipelines in a row that write without a cause but themselves. After these a
// composite counts as one that never settles.
inline constexpr int kSettlingRounds = 30;
// Pipelines that write, whatever their cause, after which it also counts as one
// that never settles. A wave of resources takes about three pipelines for each
// write of their providers, so that tens of waves settle before. Without this
// limit, resources that come and go keep providers busy, whose writes are
// causes of their own.
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

// The rate at which composites come back automatically, at this time.
struct Demand {
  double pipelines = 0;  // a second, of timers: TTLs, poll intervals, resyncs
  double churn = 0;      // a second, of writes by others
  // The shortest and the longest wait of a composite. Zero: none comes back.
  absl::Duration shortest = absl::ZeroDuration();
  absl::Duration longest = absl::ZeroDuration();
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_REPORTS_H_
