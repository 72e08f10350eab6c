// SPDX-License-Identifier: Apache-2.0
// The differences between two requests, node by node.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_INSIGHT_REQUEST_COMPARE_H_
#define FNCACHE_INSIGHT_REQUEST_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/key/mask.h"

namespace fncache::insight::request {

// A node as traces keep it.
struct KeptNode {
  uint8_t kind = 0;
  uint8_t drift = 0;  // a NodeDrift, if the key was without drift
  uint64_t value = 0;
  friend bool operator==(const KeptNode& a, const KeptNode& b) {
    return a.kind == b.kind && a.drift == b.drift && a.value == b.value;
  }
  friend bool operator!=(const KeptNode& a, const KeptNode& b) {
    return !(a == b);
  }
};

// Decides whether masks remove paths. Paths are spelled as RequestNodes::Spell
// does. Thread-compatible: it remembers earlier answers.
class MaskMatcher {
 public:
  explicit MaskMatcher(cache::key::MaskSet masks);
  // Whether the masks remove the node at `path`: it is at or below a masked
  // path. A list's own node stays if only its elements are masked.
  bool Masks(absl::string_view path) const;

 private:
  cache::key::MaskSet masks_;
};

// Splits `a."b.c"[3].d` into a, b.c, [3], d. Elements stay as they are; indices
// are `[N]` with `index` set. Empty if the path is invalid.
struct PathSegment {
  std::string name;
  bool index = false;
  // A quoted segment is a key of its name, `*` too.
  bool quoted = false;
};
std::vector<PathSegment> SplitPath(absl::string_view path);

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_COMPARE_H_
