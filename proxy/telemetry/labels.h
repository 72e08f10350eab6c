// SPDX-License-Identifier: Apache-2.0
// Labels: the values that labels of metrics take, and the enumerations behind
// those that only the proxy has. Metrics, the status page and its JSON all take
// their words from here, so that a number is found under one name everywhere.
//
// Pure functions; thread-safe. The texts live as long as the process.
#ifndef FNCACHE_PROXY_TELEMETRY_LABELS_H_
#define FNCACHE_PROXY_TELEMETRY_LABELS_H_

#include <cstddef>

#include "cache/observer.h"
#include "common/tls_side.h"
#include "insight/trace/traced_call.h"

namespace fncache::proxy::telemetry {

// Outcome says what became of a call, in the terms of its cache-status header.
enum class Outcome {
  kHit,        // answered from an entry
  kStaleHit,   // answered from an entry past its time
  kMiss,       // looked up, not there
  kStale,      // looked up, found past its time, the function was asked
  kCollapsed,  // joined another call's flight and ended there
  kBypass,     // not looked up: authorization, mode off, not RunFunction, ...
  kRequest,    // the caller asked for no-cache or no-store
};
inline constexpr size_t kOutcomes = 7;
const char* OutcomeName(Outcome outcome);  // "hit", "miss", ...

// Why a call was not looked up.
enum class BypassReason {
  kAuthorization,  // it has that metadata
  kMetadata,       // it has metadata that `bypass_metadata` names
  kModeOff,
  kOperation,   // it has no observed composite: an Operation acts
  kUnreadable,  // it did not come whole, or cannot be keyed
  kShadow,      // it was looked up only to compare: mode shadow
  kMethod,      // it calls another method than RunFunction
};
inline constexpr size_t kBypassReasons = 7;
const char* BypassReasonName(BypassReason reason);  // "authorization", ...

// Why a call that was looked up went to the function. In the words of its
// cache-status header: "new", "expired", ...
inline constexpr size_t kMissReasons = 8;
// The index of a reason among them; of one that nobody gave, unknown's.
size_t MissReasonIndex(insight::trace::Reason reason);
const char* MissReasonName(size_t index);

// By what a call under `mode: shadow` would have hit.
enum class ShadowBy {
  kMask,     // the entry's request is another one, but for what masks hide
  kExact,    // it is this one: what differs here is the function's own doing
  kUnknown,  // it is not known any more
};
inline constexpr size_t kShadowBys = 3;
const char* ShadowByName(ShadowBy by);  // "mask", "exact", "unknown"

// gRPC's status codes are 0 to 16. Any other number counts as UNKNOWN.
inline constexpr size_t kStatusCodes = 17;
// The index of a code among them.
size_t StatusCodeIndex(int code);
const char* StatusCodeName(int code);  // "OK", "CANCELLED", ...

inline constexpr size_t kTiers = 2;
const char* TierName(cache::Tier tier);  // "memory", "disk"

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
