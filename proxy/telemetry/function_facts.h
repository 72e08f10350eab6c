// SPDX-License-Identifier: Apache-2.0
// FunctionFacts: what the status page tells of a function beyond what the
// instruments count: its connections, its masks and their use, the bans in
// force. The daemon puts them together when the page is asked for.
//
// Plain values.
#ifndef FNCACHE_PROXY_TELEMETRY_FUNCTION_FACTS_H_
#define FNCACHE_PROXY_TELEMETRY_FUNCTION_FACTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fncache::proxy::telemetry {

// A mask, or a named set of them, and how many of its paths have left something
// out of a request so far.
struct MaskUse {
  std::string mask;  // "@versions", "context.now"
  size_t paths = 1;
  size_t matched = 0;
};

// What an operator purged: what started at or before that time.
struct BanInForce {
  std::string of;  // "the function", "everything", "generation 1.2"
  absl::Time before;
  bool soft = false;  // it is stale rather than gone
};

struct FunctionFacts {
  // Now, of callers and to the function.
  size_t callers_connections = 0;
  size_t upstream_connections = 0;
  std::vector<MaskUse> masks;
  std::vector<BanInForce> bans;
  // Settings: old answers are served, and refreshed behind; calls go on when
  // their callers have left.
  bool serves_stale = false;
  bool refreshes_behind = false;
  bool finishes_abandoned = false;
  // Keys that are not refreshed for now, because doing so failed.
  size_t backing_off = 0;
  // More rows of what is told of the function, in order, each a few words and a
  // text: the verdict of a rehearsal, for one. Neither is escaped.
  struct Row {
    std::string what;
    std::string text;
    bool bad = false;
  };
  std::vector<Row> more;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_FUNCTION_FACTS_H_
