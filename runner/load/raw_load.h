// SPDX-License-Identifier: Apache-2.0
// RunRawLoad: sends messages to one target again and again, as they are, in an
// open or a closed loop. Nothing is parsed but the answer's headers, so that
// one core drives as much as the function takes.
//
// One thread, the caller's; HTTP/2, in plaintext or over TLS.
#ifndef FNCACHE_RUNNER_LOAD_RAW_LOAD_H_
#define FNCACHE_RUNNER_LOAD_RAW_LOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runner/load/measure.h"
#include "runner/load/schedule.h"

namespace fncache::runner::load {

struct RawOptions {
  std::string target;                 // HOST:PORT
  std::vector<std::string> messages;  // sent in turn; at least one
  std::vector<std::pair<std::string, std::string>> metadata;  // names in lower
                                                              // case
  // tls.crt, tls.key and ca.crt as the runner has them; "" = plaintext.
  std::string tls_dir;
  int connections = 1;
  // Open loop; else `concurrency` calls at once.
  Schedule* schedule = nullptr;
  int concurrency = 1;
  uint64_t total = 0;  // measured calls; 0 = until the time is over
  absl::Duration warmup;
  absl::Duration duration;
  uint64_t max_in_flight = 10000;
  absl::Duration timeout = absl::Minutes(1);  // of a call
  // Asked at least ten times a second; true ends the run.
  std::function<bool()> stop;
  // When the warm-up is over, before anything counts.
  std::function<void()> on_start;
};

// Unavailable if the target cannot be reached at the beginning. Starts and
// stops `measure`; a call counts as a pipeline of one call.
absl::Status RunRawLoad(const RawOptions& options, Measure* measure);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_RAW_LOAD_H_
