// SPDX-License-Identifier: Apache-2.0
// Process metrics: the system's figures about this process, with the names of
// Prometheus client libraries (process_*). They are read from /proc at each
// scrape.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_PROCESS_METRICS_H_
#define FNCACHE_PROXY_TELEMETRY_PROCESS_METRICS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "metrics/registry.h"

namespace fncache::proxy::telemetry {

struct ProcessFigures {
  absl::Time started;
  absl::Duration cpu;
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  uint64_t open_fds = 0;
  uint64_t max_fds = 0;
};

// A figure that cannot be read is zero.
ProcessFigures ReadProcess();

void RegisterProcessMetrics(metrics::Registry* registry);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_PROCESS_METRICS_H_
