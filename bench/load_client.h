// SPDX-License-Identifier: Apache-2.0
// LoadClient: makes calls to a server for a while and says what they took.
//
// Closed loop: so many calls at once on every connection, the next one begun
// when one has ended. Open loop: calls begin by a clock, whatever the server
// does; a call's latency counts from the moment at which it was meant to begin,
// also where the client held it back because too many were outstanding
// (corrected for coordinated omission).
//
// A run has a warm-up, a measured window and a drain. In closed loop the window
// counts the calls that end in it, in open loop those meant to begin in it,
// however late they end. CPU time of this process and of the servers is read at
// the window's two ends.
//
// One thread, and http2's client on it. The first failures are kept in
// words; after kTooManyErrors of them the run ends early. Used once.
#ifndef FNCACHE_BENCH_LOAD_CLIENT_H_
#define FNCACHE_BENCH_LOAD_CLIENT_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/answer_check.h"
#include "bench/load_workload.h"
#include "common/latency_histogram.h"
#include "common/method.h"

namespace fncache::bench {

inline constexpr uint64_t kTooManyErrors = 100;

struct LoadOptions {
  // HOST:PORT; connections are spread over them in turn. At least one.
  std::vector<std::string> targets;
  // The method, /package.Service/Method.
  std::string path = kRunFunctionV1;
  // More headers of every request, names in lower case.
  std::vector<std::pair<std::string, std::string>> headers;
  size_t connections = 1;
  // Closed loop: calls at once on each connection.
  size_t streams = 1;
  // Open loop where above 0: calls per second in all.
  double rate = 0;
  // Open loop: calls outstanding at most; the others are held back.
  size_t max_outstanding = 1000;
  // The measured window: until that many calls have ended (have begun, in open
  // loop), or, where that is 0, for that long.
  uint64_t calls = 0;
  absl::Duration duration = absl::Seconds(5);
  absl::Duration warmup = absl::ZeroDuration();
  // How long calls may go without any answer before the run is given up.
  absl::Duration patience = absl::Seconds(20);
  // Which keys: see KeyPicker.
  uint64_t first_key = 0;
  uint64_t keys = 64;
  bool random_keys = true;
  uint64_t seed = 1;
  // Of how many answers one is checked byte for byte; the first 64 all are.
  uint64_t check_every = 64;
  Expectation expected;
  std::vector<pid_t> server_pids;
};

struct LoadResult {
  uint64_t calls = 0;   // in the window, errors not counted
  uint64_t begun = 0;   // in the whole run
  uint64_t errors = 0;  // in the whole run
  std::map<std::string, uint64_t> messages;  // of errors, how often each
  absl::Duration window;
  LatencyHistogram latency;
  // Of the calls in the window.
  std::array<uint64_t, kCacheStatuses> cache_statuses = {};
  uint64_t stored = 0;
  uint64_t collapsed = 0;
  // In the window, frames included.
  uint64_t bytes_received = 0;
  uint64_t bytes_sent = 0;
  // Of each of server_pids, and of this process, in the window.
  std::vector<int64_t> server_cpu_ns;
  int64_t client_cpu_ns = 0;
  // Connections that the server asked to be replaced.
  uint64_t reconnects = 0;
  // Open loop: how late the latest call began, and the most that were
  // outstanding.
  absl::Duration latest_begin;
  size_t most_outstanding = 0;
};

// Runs a load of `workload`. Errors of calls are in the result; a status means
// that there was no run (no connection, no such process).
absl::StatusOr<LoadResult> RunLoad(const LoadOptions& options,
                                   const Workload& workload);

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_LOAD_CLIENT_H_
