// SPDX-License-Identifier: Apache-2.0
// Which errors of a function, or of the way to it, an old answer is served over
// (stale_if_error), and what the log says of it. Refusals of fncache's own are
// of the way: that there is no room to ask the function (inflight.bytes).
#ifndef FNCACHE_PROXY_SERVING_FAILURE_H_
#define FNCACHE_PROXY_SERVING_FAILURE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/log_limiter.h"
#include "grpcpp/support/status.h"
#include "proxy/telemetry/labels.h"
#include "proxy/transport/refusal.h"

namespace fncache::proxy::serving {

// The function, or the way to it, is broken or overloaded: it has said nothing
// of the request. With any other status it has, be it about the request
// (INVALID_ARGUMENT), about who asks (PERMISSION_DENIED) or about itself
// (UNIMPLEMENTED); and with CANCELLED somebody has left.
bool IsFailure(int code);

// Says in the log that a function failed where no caller could see it, or that
// a caller was refused. One line a minute of each kind. Thread-safe.
class FailureLog {
 public:
  explicit FailureLog(const std::string& function) : function_(function) {}

  // A caller got an old answer in place of this status.
  void ServedOver(const grpc::Status& status);
  // An entry is still past its time.
  void RefreshFailed(const grpc::Status& status);
  // A call that went on without its callers brought nothing to keep.
  void AbandonedFailed(const grpc::Status& status);
  // A request was refused before it was there, or a relayed call.
  void Refused(transport::Refusal why, const grpc::Status& status);
  // A miss was, or its answer.
  void MissRefused(const grpc::Status& status);
  // An answer was passed on that some may take for an error.
  void AnswerInDoubt(absl::string_view why);

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
