// SPDX-License-Identifier: Apache-2.0
// The forward path: any call, unary or streaming, known or not, passed to the
// function message by message and back.
//
// One message is in flight each way: the next is read when the last was
// written, so that a slow side slows the other down and nothing piles up here.
// Half-close, headers as soon as they come, trailers, status, deadline and
// cancellation pass both ways.
#ifndef FNCACHE_PROXY_SERVING_STREAM_H_
#define FNCACHE_PROXY_SERVING_STREAM_H_

#include "proxy/telemetry/instruments.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy::serving {

// Forwards `call`, from which nothing has been read, to the end, and counts it;
// on its worker's thread. `upstream` and `instruments` outlive the call.
void ForwardStream(transport::IncomingCallPtr call,
                   transport::Upstream* upstream,
                   const telemetry::FunctionInstruments& instruments);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_STREAM_H_
