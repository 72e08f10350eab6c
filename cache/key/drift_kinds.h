// SPDX-License-Identifier: Apache-2.0
// The kinds of drift (DESIGN, "Tuning"): a kind is a section of the request and
// the map key that the drift is under. The times in managedFields are one kind,
// the rest of managedFields is another, in which the order of entries does not
// count.
//
// Pure functions but for a random seed of the process; thread-safe.
#ifndef FNCACHE_CACHE_KEY_DRIFT_KINDS_H_
#define FNCACHE_CACHE_KEY_DRIFT_KINDS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "cache/key/drift.h"

namespace fncache::cache::key {

// All drift of a request that is of one kind. The hashes are of this process.
struct DriftKind {
  uint64_t kind;   // of section and map key
  uint64_t value;  // of all drift of that kind, in canonical order
  bool is_time;    // otherwise versions, or managedFields without times
  // How that drift is written: the number of digits of versions, and of times
  // the zone and whether there is a fraction. Questions keep it, so a proof
  // says nothing of another one. Zero for managedFields.
  uint64_t form = 0;
};

// The kinds of a request, in order of their first drift. Requests of equal key
// have the same kinds, in the same order. A request with more than kMostKinds
// is not tuned, and its list ends after one more.
using DriftKinds = absl::InlinedVector<DriftKind, 8>;
inline constexpr size_t kMostKinds = 32;

// `drifts` is Digest::drifts.
DriftKinds KindsOf(absl::string_view drifts);

// A kind for people: "status lastTransitionTime", "composite metadata
// resourceVersion". `index` is that of the kind in KindsOf(drifts).
std::string KindName(absl::string_view drifts, size_t index);

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_DRIFT_KINDS_H_
