// SPDX-License-Identifier: Apache-2.0
// MaskSet: the paths of a request that are left out of its key.
//
// A mask is a path of field names and map keys below the request, with dots
// between: `observed.composite.resource.metadata.resourceVersion`. `*` stands
// for any one map key or for every list element, and never for a piece of a
// name. A key may be quoted, and must be where it holds dots, quotes,
// backslashes, stars, brackets or white space, is empty, all digits or the name
// of a set: `context."example.org/now"`; within quotes `\"` and `\\` are a
// quote and a backslash. Indices do not exist, and Struct's inner fields are
// never written. See DESIGN's key contract for what may be masked and
// docs/key-format.md for what masking does.
//
// A text that begins with `@` stands for a named set of paths: see
// NamedMaskSets.
//
// Immutable after Parse, except for its record of matches; thread-safe. Copies
// share their content.
#ifndef FNCACHE_CACHE_KEY_MASK_H_
#define FNCACHE_CACHE_KEY_MASK_H_

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/key/drift.h"

namespace fncache::cache::key {

struct MaskElement {
  bool any = false;  // `*`
  std::string name;  // else the field's name or the map's key

  friend bool operator==(const MaskElement& a, const MaskElement& b) {
    return a.any == b.any && a.name == b.name;
  }
};

using MaskPath = std::vector<MaskElement>;

// The paths as a trie, for a walk that passes a node along. A named child holds
// what `*` beside it says too, so that a walk follows one child only.
struct MaskNode {
  struct Child {
    std::string name;
    std::unique_ptr<const MaskNode> node;
  };

  // With tuning: what is here may be drift.
  enum class Drifts : uint8_t {
    kNone,
    kVersion,
    kManagedFields,
    kStatus,  // by the rules of a status, and so is what is below
  };

  bool masked = false;       // a path ends here: what this node stands for goes
  std::vector<Child> named;  // in the order of their names, each once
  std::unique_ptr<const MaskNode> any;
  Drifts drifts = Drifts::kNone;
  DriftSection section = DriftSection::kNone;  // of that drift
  // In a status: the node for what no path goes to.
  const MaskNode* rest = nullptr;
  // With kStatus: the node for a list under the key `managedFields`, if a path
  // goes into it.
  std::unique_ptr<const MaskNode> managed;
  // A bit for each named child, by the upper six bits of its name's KeyOrder
  // (plain_wire.h). All bits with `any` or `rest`.
  uint64_t orders = 0;

  // False: Find is null for a key with this order, in the upper bits.
  bool MayHave(uint64_t order) const {
    return (orders >> (order >> 58) & 1) != 0;
  }

  // The node for a field or a map key; null if no path goes there.
  const MaskNode* Find(absl::string_view name) const {
    // Masks name a few things only, and most keys are none of them: comparing
    // takes half the time of hashing.
    constexpr size_t kFew = 8;
    if (named.size() <= kFew) {
      for (const Child& child : named) {
        if (child.name == name) return child.node.get();
      }
      return element();
    }
    const auto found =
        std::lower_bound(named.begin(), named.end(), name,
                         [](const Child& child, absl::string_view key) {
                           return child.name < key;
                         });
    return found != named.end() && found->name == name ? found->node.get()
                                                       : element();
  }
  // The node for each element of a list.
  const MaskNode* element() const { return any != nullptr ? any.get() : rest; }

  // Whether something that is here is left out; notes that it was.
  bool LeavesOut() const {
    if (!masked) return false;
    if (!matched.load(std::memory_order_relaxed)) {
      matched.store(true, std::memory_order_relaxed);
    }
    return true;
  }
  // Whether a path that ends here has ever left something out.
  mutable std::atomic<bool> matched{false};
};

// A set of masks that many need, under a name of ours.
struct NamedMaskSet {
  std::string name;     // "@versions"
  std::string meaning;  // what its paths have in common, for people
  std::vector<std::string> paths;
};
// All of them. The paths of a set go into the keys that are made under it. A
// change of its paths makes older entries unreachable.
const std::vector<NamedMaskSet>& NamedMaskSets();

// The masks of a text that has them with commas between. A comma within quotes
// is a key's.
std::vector<std::string> SplitMasks(absl::string_view text);

// The error of Parse for paths that are right but too many.
inline constexpr char kTooManyMasks[] = "too many paths with `*` beside names";

enum class MaskRules {
  // Only paths that a cache may ignore: at least one element below an observed
  // or required resource's `resource`, but not its whole spec or metadata; or
  // at or below one named context key.
  kCache,
  // Any path of the request: for comparing recordings.
  kAnyPath,
};

// Reads one path. InvalidArgument says what is wrong with its spelling; that
// requests have such a path is not checked.
absl::StatusOr<MaskPath> ReadMaskPath(absl::string_view path);

// How many elements of the path name the object that it goes into, of which a
// mask may hide something; 0 if it goes into none. For
// `observed.composite.resource.spec.size` it is 3.
size_t HideableObject(const MaskPath& path);

class MaskSet {
 public:
  MaskSet();  // masks nothing
  // Paths and names of sets, in any mix. InvalidArgument says which one is
  // wrong, where and why.
  static absl::StatusOr<MaskSet> Parse(const std::vector<std::string>& paths,
                                       MaskRules rules = MaskRules::kCache);

  bool empty() const { return paths_.empty(); }
  // Sorted, in one spelling, without repetition and without paths that another
  // one covers: equal for sets that were written differently only.
  const std::vector<std::string>& canonical() const { return canonical_; }
  // The same paths, in the same order, split into elements.
  const std::vector<MaskPath>& paths() const { return paths_; }
  // Warnings for the operator, a line each: of masked context keys, and of what
  // is masked in the composite's spec, spec.crossplane aside.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Those of canonical() that have left nothing out of any request yet, in any
  // of the set's copies.
  std::vector<std::string> Unmatched() const;
  // The request's node; null if nothing is masked.
  const MaskNode* root() const { return root_.get(); }
  // The same with the paths to drift. Never null.
  const MaskNode* drift_root() const { return drift_root_.get(); }

 private:
  std::shared_ptr<const MaskNode> root_;
  std::shared_ptr<const MaskNode> drift_root_;
  std::vector<std::string> canonical_;
  std::vector<MaskPath> paths_;
  std::vector<std::string> warnings_;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_MASK_H_
