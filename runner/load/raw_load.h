// SPDX-License-Identifier: Apache-2.0
// RunRawLoad: sends messages to one target repeatedly, unchanged, in an open or
// a closed loop. Only the answer's headers are parsed, so that one core drives
// as much load as the function accepts. bench/load uses it to send messages of
// its own to several targets, and checks the answers.
//
// One thread, the caller's; HTTP/2, in plaintext or over TLS.
#ifndef FNCACHE_RUNNER_LOAD_RAW_LOAD_H_
#define FNCACHE_RUNNER_LOAD_RAW_LOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "http2/slice.h"
#include "runner/load/measure.h"
#include "runner/load/schedule.h"

namespace fncache::runner::load {

// The message of a call, and the check of its answer. One object serves one
// call after the other, on the loop's thread.
class RawCall {
 public:
  virtual ~RawCall() = default;
  // A call begins. Returns its framed message; the connection takes the slices
  // over.
  virtual absl::Span<http2::Slice> Begin() = 0;
  virtual void OnBody(absl::string_view /*bytes*/) {}
  // The call ended. `error` is what HTTP/2 or gRPC reports, empty if the status
  // is 0. Returns the error that counts; empty = the answer is right.
  virtual std::string End(std::string error, Outcome /*outcome*/) {
    return error;
  }
};

struct RawOptions {
  // HOST:PORT; at least one. Connections use them round robin.
  std::vector<std::string> targets;
  std::vector<std::string> messages;  // sent round robin
  // Makes the sender of other messages than these; null = these.
  std::function<std::unique_ptr<RawCall>()> make_call;
  std::vector<std::pair<std::string, std::string>> metadata;  // names in lower
                                                              // case
  // tls.crt, tls.key and ca.crt as the runner has them; "" = plaintext.
  std::string tls_dir;
  int connections = 1;
  // Open loop; else `concurrency` calls at once, as many on each connection.
  Schedule* schedule = nullptr;
  int concurrency = 1;
  // Open loop: a call that finds no connection or `max_in_flight` waits, and
  // its latency counts that; else it is dropped.
  bool wait_when_full = false;
  // Closed loop by time: counts the calls that end in the duration, and then
  // waits for the others; else it counts those that also begin in it, and
  // cancels the others.
  bool steady = false;
  uint64_t total = 0;  // measured calls; 0 = until the time is over
  absl::Duration warmup;
  absl::Duration duration;
  uint64_t max_in_flight = 10000;
  absl::Duration timeout = absl::Minutes(1);  // of a call
  // Asked at least ten times a second; true ends the run.
  std::function<bool()> stop;
  // When the warm-up is over, before anything counts.
  std::function<void()> on_start;
  // A connection that was served is lost, other than by a GOAWAY; may be null.
  std::function<void(const std::string& why)> on_lost;
  // When the duration is over, before the wait for the last calls; may be null.
  std::function<void()> on_end;
};

// Unavailable if a target cannot be reached at the beginning. Starts and
// stops `measure`; a call counts as a pipeline of one call.
absl::Status RunRawLoad(const RawOptions& options, Measure* measure);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_RAW_LOAD_H_
