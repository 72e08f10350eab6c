// SPDX-License-Identifier: Apache-2.0
// The command line of `fncache load` before it is checked: its flags, their
// help, and the texts that were given. options.cc makes options of them.
#ifndef FNCACHE_RUNNER_LOAD_LOAD_LINE_H_
#define FNCACHE_RUNNER_LOAD_LOAD_LINE_H_

#include <string>
#include <vector>

#include "common/command_line.h"

namespace fncache::runner::load {

using Texts = std::vector<std::string>;

// The texts, which begin as the defaults.
struct Given {
  Texts requests, metadata, thresholds, find_max, churn, admin_urls;
  std::string composites = "1", start = "create", workers = "100";
  std::string reconcile_timeout = "2m", realtime = "on", poll_interval = "1m";
  std::string resync = "1h", breaker = "on", seed_requirements = "on";
  std::string ready_after = "5s", ready_writes = "3";
  std::string rate, stages, concurrency, connections = "1", duration = "1m";
  std::string total, warmup = "0s", seed = "1", max_in_flight = "10000";
  std::string json, html, junit, summary_markdown, csv, trace,
      trace_level = "paths", progress = "auto";
  std::string baseline, max_change = "10%", scenario, tls_dir;
  bool abort_on_fail = false, percentiles = false, help = false;
  Texts files;
};

// `given` gets the texts, and outlives the line.
CommandLine MakeLine(Given* given);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_LOAD_LINE_H_
