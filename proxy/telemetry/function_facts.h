// SPDX-License-Identifier: Apache-2.0
// FunctionFacts: facts about a function that the instruments do not count: its
// connections, its masks and their use, the bans in force. The daemon makes
// them when the status page is requested.
//
// Plain values.
#ifndef FNCACHE_PROXY_TELEMETRY_FUNCTION_FACTS_H_
#define FNCACHE_PROXY_TELEMETRY_FUNCTION_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proxy/telemetry/tune_report.h"

namespace fncache::proxy::telemetry {

// A mask, or a named set of masks, and how many of its paths have matched in a
// request so far.
struct MaskUse {
  std::string mask;  // "@versions", "context.now"
  size_t paths = 1;
  size_t matched = 0;
};

// A purge by an operator. It covers entries whose call started at or before
// `before`.
struct BanInForce {
  std::string of;  // "the function", "everything", "generation 1.2"
  absl::Time before;
  bool soft = false;  // the entries are stale rather than removed
};

// Since the start.
struct VaryFigures {
  size_t hints = 0;  // that are known now, of all inputs
  uint64_t hits = 0;
  uint64_t refused = 0;  // hints
};

struct FunctionFacts {
  // The connections now, from callers and to the function.
  size_t callers_connections = 0;
  size_t upstream_connections = 0;
  std::vector<MaskUse> masks;
  std::vector<BanInForce> bans;
  // Settings: old answers are served, and refreshed after that; calls continue
  // when their callers have left.
  bool serves_stale = false;
  bool refreshes_behind = false;
  bool finishes_abandoned = false;
  // Keys that are not refreshed for now, because their refresh failed.
  size_t backing_off = 0;
  absl::optional<TuneReport> tune;   // with `tune: on`
  absl::optional<VaryFigures> vary;  // with `vary: on`
  // More rows about the function, in order, for example the verdict of a
  // rehearsal. Each has a few words and a text; neither is escaped.
  struct Row {
    std::string what;
    std::string text;
    bool bad = false;
  };
  std::vector<Row> more;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_FUNCTION_FACTS_H_
