// SPDX-License-Identifier: Apache-2.0
// A scenario file of `fncache load`: the model's options as YAML, and the
// events during the run.
//
//   composites: 200          # any of ScenarioKeys(), as the flags take them
//   start: steady
//   churn: {noop: 60}        # an hour
//   status:                  # what providers write, besides the default fields
//   - {field: atProvider.vpcId, when: ready, value: id, kind: VPC}
//   - {field: atProvider.lastSync, when: heartbeat, value: time}
//   - {field: atProvider.phase, when: first, text: pending}
//   events:
//   - at: 30s                # from the beginning, the warm-up included
//     flapping: {for: 1m, per-second: 10, share: 0.5}
//   - at: 45s
//     upgrade: {function: function-a, target: 127.0.0.1:9445}
//   - at: 1m
//     burst: {composites: 50}
//   - at: 90s
//     restart: {}
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_SCENARIO_H_
#define FNCACHE_RUNNER_LOAD_SCENARIO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runner/load/model/provider_status.h"
#include "runner/load/model/simulation.h"

namespace fncache::runner::load {

// From the event on, calls of `function` go to `target`, the address of the new
// version. Calls in progress end at the old one.
struct FunctionUpgrade {
  size_t event = 0;  // its index among the scenario's
  std::string function;
  std::string target;    // HOST:PORT
  std::string location;  // FILE:LINE, for messages
};

struct Scenario {
  // An option in the file, with the text of its value, which is checked like
  // the flag of that name.
  struct Option {
    std::string key;  // of ScenarioKeys(), or churn, once for each kind
    std::string text;
    std::string location;  // FILE:LINE
  };
  std::vector<Option> options;
  std::vector<model::StatusField> status;
  std::vector<model::ScenarioEvent> events;  // in the order of the file
  std::vector<std::string> event_locations;
  std::vector<FunctionUpgrade> upgrades;
};

// The options that have one value: names of flags without their dashes.
const std::vector<std::string>& ScenarioKeys();

// InvalidArgument, on one line, is `NAME:LINE: why` and names the key and the
// accepted values.
absl::StatusOr<Scenario> ParseScenario(absl::string_view text,
                                       absl::string_view name);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_SCENARIO_H_
