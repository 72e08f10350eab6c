// SPDX-License-Identifier: Apache-2.0
// The forward path: any call, unary or streaming, known or not, is passed to
// the function as its bytes come, and back.
//
// At most one window of bytes is in flight in each direction. The window opens
// as the other side takes the bytes, so that a slow side slows the other down.
// The bytes that a call keeps are counted (limits/budget.h). At the limit
// new calls are refused, and calls that stall are ended.
//
// Half-close, headers as soon as they come, trailers, status, deadline and
// cancellation pass in both directions.
#ifndef FNCACHE_PROXY_SERVING_STREAM_H_
#define FNCACHE_PROXY_SERVING_STREAM_H_

#include "proxy/telemetry/instruments.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy::serving {

// Forwards `call`, from which nothing has been read, to its end, and counts it.
// Without free capacity it refuses the call with RESOURCE_EXHAUSTED. Call it on
// the worker's thread. `upstream` and `instruments` outlive the call.
void ForwardStream(transport::IncomingCallPtr call,
                   transport::Upstream* upstream,
                   const telemetry::FunctionInstruments& instruments);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_STREAM_H_
