// SPDX-License-Identifier: Apache-2.0
// Outcome: what became of a call. Reason: why it was not answered from an
// entry. Metrics, traces, explanations, headers and the load reports use these,
// each with its own words for them.
//
// The values of both are indices of arrays, in this order. No file stores them.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_OUTCOME_H_
#define FNCACHE_CACHE_OUTCOME_H_

#include <cstddef>

namespace fncache::cache {

enum class Outcome {
  kHit,        // answered from an entry
  kStaleHit,   // answered from an entry past its time
  kMiss,       // looked up, not found
  kStale,      // looked up, found past its time, the function was asked
  kCollapsed,  // joined another call's flight and ended there
  kBypass,     // not looked up: authorization, mode off, not RunFunction, ...
  kRequest,    // the caller asked for no-cache or no-store
  // The daemon counts those above. Load reports and traces have these, too.
  kNone,     // there is no cache
  kUnknown,  // a later version wrote it
};
inline constexpr size_t kOutcomes = 7;
inline constexpr size_t kAllOutcomes = 9;

enum class Reason {
  kNone,  // it was answered from an entry, or the reason is not given
  // It missed.
  kNew,
  kExpired,  // an entry past its time was found
  kEvicted,
  kPurged,
  kGeneration,
  kNotStored,
  kUnknown,  // none was found; that is all that is known
  kChanged,
  // With tuning, an entry with its key was found whose request had other drift.
  kDrift,
  // Its caller wants a new answer, which other callers may get, or not.
  kNoCache,
  kNoStore,
  // It is a bypass.
  kAuthorization,  // it has that metadata
  kMetadata,       // it has metadata that `bypass_metadata` names
  kModeOff,
  kOperation,   // it has no observed composite: an Operation acts
  kUnreadable,  // it did not come whole, or cannot be keyed
  kShadow,      // it was looked up only to compare: mode shadow
  kMethod,      // it calls another method than RunFunction
};
inline constexpr size_t kMissReasons = 9;    // from kNew
inline constexpr size_t kBypassReasons = 7;  // from kAuthorization

// The outcome of a call that goes to the function for this reason. A miss
// has the reason that the lookup gives: kUnknown or kExpired.
inline Outcome OutcomeOf(Reason reason) {
  if (reason >= Reason::kAuthorization) return Outcome::kBypass;
  if (reason >= Reason::kNoCache) return Outcome::kRequest;
  return reason == Reason::kExpired ? Outcome::kStale : Outcome::kMiss;
}

// A bypass that is not even looked up.
inline bool SkipsLookup(Reason reason) {
  return reason >= Reason::kAuthorization && reason != Reason::kShadow;
}

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_OUTCOME_H_
