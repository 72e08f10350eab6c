// SPDX-License-Identifier: Apache-2.0
// The gRPC settings of every server that answers functions' callers: those of
// the daemon's listeners, and the bare server of the benchmark (bench/) that
// shows what gRPC itself costs under the same settings.
#ifndef FNCACHE_PROXY_TRANSPORT_CHANNEL_ARGUMENTS_H_
#define FNCACHE_PROXY_TRANSPORT_CHANNEL_ARGUMENTS_H_

#include "grpc/grpc.h"

namespace fncache::proxy::transport {

// The largest metadata that crosses, in either direction, in bytes.
inline constexpr int kMetadataLimit = 16 << 20;

// A listener is ready to accept so many calls at any time: enough for a burst
// to be matched before the first of them has come through the queue.
inline constexpr int kAcceptsPerWorker = 128;

struct ChannelArgument {
  const char* name;
  int value;
};

inline constexpr ChannelArgument kServerArguments[] = {
    {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1},
    {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1},
    {GRPC_ARG_MAX_METADATA_SIZE, kMetadataLimit},
    // Else a second server on this port starts, and the two share its traffic.
    {GRPC_ARG_ALLOW_REUSEPORT, 0},
    // A runner's keepalive is its own business.
    {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_CHANNEL_ARGUMENTS_H_
