// SPDX-License-Identifier: Apache-2.0
// ReloadFigures: the state of the daemon's settings file, for metrics and the
// status page.
//
// A plain value.
#ifndef FNCACHE_PROXY_TELEMETRY_RELOAD_FIGURES_H_
#define FNCACHE_PROXY_TELEMETRY_RELOAD_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fncache::proxy::telemetry {

struct ReloadFigures {
  // The settings file; empty = there is none.
  std::string file;
  // Whether the file's text of the last reading is in force.
  bool last_successful = true;
  // When settings were last put in force, or were unchanged. At first it is the
  // start.
  absl::Time last_success;
  // Why the last reload failed, and since when reloads fail.
  std::string error;
  absl::Time failing_since;
  // Counts since the start.
  uint64_t successes = 0;
  uint64_t failures = 0;
  // Settings whose value in the file differs from the daemon's:
  // "function-a.listen: 0.0.0.0:9443 -> 0.0.0.0:9445".
  std::vector<std::string> restart;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_RELOAD_FIGURES_H_
