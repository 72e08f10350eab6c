// SPDX-License-Identifier: Apache-2.0
#include "common/grpc_status.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"

namespace fncache {
namespace {

template <absl::StatusCode kOurs, grpc::StatusCode kTheirs>
constexpr bool kSame = static_cast<int>(kOurs) == static_cast<int>(kTheirs);

static_assert(kSame<absl::StatusCode::kOk, grpc::StatusCode::OK>);
static_assert(kSame<absl::StatusCode::kDeadlineExceeded,
                    grpc::StatusCode::DEADLINE_EXCEEDED>);
static_assert(kSame<absl::StatusCode::kUnauthenticated,
                    grpc::StatusCode::UNAUTHENTICATED>);

constexpr std::array<const char*, 17> kNames = {"OK",
                                                "Canceled",
                                                "Unknown",
                                                "InvalidArgument",
                                                "DeadlineExceeded",
                                                "NotFound",
                                                "AlreadyExists",
                                                "PermissionDenied",
                                                "ResourceExhausted",
                                                "FailedPrecondition",
                                                "Aborted",
                                                "OutOfRange",
                                                "Unimplemented",
                                                "Internal",
                                                "Unavailable",
                                                "DataLoss",
                                                "Unauthenticated"};

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

absl::Status FromGrpcCode(int code, absl::string_view message) {
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

std::string GoCodeName(int code) {
  if (code < 0 || code >= static_cast<int>(kNames.size())) {
    return absl::StrCat("Code(", code, ")");
  }
  return kNames[code];
}

}  // namespace fncache
