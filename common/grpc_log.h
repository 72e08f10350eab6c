// gRPC's own log lines, as ours.
#ifndef FNCACHE_COMMON_GRPC_LOG_H_
#define FNCACHE_COMMON_GRPC_LOG_H_

namespace fncache {

// From now on what gRPC logs goes to our log, at the debug level: it is for
// those who look for it, since gRPC's errors are, for the most part, what peers
// do, and any peer can cause as many as it likes. The last words before gRPC
// ends the process are errors. Call it before gRPC is used.
void TakeGrpcLog();

}  // namespace fncache

#endif  // FNCACHE_COMMON_GRPC_LOG_H_
