// SPDX-License-Identifier: Apache-2.0
#include "common/grpc_status.h"

#include <string>

namespace fncache {
namespace {

template <absl::StatusCode kOurs, grpc::StatusCode kTheirs>
constexpr bool kSame = static_cast<int>(kOurs) == static_cast<int>(kTheirs);

static_assert(kSame<absl::StatusCode::kOk, grpc::StatusCode::OK>);
static_assert(kSame<absl::StatusCode::kDeadlineExceeded,
                    grpc::StatusCode::DEADLINE_EXCEEDED>);
static_assert(kSame<absl::StatusCode::kUnauthenticated,
                    grpc::StatusCode::UNAUTHENTICATED>);

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

absl::Status FromGrpcCode(int code, absl::string_view message) {
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

}  // namespace fncache
