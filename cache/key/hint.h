// SPDX-License-Identifier: Apache-2.0
// Hint: what a function's response says it depends on (docs/depends.md). It
// comes as trailing metadata `fncache-depends`, a dictionary of RFC 9651:
//
//   reads=("observed.composite.resource.spec.size" "observed.resources.db"),
//   pure
//
// `reads` lists paths of the request, spelled as masks. Each stands for what is
// at and below it. `pure` says that nothing else decides the response. Unknown
// members and parameters are ignored.
//
// The bytes come from outside, so a hint is bounded in bytes, paths and memory.
// Immutable after Parse; thread-safe. Copies share their content.
#ifndef FNCACHE_CACHE_KEY_HINT_H_
#define FNCACHE_CACHE_KEY_HINT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/key/mask.h"

namespace fncache::cache::key {

// The name of the trailing metadata.
inline constexpr char kHintField[] = "fncache-depends";

class Hint {
 public:
  // Bytes of all values together, and paths. A hint beyond that is refused.
  static constexpr size_t kMostBytes = 64 << 10;
  static constexpr size_t kMostPaths = 2048;
  // Bytes of memory.
  static constexpr size_t kMostMemory = 1 << 20;

  // Reads the values of one or more fields of that name, in their order.
  // InvalidArgument says why a hint is refused: it is no dictionary, has no
  // `reads`, contradicts itself by saying something twice, has a path that the
  // request cannot have, or exceeds a limit. The text contains no path.
  static absl::StatusOr<Hint> Parse(absl::Span<const absl::string_view> values);

  // The paths in their canonical spelling and order, without repetition and
  // without paths that another one covers.
  const std::vector<std::string>& reads() const { return reads_.canonical(); }
  bool pure() const { return pure_; }
  // The request's node of these paths. A `masked` node is read with all that is
  // below it. Null: nothing is read.
  const MaskNode* root() const { return reads_.root(); }
  // Whether the node at this path counts in keys by the hint: no mask may hide
  // it, or it is at, below or above a path of `reads`.
  bool Counts(const MaskPath& path) const;
  // The same for a path as it is spelled in masks. One that cannot be read
  // counts.
  bool Counts(absl::string_view path) const;
  // Bytes of memory that the paths take.
  size_t memory() const { return memory_; }

  friend bool operator==(const Hint& a, const Hint& b) {
    return a.pure_ == b.pure_ && a.reads() == b.reads();
  }

 private:
  MaskSet reads_;
  bool pure_ = false;
  size_t memory_ = 0;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_HINT_H_
