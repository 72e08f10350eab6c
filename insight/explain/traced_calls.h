// SPDX-License-Identifier: Apache-2.0
// Calls of a trace as both readings of an analysis see them.
//
// Pure functions, thread-safe; InForce is used by one thread at a time.
#ifndef FNCACHE_INSIGHT_EXPLAIN_TRACED_CALLS_H_
#define FNCACHE_INSIGHT_EXPLAIN_TRACED_CALLS_H_

#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "insight/explain/analysis_result.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"
#include "insight/trace/masks_in_force.h"
#include "insight/trace/reader.h"

namespace fncache::insight::explain {

bool IsHit(trace::Outcome outcome);
// Equal only for calls of one composite.
std::string WhoseOf(const request::CompositeName& name);
// A stream of requests that follow one another. Requests of another method
// share no entries. (A stream of an older trace has both.)
std::string StreamOf(const trace::ReadCall& call);
// Whether the options ask about it.
bool Wanted(const trace::TracedCall& call, const AnalysisOptions& options);
// Whether a later look-up could have found the answer.
bool IsKept(const trace::TracedCall& call);
// The time until which the entry that answered the hit was served; the past if
// that is unknown. An answer past its time shows no such entry.
absl::Time ServedUntil(const trace::TracedCall& call, absl::Duration lifetime,
                       double margin);

// Values that were in no key: paths of the reading that the masks in force
// hide, each decided once, and drift under `tune: on`.
class InForce {
 public:
  // Without `tuned`, drift counts as it does without `tune: on`.
  InForce(const trace::MasksInForce& masks, bool tuned)
      : masks_(masks), tuned_(tuned) {}

  bool Hide(const trace::TraceReader& reader, const std::string& function,
            trace::PathId path) {
    if (!masks_.any()) return false;
    auto& hidden = hidden_[function];
    const auto [at, added] = hidden.try_emplace(path, false);
    if (added) at->second = masks_.Hide(function, reader.PathOf(path));
    return at->second;
  }

  // The number of a node that no mask hides, as NodeHash. All drift of one type
  // has one number for each path, and nodes below it have none.
  uint64_t HashOf(trace::PathId path, const request::KeptNode& node) const;

  // Whether the two differ in drift only. Null: the node is not there.
  bool DiffersInDriftOnly(const request::KeptNode* a,
                          const request::KeptNode* b) const;

 private:
  const trace::MasksInForce& masks_;
  const bool tuned_;
  std::map<std::string, absl::flat_hash_map<trace::PathId, bool>> hidden_;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_TRACED_CALLS_H_
