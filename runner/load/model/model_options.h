// SPDX-License-Identifier: Apache-2.0
// Options of the simulation: composites, the runner, the writes of others, and
// events of a scenario.
//
// Plain data and pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_MODEL_OPTIONS_H_
#define FNCACHE_RUNNER_LOAD_MODEL_MODEL_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runner/load/model/provider_status.h"

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

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_MODEL_OPTIONS_H_
