// SPDX-License-Identifier: Apache-2.0
// The facts of one function for the status page: connections, masks, purges and
// the verdict of a rehearsal.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_DAEMON_FACTS_H_
#define FNCACHE_PROXY_DAEMON_FACTS_H_

#include "cache/store/bans.h"
#include "proxy/serving/handler.h"
#include "proxy/telemetry/function_facts.h"
#include "proxy/transport/listener.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy {

telemetry::FunctionFacts FactsOf(const transport::Listener& listener,
                                 const transport::Upstream& upstream,
                                 serving::FunctionHandler& handler,
                                 const cache::store::Bans& bans);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_DAEMON_FACTS_H_
