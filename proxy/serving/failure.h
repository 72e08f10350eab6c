// SPDX-License-Identifier: Apache-2.0
// Decides which errors an old answer replaces (stale_if_error), and logs them.
// They are errors of a function or of the path to it. A refusal of fncache's
// own is one of the path: no capacity is left to call the function
// (inflight.bytes).
#ifndef FNCACHE_PROXY_SERVING_FAILURE_H_
#define FNCACHE_PROXY_SERVING_FAILURE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/log_limiter.h"
#include "grpcpp/support/status.h"
#include "proxy/telemetry/labels.h"
#include "proxy/transport/refusal.h"

namespace fncache::proxy::serving {

// True if the function, or the path to it, is broken or overloaded: the status
// says nothing about the request. Any other status does, be it about the
// request (INVALID_ARGUMENT), its caller (PERMISSION_DENIED) or the function
// itself (UNIMPLEMENTED). With CANCELLED one side has left.
bool IsFailure(int code);

// Logs that a function failed where no caller could see it, or that a caller
// was refused. One line a minute of each kind. Thread-safe.
class FailureLog {
 public:
  explicit FailureLog(const std::string& function) : function_(function) {}

  // A caller got an old answer instead of this status.
  void ServedOver(const grpc::Status& status);
  // A refresh failed, so its entry is still past its time.
  void RefreshFailed(const grpc::Status& status);
  // An abandoned call brought no answer to store.
  void AbandonedFailed(const grpc::Status& status);
  // A request was refused before it was complete, or a relayed call was.
  void Refused(transport::Refusal why, const grpc::Status& status);
  // A miss was refused, or its answer was.
  void MissRefused(const grpc::Status& status);
  // An answer was passed on that a gRPC library may read as an error.
  void AnswerInDoubt(absl::string_view why);
  // The hint of a response cannot be used. Once for each function.
  void HintRefused(const absl::Status& why) const;

 private:
  void Tell(LogLimiter* lines, absl::string_view what,
            const grpc::Status& status);

  const std::string function_;
  LogLimiter served_over_{absl::Minutes(1)};
  LogLimiter refreshes_{absl::Minutes(1)};
  LogLimiter abandoned_{absl::Minutes(1)};
  LogLimiter misses_{absl::Minutes(1)};
  LogLimiter doubts_{absl::Minutes(1)};
  struct Lines : LogLimiter {
    Lines() : LogLimiter(absl::Minutes(1)) {}
  };
  Lines refusals_[telemetry::kRefusals];
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_FAILURE_H_
