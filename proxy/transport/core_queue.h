// SPDX-License-Identifier: Apache-2.0
// Makes completion queues of any kind; gRPC's C++ interface makes only some.
#ifndef FNCACHE_PROXY_TRANSPORT_CORE_QUEUE_H_
#define FNCACHE_PROXY_TRANSPORT_CORE_QUEUE_H_

#include "grpc/grpc.h"
#include "grpcpp/completion_queue.h"

namespace fncache::proxy::transport {

// `polling`: whether those who wait in the queue read from sockets meanwhile
// (GRPC_CQ_DEFAULT_POLLING), but accept no connections (GRPC_CQ_NON_LISTENING),
// or only wait (GRPC_CQ_NON_POLLING).
grpc::CompletionQueue MakeQueue(grpc_cq_polling_type polling);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_CORE_QUEUE_H_
