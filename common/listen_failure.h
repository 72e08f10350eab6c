// SPDX-License-Identifier: Apache-2.0
// Why an address cannot be listened on: gRPC says only that it cannot.
#ifndef FNCACHE_COMMON_LISTEN_FAILURE_H_
#define FNCACHE_COMMON_LISTEN_FAILURE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fncache {

// Unavailable, `cannot listen on ADDRESS: why`, for an address HOST:PORT that a
// server has just failed to listen on. The reason is found out by binding a
// socket to the address, which is closed at once and never listens, so that no
// caller can reach it. May ask a name server. Thread-safe.
absl::Status ListenFailure(absl::string_view address);

}  // namespace fncache

#endif  // FNCACHE_COMMON_LISTEN_FAILURE_H_
