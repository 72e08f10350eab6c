// SPDX-License-Identifier: Apache-2.0
// Converts statuses between abseil's form, which the code uses, and gRPC's,
// which is on the wire. Both number their codes as gRPC's protocol does.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_GRPC_STATUS_H_
#define FNCACHE_COMMON_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace fncache {

// The same code and message.
grpc::Status ToGrpcStatus(const absl::Status& status);

// A status with the code of a call that ended with `code`, which may be a
// number that is none of gRPC's.
absl::Status FromGrpcCode(int code, absl::string_view message);

// The name of a code as Go's gRPC spells it, such as `DeadlineExceeded`;
// `Code(99)` for a number that is none.
std::string GoCodeName(int code);

}  // namespace fncache

#endif  // FNCACHE_COMMON_GRPC_STATUS_H_
