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
  uint64_t value = 0;
  friend bool operator==(const KeptNode& a, const KeptNode& b) {
    return a.kind == b.kind && a.value == b.value;
  }
  friend bool operator!=(const KeptNode& a, const KeptNode& b) {
    return !(a == b);
  }
};

// Says of paths whether masks take them away. Paths are spelled as
// RequestNodes::Spell does. Thread-compatible: it remembers what it was asked.
class MaskMatcher {
 public:
  explicit MaskMatcher(cache::key::MaskSet masks);
  // Whether the node at `path` is gone under the masks: at or below a masked
  // path; not so a list's own node where only its elements are masked.
  bool Masks(absl::string_view path) const;

 private:
  cache::key::MaskSet masks_;
};

// Splits `a."b.c"[3].d` into a, b.c, [3], d: elements as they are, indices as
// `[N]` with `index` set. Empty on a path that is none.
struct PathPart {
  std::string name;
  bool index = false;
  // In quotes it is a key of its name, `*` too.
  bool quoted = false;
};
std::vector<PathPart> SplitPath(absl::string_view path);

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_COMPARE_H_
