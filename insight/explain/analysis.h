// SPDX-License-Identifier: Apache-2.0
// Why the requests of a trace missed, who wrote what changed in them, and which
// masks would have made hits of them.
//
//   trace -> reasons, changed paths, writers        (first reading)
//         -> which misses each mask would have hit  (second reading)
//
// What the masks in force hide (insight/trace/masks_in_force.h) is left out
// before anything is compared. Further masks are judged by the calls as they
// came: an answer that was given for an equal request, as the mask sees it,
// serves for as long as it would have been served, and a hit shows that there
// was one. Arrivals stay where they were, though another TTL would move them.
//
// Masks are those of proposed_mask.h: nobody asked the function about them.
//
// Pure functions of the trace; thread-safe.
#ifndef FNCACHE_INSIGHT_EXPLAIN_ANALYSIS_H_
#define FNCACHE_INSIGHT_EXPLAIN_ANALYSIS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "insight/trace/reader.h"

namespace fncache::insight::explain {

struct AnalysisOptions {
  // Only calls of this function, of this composite (NAMESPACE/NAME, or NAME),
  // and of this phase; empty = all.
  std::string function;
  std::string composite;
  std::string phase;
  // Only the last so many misses are told of; 0 = all.
  uint64_t last = 0;
  // The part of a lifetime in which an entry is no longer served.
  double margin = 0.1;
  // How long an answer lives; zero: as long as the function said.
  absl::Duration lifetime = absl::ZeroDuration();
  // How many masks are tried together at most; those of one field in several
  // resources, and a version with its managedFields, count as one.
  int most_masks = 12;
  // Masks that are in force besides those that the trace names.
  std::vector<std::string> masked;
  // Whether the masks that the daemon had count; else only those of `masked`.
  bool in_force = true;
};

struct Share {
  std::string name;
  uint64_t misses = 0;
  double seconds = 0;  // of the function
};

struct PathShare {
  std::string path;  // `*` for list elements and for names of resources
  std::string section;
  std::string writer;   // the manager that wrote its object last, most often
  uint64_t misses = 0;  // in which it changed
  double seconds = 0;
  bool allowed = false;  // a mask may hide it
};

// Masks that are proposed together: of one field in each resource in which it
// changed, or of an object's version and managedFields.
struct MaskShare {
  std::vector<std::string> masks;  // paths, or a named set
  // Misses that would have been hits by these alone, and by them together with
  // those above them.
  uint64_t alone = 0;
  uint64_t together = 0;
  double seconds_together = 0;
};

struct Analysis {
  uint64_t calls = 0;
  uint64_t hits = 0;    // stale and collapsed ones among them
  uint64_t misses = 0;  // what went to the function
  uint64_t bypasses = 0;
  // The bypasses whose trace says why, by BypassReasonName.
  std::map<std::string, uint64_t> bypasses_by_reason;
  double seconds = 0;  // of the function, for the misses
  absl::Duration span = absl::ZeroDuration();
  // The longest TTL that a call was told, or that the function gave.
  absl::Duration longest_ttl = absl::ZeroDuration();
  uint64_t composites = 0;
  std::vector<std::string> functions;
  bool has_paths = false;
  uint64_t pathless = 0;  // misses of changed requests of which it has none
  uint64_t dropped = 0, damaged = 0;

  // Each in order of their misses.
  std::vector<Share> reasons;
  std::vector<PathShare> paths;
  std::vector<Share> sections;
  std::vector<Share> writers;
  // In the order in which they save most.
  std::vector<MaskShare> masks;
};

using OpenTrace =
    std::function<absl::StatusOr<std::unique_ptr<trace::TraceReader>>()>;

// Reads the trace that `open` gives, twice if there are paths in it.
absl::StatusOr<Analysis> Analyze(const OpenTrace& open,
                                 const AnalysisOptions& options);

// A line where a trace of `span` is too short to show what happens when a TTL
// is over; "" where it is long enough.
std::string TooShortForTimers(absl::Duration span, absl::Duration longest_ttl);

// As people read it, and as programs do.
std::string AnalysisText(const Analysis& analysis, absl::string_view by);
std::string AnalysisJson(const Analysis& analysis);

// The same of two requests: the paths in which they differ.
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
