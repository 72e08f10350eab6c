// SPDX-License-Identifier: Apache-2.0
// The chart of what became of a function's calls, minute by minute over the
// last hour: stacked bars, as SVG within the page. It needs no script, and its
// colours are those of the page's theme (status_page_style.h).
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_OUTCOME_CHART_H_
#define FNCACHE_PROXY_TELEMETRY_OUTCOME_CHART_H_

#include <string>

#include "absl/time/time.h"
#include "proxy/telemetry/outcome_hour.h"

namespace fncache::proxy::telemetry {

// Appends the figure. `titles`: each minute says its numbers when it is pointed
// at, which takes more of a page than all else.
void AppendOutcomeChart(const OutcomeHour::Minutes& minutes,
                        absl::Time last_minute, bool titles, std::string* out);

// Appends which colour is which outcome, of those that the hour has.
void AppendOutcomeLegend(const OutcomeHour::Hour& hour, std::string* out);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_OUTCOME_CHART_H_
