// SPDX-License-Identifier: Apache-2.0
// SecondReading: the misses of a trace that each mask would have made hits, and
// the masks that save most together.
//
// Used by one thread; it reads one trace, and then chooses.
#ifndef FNCACHE_INSIGHT_EXPLAIN_SECOND_READING_H_
#define FNCACHE_INSIGHT_EXPLAIN_SECOND_READING_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "insight/explain/analysis_result.h"
#include "insight/explain/first_reading.h"
#include "insight/explain/traced_calls.h"
#include "insight/trace/reader.h"

namespace fncache::insight::explain {

// Masks that are tried together, by the paths of the reading that they hide.
struct Candidate {
  std::set<std::string> masks;
  absl::flat_hash_set<trace::PathId> hides;
  bool versions = false;  // resourceVersion and managedFields
  bool times = false;     // @times
};

// The masks that could help, with the paths that they hide.
std::vector<Candidate> CandidatesOf(
    const trace::TraceReader& reader,
    const absl::flat_hash_map<trace::PathId, Changed>& changed);

// One call, as any set of the candidates sees it: paths that the same
// candidates hide are one atom, and a request's hash under a set is the sum of
// its nodes' less that of the atoms that the set hides.
struct Seen {
  uint32_t whose;
  bool miss;     // it went to the function
  bool counted;  // and is among those that are reported
  bool kept;
  absl::Time arrived;
  absl::Time answered;
  absl::Duration lives;
  absl::Time served_until;  // of a hit
  double seconds;
  uint64_t all = 0;
  std::vector<uint64_t> atoms;
};

class SecondReading {
 public:
  // Objects that are passed by reference or pointer must outlive it.
  SecondReading(const AnalysisOptions& options,
                std::vector<Candidate> candidates, InForce* in_force)
      : options_(options),
        candidates_(std::move(candidates)),
        in_force_(in_force) {}

  void Read(trace::TraceReader* reader, uint64_t misses_before_the_last);

  struct Saved {
    uint64_t misses = 0;
    double seconds = 0;
  };
  // The calls that `set` (indices of candidates) would have made hits.
  Saved Try(const std::set<size_t>& set) const;

  std::vector<MaskGain> Choose() const;

 private:
  static constexpr int kMostPairs = 2000;

  Saved With(std::set<size_t> set, const std::vector<size_t>& more) const;

  // The one candidate that saves most beside `set`, which saves `so_far`. If no
  // single one saves anything: two; or the versions of all objects with or
  // without times, since several objects may be written at one moment; or as
  // many as it takes. Empty: nothing saves.
  std::vector<size_t> Best(const std::set<size_t>& set,
                           const Saved& so_far) const;

  const AnalysisOptions& options_;
  const std::vector<Candidate> candidates_;
  InForce* const in_force_;
  absl::flat_hash_map<trace::PathId, std::vector<size_t>> covers_;
  std::vector<std::vector<size_t>> atom_covers_;
  std::vector<Seen> calls_;
  mutable int pairs_ = 0;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_SECOND_READING_H_
