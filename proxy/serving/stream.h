// SPDX-License-Identifier: Apache-2.0
// The forward path: any call, unary or streaming, known or not, passed to the
// function as its bytes come, and back.
//
// A window each way is in flight: it is opened as the other side takes the
// bytes, so that a slow side slows the other down. What is held meanwhile is
// counted (transport/inflight.h); where all may hold no more, new calls are
// refused, and those that stand still are ended.
// Half-close, headers as soon as they come, trailers, status, deadline and
// cancellation pass both ways.
#ifndef FNCACHE_PROXY_SERVING_STREAM_H_
#define FNCACHE_PROXY_SERVING_STREAM_H_

#include "proxy/telemetry/instruments.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy::serving {

// Forwards `call`, from which nothing has been read, to the end, or refuses it
// with RESOURCE_EXHAUSTED for lack of room, and counts it;
// on its worker's thread. `upstream` and `instruments` outlive the call.
void ForwardStream(transport::IncomingCallPtr call,
                   transport::Upstream* upstream,
                   const telemetry::FunctionInstruments& instruments);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_STREAM_H_
