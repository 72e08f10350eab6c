// SPDX-License-Identifier: Apache-2.0
// What the daemon counts, as the admin service tells it.
//
// Pure functions of what they read; thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_STATS_H_
#define FNCACHE_PROXY_ADMIN_STATS_H_

#include <string>
#include <vector>

#include "insight/explain/miss_memory.h"
#include "proxy/admin/actions.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/transport/inflight.h"

namespace fncache::proxy {

// Counters, gauges, tiers and certificates; `upstreams` by FunctionId. Of the
// daemon's times and state nothing is set.
admin::v1::StatsResponse ReadStats(const telemetry::Instruments& instruments,
                                   const transport::Inflight& inflight,
                                   const std::vector<std::string>& upstreams);

// Why calls missed. `misses` may be null. NotFound for a function that the
// request names and that is none.
absl::StatusOr<admin::v1::ExplainResponse> ReadMisses(
    const telemetry::Instruments& instruments,
    const insight::explain::MissMemory* misses,
    const admin::v1::ExplainRequest& request);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_ADMIN_STATS_H_
