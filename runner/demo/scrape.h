// Reading a daemon's /metrics, as a Prometheus would.
//
// Pure functions but for Get; thread-safe.
#ifndef FNCACHE_RUNNER_DEMO_SCRAPE_H_
#define FNCACHE_RUNNER_DEMO_SCRAPE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fncache::runner::demo {

// The body of http://ADDRESS/PATH, ADDRESS being HOST:PORT with a numeric host.
// An error where nobody answers within `patience`, or not with status 200.
absl::StatusOr<std::string> Get(const std::string& address,
                                const std::string& path,
                                absl::Duration patience);

// The sum of the samples of `name` in a text exposition, of those whose labels
// contain `label` (`tier="disk"`; empty: of all). Zero where there is none.
double Sum(absl::string_view exposition, absl::string_view name,
           absl::string_view label = "");

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_SCRAPE_H_
