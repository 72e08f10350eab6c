// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/failure.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "proxy/telemetry/labels.h"

namespace fncache::proxy::serving {
namespace {

// `unlogged`: the number of lines of this kind that were dropped before.
void Warn(absl::string_view what, std::vector<LogField> fields,
          uint64_t unlogged) {
  if (unlogged > 0) fields.emplace_back("unlogged", absl::StrCat(unlogged));
  Log(LogLevel::kWarning, what, fields);
}

}  // namespace

bool IsFailure(int code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::DATA_LOSS:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return true;
    default:
      return false;
  }
}

void FailureLog::ServedOver(const grpc::Status& status) {
  Tell(&served_over_, "answered with an old response instead of an error",
       status);
}

void FailureLog::RefreshFailed(const grpc::Status& status) {
  // A daemon that stops cancels its refreshes.
  if (status.error_code() == grpc::StatusCode::CANCELLED) return;
  Tell(&refreshes_,
       status.ok() ? "the function's answer to a refresh is not to be stored"
                   : "the function failed: a response could not be refreshed",
       status);
}

void FailureLog::AbandonedFailed(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::CANCELLED) return;
  Tell(&abandoned_,
       status.ok() ? "the function's answer to a call that its caller had left "
                     "is not to be stored"
                   : "the function failed: a call that its caller had left "
                     "brought no response",
       status);
}

void FailureLog::Refused(transport::Refusal why, const grpc::Status& status) {
  Tell(&refusals_[static_cast<size_t>(why)], "refused a call", status);
}

void FailureLog::MissRefused(const grpc::Status& status) {
  Tell(&misses_, "refused a call", status);
}

void FailureLog::AnswerInDoubt(absl::string_view why) {
  uint64_t unlogged = 0;
  if (!doubts_.Allows(absl::Now(), &unlogged)) return;
  Warn("the function's answer may be no success: it is passed on, and not kept",
       {{"function", function_}, {"why", std::string(why)}}, unlogged);
}

void FailureLog::HintRefused(const absl::Status& why) const {
  Warn(
      "a response's hint cannot be used: such responses are stored as without "
      "one, and counted",
      {{"function", function_}, {"why", std::string(why.message())}}, 0);
}

void FailureLog::Tell(LogLimiter* lines, absl::string_view what,
                      const grpc::Status& status) {
  uint64_t unlogged = 0;
  if (!lines->Allows(absl::Now(), &unlogged)) return;
  std::vector<LogField> fields = {{"function", function_}};
  if (!status.ok()) {
    fields.emplace_back("status",
                        telemetry::StatusCodeName(status.error_code()));
    constexpr size_t kMostWords = 200;
    fields.emplace_back("why", status.error_message().substr(0, kMostWords));
  }
  Warn(what, std::move(fields), unlogged);
}

}  // namespace fncache::proxy::serving
