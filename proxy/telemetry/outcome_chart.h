// SPDX-License-Identifier: Apache-2.0
// The chart of the outcomes of a function's calls in each minute of the last
// hour: stacked bars, as SVG in the page. It needs no script, and its colours
// are those of the page's theme (status_page_style.h).
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_OUTCOME_CHART_H_
#define FNCACHE_PROXY_TELEMETRY_OUTCOME_CHART_H_

#include <string>

#include "absl/time/time.h"
#include "proxy/telemetry/outcome_hour.h"

namespace fncache::proxy::telemetry {

// Appends the figure. `titles`: each minute shows its numbers when the reader
// points at it. That takes more bytes of a page than all other content.
void AppendOutcomeChart(const OutcomeHour::Minutes& minutes,
                        absl::Time last_minute, bool titles, std::string* out);

// Appends the colours of the outcomes that the hour has.
void AppendOutcomeLegend(const OutcomeHour::Hour& hour, std::string* out);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_OUTCOME_CHART_H_
