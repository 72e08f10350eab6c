#include "common/grpc_log.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "grpc/support/log.h"

namespace fncache {
namespace {

void LogForGrpc(gpr_log_func_args* args) {
  // GPR_ASSERT's.
  const bool last = absl::StartsWith(args->message, "assertion failed");
  Log(last ? LogLevel::kError : LogLevel::kDebug, args->message,
      {{"from", "grpc"}, {"at", absl::StrCat(args->file, ":", args->line)}});
}

}  // namespace

void TakeGrpcLog() { gpr_set_log_function(LogForGrpc); }

}  // namespace fncache
