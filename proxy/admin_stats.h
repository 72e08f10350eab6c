// SPDX-License-Identifier: Apache-2.0
// Makes the admin service's messages from the daemon's counts.
//
// Pure functions of their arguments; thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_STATS_H_
#define FNCACHE_PROXY_ADMIN_STATS_H_

#include <string>
#include <vector>

#include "insight/explain/miss_memory.h"
#include "proxy/admin/actions.h"
#include "proxy/limits/budget.h"
#include "proxy/telemetry/instruments.h"

namespace fncache::proxy {

// Sets counters, gauges, tiers and certificates, but not the daemon's times and
// state. `upstreams` is by FunctionId.
admin::v1::StatsResponse ReadStats(const telemetry::Instruments& instruments,
                                   const limits::Budget& inflight,
                                   const std::vector<std::string>& upstreams);

// Why calls missed. `misses` may be null. NotFound: the request names a
// function that does not exist.
absl::StatusOr<admin::v1::ExplainResponse> ReadMisses(
    const telemetry::Instruments& instruments,
    const insight::explain::MissMemory* misses,
    const admin::v1::ExplainRequest& request);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_ADMIN_STATS_H_
