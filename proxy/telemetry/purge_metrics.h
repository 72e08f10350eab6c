// SPDX-License-Identifier: Apache-2.0
// Purge metrics: the number of purges by scope, and the bans in force.
//
// Thread-safe. The registry outlives it.
#ifndef FNCACHE_PROXY_TELEMETRY_PURGE_METRICS_H_
#define FNCACHE_PROXY_TELEMETRY_PURGE_METRICS_H_

#include <cstddef>
#include <memory>

#include "cache/store/bans.h"
#include "metrics/counter.h"
#include "metrics/registry.h"

namespace fncache::proxy::telemetry {

inline constexpr size_t kPurgeScopes = 4;
const char* PurgeScopeName(cache::store::Bans::Kind of);  // "all", ...

class PurgeMetrics {
 public:
  // Keeps the bans alive while scrapes read them.
  PurgeMetrics(metrics::Registry* registry,
               std::shared_ptr<const cache::store::Bans> bans);

  void Purged(cache::store::Bans::Kind of) const {
    purges_[static_cast<size_t>(of)].Add();
  }

 private:
  metrics::Counter purges_[kPurgeScopes];
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_PURGE_METRICS_H_
