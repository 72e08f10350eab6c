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
// Call it before gRPC is used. `listener_ended` is called on gRPC's threads: at
// the first connection that it cannot accept, e.g. because there are too many
// open files, gRPC 1.51 lets a listener accept nothing more.
void TakeGrpcLog(void (*listener_ended)() = nullptr);

}  // namespace fncache

#endif  // FNCACHE_COMMON_GRPC_LOG_H_
