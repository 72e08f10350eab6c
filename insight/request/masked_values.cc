// SPDX-License-Identifier: Apache-2.0
#include "insight/request/masked_values.h"

#include <limits>

#include "xxhash.h"

namespace fncache::insight::request {
namespace {

using cache::key::MaskElement;
using cache::key::MaskNode;
using cache::key::MaskPath;

constexpr size_t kNotHidden = std::numeric_limits<size_t>::max();

uint64_t HashOf(const Node& node) {
  const uint64_t what[] = {node.path, static_cast<uint64_t>(node.kind),
                           node.value};
  return XXH3_64bits(what, sizeof what);
}

}  // namespace

size_t MaskedValues::MaskOf(const cache::key::MaskSet& masks,
                            size_t node) const {
  const absl::Span<const Node> nodes = nodes_.nodes();
  size_t depth = 1;
  for (uint32_t at = nodes[node].parent; at != kNoParent;
       at = nodes[at].parent) {
    ++depth;
  }
  const std::vector<MaskPath>& paths = masks.paths();
  for (size_t mask = 0; mask < paths.size(); ++mask) {
    if (paths[mask].size() != depth) continue;
    auto at = static_cast<uint32_t>(node);
    size_t left = depth;
    for (; left > 0; --left, at = nodes[at].parent) {
      const MaskElement& element = paths[mask][left - 1];
      if (element.any) continue;
      if (nodes[at].index >= 0 || nodes[at].name != element.name) break;
    }
    if (left == 0) return mask;
  }
  return kNotHidden;
}

bool MaskedValues::Read(const cache::key::MaskSet& masks,
                        absl::Span<const absl::string_view> slices,
                        std::vector<uint64_t>* values) {
  values->assign(masks.canonical().size(), 0);
  if (!nodes_.Read(slices)) return false;
  const absl::Span<const Node> nodes = nodes_.nodes();
  walk_.assign(nodes.size(), nullptr);
  hidden_by_.assign(nodes.size(), kNotHidden);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    const bool top = node.parent == kNoParent;
    size_t mask = top ? kNotHidden : hidden_by_[node.parent];
    if (mask == kNotHidden) {
      const MaskNode* const above = top ? masks.root() : walk_[node.parent];
      // No mask names unknown fields: they share the fate of their message.
      if (above == nullptr || node.kind == NodeKind::kUnknown) continue;
      walk_[i] = node.index >= 0 ? above->element() : above->Find(node.name);
      if (walk_[i] == nullptr || !walk_[i]->masked) continue;
      mask = MaskOf(masks, i);
    }
    if (mask == kNotHidden) continue;
    hidden_by_[i] = mask;
    // A sum, because a Struct's children come in the order of its keys, which
    // differs from the order of two paths. A list whose elements are all hidden
    // leaves only their number, which is not hidden.
    if (node.kind != NodeKind::kMap) (*values)[mask] += HashOf(node);
  }
  return true;
}

}  // namespace fncache::insight::request
