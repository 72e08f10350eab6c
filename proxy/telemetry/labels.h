// SPDX-License-Identifier: Apache-2.0
// Labels: the values of metrics' labels, and the enumerations for labels that
// only the proxy has. Metrics, the status page and its JSON all use these
// words, so a number has one name everywhere.
//
// Pure functions; thread-safe. The texts live as long as the process.
#ifndef FNCACHE_PROXY_TELEMETRY_LABELS_H_
#define FNCACHE_PROXY_TELEMETRY_LABELS_H_

#include <cstddef>

#include "cache/observer.h"
#include "cache/outcome.h"
#include "common/tls_side.h"
#include "resp/server.h"

namespace fncache::proxy::telemetry {

using cache::kBypassReasons;
using cache::kMissReasons;
using cache::kOutcomes;
using cache::Outcome;
// "hit", "stale_hit", "miss", "stale", "collapsed", "bypass", "request".
const char* OutcomeName(Outcome outcome);

// Why a call was not looked up: the index of a reason among those of a bypass,
// and its name. Other reasons get kMethod's.
size_t BypassReasonIndex(cache::Reason reason);
const char* BypassReasonName(size_t index);  // "authorization", ...

// Why a call that was looked up went to the function, in the words of its
// cache-status header. A reason that is no miss gets kUnknown's.
size_t MissReasonIndex(cache::Reason reason);
const char* MissReasonName(size_t index);  // "new", "expired", ...

// How a call under `mode: shadow` would have hit.
enum class ShadowBy {
  kMask,     // the entry's request differs from this one in masked fields
  kExact,    // it is equal to this one: a different answer is the function's
  kUnknown,  // it is not known any more
};
inline constexpr size_t kShadowBys = 3;
const char* ShadowByName(ShadowBy by);  // "mask", "exact", "unknown"

// With tuning: the answer to a question, by serving::Answered; what a proof
// ended with, by serving::ProofResult.
inline constexpr size_t kTuneAnswers = 3;
const char* TuneAnswerName(size_t index);  // "same", "differs", "none"
inline constexpr size_t kTuneResults = 4;
const char* TuneResultName(size_t index);  // "proven", "read", ...

// gRPC's status codes are 0 to 16. Any other number counts as UNKNOWN.
inline constexpr size_t kStatusCodes = 17;
// The index of a code among them.
size_t StatusCodeIndex(int code);
const char* StatusCodeName(int code);  // "OK", "CANCELLED", ...

inline constexpr size_t kTiers = 3;
const char* TierName(cache::Tier tier);  // "memory", "disk", "shared"

// Results of look-ups and of writes in the shared tier, by the enumerations of
// cache::store::SharedFigures; and the states of its nodes.
inline constexpr size_t kSharedLookups = 6;
const char* SharedLookupName(size_t index);  // "hit", "miss", "timeout", ...
inline constexpr size_t kSharedWrites = 4;
const char* SharedWriteName(size_t index);           // "stored", "older", ...
const char* NodeStateName(resp::Node::State state);  // "connecting", ...

inline constexpr size_t kRemovals = 5;
const char* RemovalName(cache::Removal why);  // "expired", "evicted", ...

inline constexpr size_t kDroppedReasons = 4;
const char* DroppedName(cache::Dropped why);  // "queue_full", ...

inline constexpr size_t kTierErrors = 4;
const char* TierErrorName(cache::TierError what);  // "read", "write", ...

// How callers' connections end, by http2::ConnectionEnd.
inline constexpr size_t kConnectionEnds = 10;
const char* ConnectionEndName(size_t index);  // "done", "peer_left", ...

// Why requests are refused, by transport::Refusal.
inline constexpr size_t kRefusals = 5;
const char* RefusalName(size_t index);  // "metadata", "size", ...

// Our side of a TLS connection.
inline constexpr size_t kTlsSides = 2;
const char* TlsSideName(TlsSide side);  // "listener", "upstream"

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_LABELS_H_
