// SPDX-License-Identifier: Apache-2.0
// Events that a function's peers cause: callers that break a limit or the
// protocol, and a function that cannot be reached. Events are counted, and
// logged once a minute for each kind. A line for each change says whether the
// function can be reached.
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

// The events of the function's listener. Here and below, arguments that are
// pointers outlive the events.
http2::ServerEvents ListenerEvents(
    const telemetry::FunctionInstruments* function);

// Sets the events of the function's upstream. Its target must be set.
void SetUpstreamEvents(const telemetry::FunctionInstruments* function,
                       Clock* clock, transport::UpstreamOptions* options);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_PEER_EVENTS_H_
