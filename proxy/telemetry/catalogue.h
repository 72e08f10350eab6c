// SPDX-License-Identifier: Apache-2.0
// The catalogue: every metric of the daemon, its type, labels and help, in one
// table. docs/metrics.md is held against it by a test, and no metric exists
// that is not in it.
//
// Immutable; lives as long as the process.
#ifndef FNCACHE_PROXY_TELEMETRY_CATALOGUE_H_
#define FNCACHE_PROXY_TELEMETRY_CATALOGUE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "metrics/registry.h"

namespace fncache::proxy::telemetry {

const std::vector<metrics::Family>& Catalogue();

// The family of that name. Aborts if there is none.
const metrics::Family& Metric(absl::string_view name);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_CATALOGUE_H_
