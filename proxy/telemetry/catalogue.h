// SPDX-License-Identifier: Apache-2.0
// The catalogue: every metric of the daemon, its type, labels and help, in one
// table. A test compares docs/metrics.md with it. A metric that is not in it
// cannot exist.
//
// Immutable; lives as long as the process.
#ifndef FNCACHE_PROXY_TELEMETRY_CATALOGUE_H_
#define FNCACHE_PROXY_TELEMETRY_CATALOGUE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "metrics/registry.h"

namespace fncache::proxy::telemetry {

const std::vector<metrics::Family>& Catalogue();

// The family with this name. Aborts if there is none.
const metrics::Family& Metric(absl::string_view name);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_CATALOGUE_H_
