// SPDX-License-Identifier: Apache-2.0
// Analysis: what `fncache explain` finds in a trace, and the options for it.
//
// Plain data.
#ifndef FNCACHE_INSIGHT_EXPLAIN_ANALYSIS_RESULT_H_
#define FNCACHE_INSIGHT_EXPLAIN_ANALYSIS_RESULT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fncache::insight::explain {

struct AnalysisOptions {
  // Only calls of this function, of this composite (NAMESPACE/NAME, or NAME),
  // and of this phase; empty = all.
  std::string function;
  std::string composite;
  std::string phase;
  // The number of last misses that are listed; 0 = all.
  uint64_t last = 0;
  // The fraction of a lifetime in which an entry is no longer served.
  double margin = 0.1;
  // How long an answer lives; zero: as long as the function said.
  absl::Duration lifetime = absl::ZeroDuration();
  // The most masks that are tried together. Masks of one field in several
  // resources count as one, and so do a version and its managedFields.
  int most_masks = 12;
  // Masks that are in force besides those that the trace names.
  std::vector<std::string> masked;
  // Whether the daemon's masks count; else only those of `masked`.
  bool in_force = true;
};

struct Misses {
  std::string name;
  uint64_t misses = 0;
  double seconds = 0;  // of the function
};

struct PathMisses {
  std::string path;  // `*` for list elements and for names of resources
  std::string section;
  std::string writer;   // the most frequent last writer of its object
  uint64_t misses = 0;  // in which it changed
  double seconds = 0;
  bool allowed = false;  // a mask may hide it
};

// Masks that are proposed together: of one field in each resource in which it
// changed, or of an object's version and managedFields.
struct MaskGain {
  std::vector<std::string> masks;  // paths, or a named set
  // Misses that would have been hits by these alone, and by them together with
  // the masks above them.
  uint64_t alone = 0;
  uint64_t together = 0;
  double seconds_together = 0;
};

struct Analysis {
  uint64_t calls = 0;
  uint64_t hits = 0;    // stale and collapsed ones among them
  uint64_t misses = 0;  // calls that went to the function
  uint64_t bypasses = 0;
  // The bypasses whose trace says why, by BypassReasonName.
  std::map<std::string, uint64_t> bypasses_by_reason;
  double seconds = 0;  // of the function, for the misses
  absl::Duration span = absl::ZeroDuration();
  // The longest TTL that a caller got, or that the function gave.
  absl::Duration longest_ttl = absl::ZeroDuration();
  uint64_t composites = 0;
  std::vector<std::string> functions;
  bool has_paths = false;
  uint64_t pathless = 0;  // misses of changed requests of which it has none
  uint64_t dropped = 0, damaged = 0;

  // Each in order of their misses.
  std::vector<Misses> reasons;
  std::vector<PathMisses> paths;
  std::vector<Misses> sections;
  std::vector<Misses> writers;
  // In the order in which they save most.
  std::vector<MaskGain> masks;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_ANALYSIS_RESULT_H_
