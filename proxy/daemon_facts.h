// SPDX-License-Identifier: Apache-2.0
// The facts of one function for metrics and the status page: connections,
// masks, purges, tuning, and the verdict of a rehearsal.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_DAEMON_FACTS_H_
#define FNCACHE_PROXY_DAEMON_FACTS_H_

#include "cache/store/bans.h"
#include "proxy/serving/handler.h"
#include "proxy/telemetry/function_facts.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/transport/listener.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy {

// From now on scrapes read these. They outlive the last scrape.
void WatchFunction(cache::FunctionId id, const transport::Listener& listener,
                   const transport::Upstream& upstream,
                   serving::FunctionHandler* handler,
                   telemetry::Instruments* instruments);

telemetry::FunctionFacts FactsOf(const transport::Listener& listener,
                                 const transport::Upstream& upstream,
                                 serving::FunctionHandler& handler,
                                 const cache::store::Bans& bans);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_DAEMON_FACTS_H_
