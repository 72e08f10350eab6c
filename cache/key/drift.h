// SPDX-License-Identifier: Apache-2.0
// Drift: the values of a request that change while nothing happens (DESIGN,
// "Tuning"). This header defines them. The walk that makes keys
// (drift_marks.h), the kinds (drift_kinds.h) and the alteration
// (alteration.h) all use these definitions.
//
// Drift is exactly this:
// - in every observed, required and extra object: metadata.resourceVersion (a
//   version) and metadata.managedFields (a list);
// - in the status of these objects, but not of the composite, at any depth:
//   texts that are a time, versions under a key `resourceVersion`, and lists
//   under a key `managedFields`.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_KEY_DRIFT_H_
#define FNCACHE_CACHE_KEY_DRIFT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fncache::cache::key {

enum class DriftType : uint8_t { kVersion = 1, kManagedFields = 2, kTime = 3 };

// Which objects of a request a drift is in. Extra resources are required ones.
enum class DriftSection : uint8_t {
  kNone = 0,  // not in an object with drift
  kComposite = 1,
  kComposed = 2,
  kRequired = 3,
};

// The keys under which drift is found.
inline constexpr absl::string_view kMetadataKey = "metadata";
inline constexpr absl::string_view kStatusKey = "status";
inline constexpr absl::string_view kVersionKey = "resourceVersion";
inline constexpr absl::string_view kManagedFieldsKey = "managedFields";

// Stands among a key's masks. A later definition of drift has another number.
inline constexpr absl::string_view kDriftScope = "@drift1";

// The sizes of the shortest and the longest time.
inline constexpr size_t kLeastTime = 20;
inline constexpr size_t kMostTime = 35;
// RFC 3339, 5.6, with T and Z in upper case, a fraction of at most nine digits,
// and no leap second: what Go's time.Time writes.
bool IsTime(absl::string_view text);

inline constexpr size_t kMostVersion = 20;
// 1 to 20 digits.
inline bool IsVersion(absl::string_view text) {
  if (text.empty() || text.size() > kMostVersion) return false;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return false;
  }
  return true;
}

// Whether a text in an object's status is drift, and of which type; `key` is
// the map key that it is the value of, or empty for an element of a list.
// False: it is not.
inline bool IsStatusDrift(absl::string_view key, absl::string_view text,
                          DriftType* type) {
  if (text.size() >= kLeastTime && text.size() <= kMostTime && IsTime(text)) {
    *type = DriftType::kTime;
    return true;
  }
  if (key != kVersionKey || !IsVersion(text)) return false;
  *type = DriftType::kVersion;
  return true;
}

// One drift of a request.
struct Drift {
  DriftSection section = DriftSection::kNone;
  DriftType type = DriftType::kVersion;
  // The map key that it is under: its own, or for an element of a list that of
  // the list.
  absl::string_view key;
  // The text; for managedFields the canonical form of the list
  // (docs/key-format.md).
  absl::string_view value;
};

// All drift of a request, in the order of its canonical form, is one string of
// bytes, which the drift digest is the hash of: for each drift a byte (its type
// times 4, and its section), then its key and its value, each with its size
// before it.
void AppendDrift(const Drift& drift, std::string* out);
// Takes the first one off `drifts`, which AppendDrift wrote. False: there is
// none.
bool TakeDrift(absl::string_view* drifts, Drift* drift);

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_DRIFT_H_
