// SPDX-License-Identifier: Apache-2.0
// TracedCall: one RunFunction call as traces describe it. proto/trace.proto is
// its form in a file.
#ifndef FNCACHE_INSIGHT_TRACE_TRACED_CALL_H_
#define FNCACHE_INSIGHT_TRACE_TRACED_CALL_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/outcome.h"
#include "insight/request/identity.h"

namespace fncache::insight::trace {

using cache::Outcome;
using cache::Reason;
// hit, miss, stale, collapsed, bypass, none; unknown. A trace does not tell a
// miss from one that found an entry past its time, nor kRequest from kBypass.
const char* OutcomeName(Outcome outcome);
// new, expired, evicted, purged, generation, not-stored, unknown, changed; ""
// for reasons that are no miss.
const char* ReasonName(Reason reason);

enum class Level { kKeys, kPaths, kFull };

// The fields of the answer.
struct TracedAnswer {
  uint64_t response_bytes = 0;
  absl::optional<absl::Duration> function_ttl;
  absl::optional<absl::Duration> told_ttl;
  absl::optional<absl::Duration> lifetime;
  bool stored = false;
  bool fatal = false;
  bool secrets = false;
  // Duration of the upstream call; for a hit, of the call that filled it.
  absl::Duration cost = absl::ZeroDuration();
  absl::Duration age = absl::ZeroDuration();
};

struct TracedCall : TracedAnswer {
  absl::Time arrived;
  std::string function;
  std::string method = "v1";  // or v1beta1
  std::string generation;
  Outcome outcome = Outcome::kUnknown;
  Reason reason = Reason::kNone;
  // not-stored: why (no-ttl, fatal, secrets, too-large, mode-off, error,
  // abandoned). changed: the first path. A bypass: why it is one.
  std::string detail;
  absl::optional<cache::key::Key> key;
  request::CompositeName composite;

  uint64_t request_bytes = 0;
  absl::Duration latency = absl::ZeroDuration();
  int status = 0;  // gRPC code

  std::string phase;  // settle, warmup, measure; "" unknown
  std::string step;
  int call_of_step = 0;  // from 1; 0 unknown
  // timer, event, retry, resync, create, restart, schedule
  std::string trigger;
  uint64_t pipeline = 0;
};

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_TRACED_CALL_H_
