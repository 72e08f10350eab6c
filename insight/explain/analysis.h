// SPDX-License-Identifier: Apache-2.0
// Explains a trace: why requests missed, which writers changed them, and which
// masks would have made hits of them.
//
//   trace -> reasons, changed paths, writers        (first reading)
//         -> which misses each mask would have hit  (second reading)
//
// Values that the masks in force hide (insight/trace/masks_in_force.h) are left
// out before any comparison. Further masks are judged by the calls as they
// came. An answer to a request that is equal under the mask serves for as long
// as it would have been served. A hit shows that there was such an answer.
// Arrivals keep their times, although another TTL would move them.
//
// Masks are those of proposed_mask.h. The function was not asked about them.
//
// Pure functions of the trace; thread-safe.
#ifndef FNCACHE_INSIGHT_EXPLAIN_ANALYSIS_H_
#define FNCACHE_INSIGHT_EXPLAIN_ANALYSIS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "insight/explain/analysis_result.h"
#include "insight/trace/reader.h"

namespace fncache::insight::explain {

using OpenTrace =
    std::function<absl::StatusOr<std::unique_ptr<trace::TraceReader>>()>;

// Reads the trace that `open` gives, twice if there are paths in it.
absl::StatusOr<Analysis> Analyze(const OpenTrace& open,
                                 const AnalysisOptions& options);

// A line for the report if a trace of `span` is too short to show expired TTLs;
// "" if it is long enough.
std::string TooShortForTimers(absl::Duration span, absl::Duration longest_ttl);

// The report as text for people, and as JSON for programs.
std::string AnalysisText(const Analysis& analysis, absl::string_view by);
std::string AnalysisJson(const Analysis& analysis);

// One path in which two requests differ.
struct Difference {
  std::string path;
  std::string section;
  std::string change;  // changed, added, removed
  std::string writer;
  bool allowed = false;  // a mask may hide it
  std::string mask;      // to propose; "" where there is none
};
// InvalidArgument if one of them is no request.
absl::StatusOr<std::vector<Difference>> Compare(absl::string_view a,
                                                absl::string_view b);

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_ANALYSIS_H_
