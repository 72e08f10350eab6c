// SPDX-License-Identifier: Apache-2.0
#include "common/grpc_log.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/log_limiter.h"
#include "grpc/support/log.h"

namespace fncache {
namespace {

// Whether gRPC aborts next: a failed GPR_ASSERT, or code that cannot be
// reached.
bool IsLastWords(absl::string_view message) {
  return absl::StartsWith(message, "assertion failed") ||
         absl::StartsWith(message, "UNREACHABLE CODE");
}

// Whether another module reports the error: common/handshake_failure and
// common/listen_failure.
bool IsSaidElsewhere(absl::string_view file) {
  return absl::EndsWith(file, "/ssl_transport_security.cc") ||
         absl::EndsWith(file, "/chttp2_server.cc");
}

// gRPC's words when it stops accepting.
bool IsListenersEnd(absl::string_view message) {
  return absl::StartsWith(message, "Failed accept");
}

std::atomic<void (*)()> listeners_end{nullptr};

LogLimiter& ErrorLines() {
  // Never destroyed: gRPC's threads may outlive main.
  static auto* const lines = new LogLimiter(absl::Seconds(1));
  return *lines;
}

void LogForGrpc(gpr_log_func_args* args) {
  std::vector<LogField> fields = {
      {"from", "grpc"}, {"at", absl::StrCat(args->file, ":", args->line)}};
  if (IsLastWords(args->message)) {
    Log(LogLevel::kError, args->message, fields);
    return;
  }
  if (IsListenersEnd(args->message)) {
    if (const auto act = listeners_end.load()) {
      Log(LogLevel::kError, "no more connections are accepted",
          {{"error", args->message}});
      return act();
    }
  }
  uint64_t unlogged = 0;
  if (args->severity != GPR_LOG_SEVERITY_ERROR || IsSaidElsewhere(args->file) ||
      !ErrorLines().Allows(absl::Now(), &unlogged)) {
    Log(LogLevel::kDebug, args->message, fields);
    return;
  }
  if (unlogged > 0) fields.emplace_back("unlogged", unlogged);
  Log(LogLevel::kWarning, args->message, fields);
}

}  // namespace

void TakeGrpcLog(void (*listener_ended)()) {
  listeners_end = listener_ended;
  gpr_set_log_function(LogForGrpc);
  // Else gRPC logs nothing, not even last words, until it is used.
  gpr_log_verbosity_init();
}

}  // namespace fncache
