// SPDX-License-Identifier: Apache-2.0
// The words for a failed call. One form is that of the reference runner, which
// is written in Go, since people find it in logs and tests compare it. The
// other is plain.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_CLIENT_RPC_ERROR_H_
#define FNCACHE_RUNNER_CLIENT_RPC_ERROR_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace fncache::runner::client {

// `rpc error: code = Internal desc = boom`, under the call's code, which is
// named as Go names it: `Canceled`, `DeadlineExceeded`; `Code(99)` where it
// knows none.
absl::Status RpcError(int code, absl::string_view description);

// The same for a call's status, which is not OK. Errors of this side's gRPC get
// the words of Go: deadline exceeded, call cancelled, answer too large. A
// complaint about a message of `request_size` bytes is the function's own and
// stays.
absl::Status RpcError(const grpc::Status& status, size_t request_size);

// Whether this side's gRPC says that the deadline has passed.
bool IsLocalDeadline(const grpc::Status& status);

// The error of a call whose deadline passed before it had a connection: it
// names the obstacle. `probe` is the status of a call that did not wait.
absl::Status NotConnectedError(const grpc::Status& probe);

// Whether a call with this status, one of those above, never had a connection
// to a function: neither here nor, as its status says, behind fncache serve.
bool NeverReachedAFunction(const absl::Status& status);

// One of the statuses above for readers who know neither gRPC nor Go: `no
// connection in time: connection refused`, `no answer in time`, `Internal:
// boom`. Any other status stays as it is.
std::string PlainRpcError(const absl::Status& status);

}  // namespace fncache::runner::client

#endif  // FNCACHE_RUNNER_CLIENT_RPC_ERROR_H_
