// SPDX-License-Identifier: Apache-2.0
// FunctionServer: a gRPC server that speaks the function protocol.
//
// Serves RunFunction of v1 and v1beta1 (whose messages are the same bytes) and
// the standard health service, with messages of any size. A Responder makes the
// answers, after the set cost is spent. Every other method is UNIMPLEMENTED.
//
// Lifecycle: Start, then Stop once (or destroy, which stops at once).
// Thread-safe.
#ifndef FNCACHE_RUNNER_FUNCTION_SERVER_H_
#define FNCACHE_RUNNER_FUNCTION_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "runner/function/call_cost.h"
#include "runner/function/responder.h"

namespace fncache::runner::function {

struct FunctionServerOptions {
  // HOST:PORT; port 0 takes a free one. Never shared with another process.
  std::string listen;
  // Folder of tls.crt, tls.key and ca.crt (present: callers need a certificate
  // of it). Absent: plaintext.
  absl::optional<std::string> tls_dir;
  CallCost cost;
  // Fraction (0 to 1) of the calls that are answered with UNAVAILABLE. Which
  // ones depends on `seed` and the number of the call only.
  double fail_rate = 0;
  uint64_t seed = 1;
  // Logs a line for each call, before it is answered.
  bool log_calls = false;
};

struct CallCounts {
  uint64_t calls = 0;      // started, i.e. the function's runs
  uint64_t answered = 0;   // with status OK
  uint64_t failed = 0;     // with another status
  uint64_t cancelled = 0;  // by the caller or its deadline
};

class FunctionServer {
 public:
  // `responder` must outlive the server. Errors name what was wrong: the
  // address, the certificate file.
  static absl::StatusOr<std::unique_ptr<FunctionServer>> Start(
      const FunctionServerOptions& options, const Responder* responder);
  ~FunctionServer();

  // HOST:PORT with the real port.
  const std::string& address() const;
  CallCounts counts() const;

  // Stops accepting, lets calls in flight finish for `grace`, then cancels what
  // is left. Returns once all are done.
  void Stop(absl::Duration grace);

 private:
  struct Impl;
  explicit FunctionServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_SERVER_H_
