// SPDX-License-Identifier: Apache-2.0
// ReloadFigures: how the daemon's settings file stands, for metrics and status
// page.
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
  // Whether what the file held when it was last read is in force.
  bool last_successful = true;
  // When settings were last put in force, or found to be: the start, at first.
  absl::Time last_success;
  // Why the last reload failed, and since when they do.
  std::string error;
  absl::Time failing_since;
  // Since the start.
  uint64_t successes = 0;
  uint64_t failures = 0;
  // Settings that have another value now than the daemon runs with:
  // "function-a.listen: 0.0.0.0:9443 -> 0.0.0.0:9445".
  std::vector<std::string> restart;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_RELOAD_FIGURES_H_
