// SPDX-License-Identifier: Apache-2.0
// gRPC's own log lines, as ours.
#ifndef FNCACHE_COMMON_GRPC_LOG_H_
#define FNCACHE_COMMON_GRPC_LOG_H_

namespace fncache {

// From now on what gRPC logs comes out as lines of our log, or not at all:
// - the last words before gRPC ends the process, as errors;
// - its errors, as warnings, at most one a second, since peers can cause as
// many
//   as they like; those of handshakes and of listeners that cannot bind come
//   out elsewhere, in better words;
// - everything else at the debug level.
// Call it before gRPC is used.
void TakeGrpcLog();

}  // namespace fncache

#endif  // FNCACHE_COMMON_GRPC_LOG_H_
