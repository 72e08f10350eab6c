// SPDX-License-Identifier: Apache-2.0
// Events that a function's peers cause: callers that break a limit or the
// protocol, and a function that cannot be reached. Each is counted, and logged
// once a minute for each kind.
//
// The events may be called from any thread.
#ifndef FNCACHE_PROXY_PEER_EVENTS_H_
#define FNCACHE_PROXY_PEER_EVENTS_H_

#include <string>

#include "common/clock.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/transport/listener.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy {

// Those of its listener. What is given by pointer outlives them, here and
// below.
http2::ServerEvents ListenerEvents(
    const telemetry::FunctionInstruments* function);

// Sets those of its upstream, whose target is set.
void SetUpstreamEvents(const telemetry::FunctionInstruments* function,
                       Clock* clock, transport::UpstreamOptions* options);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_PEER_EVENTS_H_
