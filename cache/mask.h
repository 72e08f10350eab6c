// MaskSet: the paths of a request that are left out of its key.
//
// See DESIGN's key contract for the grammar (field names and map keys, `*`,
// quoted keys, Struct's inner fields unwritten) and for what may be masked.
//
// Immutable after Parse; thread-safe.
#ifndef FNCACHE_CACHE_MASK_H_
#define FNCACHE_CACHE_MASK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::cache {

struct MaskNode;  // the paths as a trie; see mask.cc and digest.cc

enum class MaskRules {
  // What a cache may ignore: at least one element below an observed or required
  // resource's `resource`, or at or below one named context key.
  kCache,
  // Any path of the request: for comparing recordings.
  kAnyPath,
};

class MaskSet {
 public:
  MaskSet();  // masks nothing
  // InvalidArgument says which path is wrong, where and why.
  static absl::StatusOr<MaskSet> Parse(const std::vector<std::string>& paths,
                                       MaskRules rules = MaskRules::kCache);

  bool empty() const { return root_ == nullptr; }
  // Sorted, without repetition, in one spelling: equal for equal sets.
  const std::vector<std::string>& canonical() const { return canonical_; }
  // What an operator should know, a line each (masked context keys).
  const std::vector<std::string>& warnings() const { return warnings_; }
  const MaskNode* root() const { return root_.get(); }

 private:
  std::shared_ptr<const MaskNode> root_;
  std::vector<std::string> canonical_;
  std::vector<std::string> warnings_;
};

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_MASK_H_
