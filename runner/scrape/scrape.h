// SPDX-License-Identifier: Apache-2.0
// Reading a daemon's /metrics, as a Prometheus would.
//
// Pure functions but for Get; thread-safe.
#ifndef FNCACHE_RUNNER_SCRAPE_SCRAPE_H_
#define FNCACHE_RUNNER_SCRAPE_SCRAPE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fncache::runner::scrape {

// The body of http://ADDRESS/PATH, ADDRESS being HOST:PORT. An error if there
// is no answer within `patience`, or one without status 200.
absl::StatusOr<std::string> Get(const std::string& address,
                                const std::string& path,
                                absl::Duration patience);

// The sum of the samples of `name` in a text exposition, of those whose labels
// contain `label` (`tier="disk"`; empty: of all). Zero where there is none.
double Sum(absl::string_view exposition, absl::string_view name,
           absl::string_view label = "");

// The time under which `fraction` (0 to 1) of the durations in a histogram of
// seconds are, of the series of `name` whose labels contain `label`, as
// Prometheus' histogram_quantile estimates it: by a straight line through the
// bucket. Zero where nothing was counted; the last bound where the estimate is
// beyond it.
absl::Duration Quantile(absl::string_view exposition, absl::string_view name,
                        absl::string_view label, double fraction);

}  // namespace fncache::runner::scrape

#endif  // FNCACHE_RUNNER_SCRAPE_SCRAPE_H_
