// SPDX-License-Identifier: Apache-2.0
// The findings of a probe, as text for people and as JSON.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_RUNNER_PROBE_REPORT_H_
#define FNCACHE_RUNNER_PROBE_REPORT_H_

#include <string>

#include "runner/probe/probe.h"
#include "runner/probe/variation.h"

namespace fncache::runner::probe {

struct ProbeReport {
  std::string function;
  std::string source;        // what request it was
  uint32_t trace_calls = 0;  // of which it is known what varied; 0 = no trace
  ProbeResult result;
};

std::string ReportText(const ProbeReport& report);
// `version` 1: read, unread, untried (lists of paths as masks spell them),
// read_if_added (of paths that no request has, of which `added` were tried),
// not_probed (names of resources), unstable (paths of the response), calls,
// complete, guesses_complete, masks, evidence, hint (HintFindings).
std::string ReportJson(const ProbeReport& report);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_REPORT_H_
