// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/request_reader.h"

#include "absl/hash/hash.h"

namespace fncache::insight::explain {
namespace {

using cache::key::MaskNode;
using request::kNoParent;
using request::Node;
using request::NodeKind;

uint64_t ValueOf(const Node& node) {
  if (node.kind == NodeKind::kMap) return kNotCompared;
  const uint64_t value = absl::HashOf(static_cast<int>(node.kind), node.value);
  return value == kNotCompared ? 1 : value;
}

}  // namespace

uint64_t HashOfPaths(const std::vector<uint64_t>& paths) {
  return absl::HashOf(
      absl::string_view(reinterpret_cast<const char*>(paths.data()),
                        paths.size() * sizeof paths[0]));
}

bool RequestReader::Read(const cache::key::MaskSet& masks,
                         absl::Span<const absl::string_view> slices) {
  if (!nodes.Read(slices)) return false;
  const absl::Span<const Node> all = nodes.nodes();
  at.clear();
  paths.clear();
  values.clear();
  walk_.assign(masks.empty() ? 0 : all.size(), nullptr);
  hidden_.assign(masks.empty() ? 0 : all.size(), false);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!masks.empty() && Hidden(masks, i)) continue;
    at.push_back(static_cast<uint32_t>(i));
    paths.push_back(all[i].path);
    values.push_back(ValueOf(all[i]));
  }
  shape = HashOfPaths(paths);
  return true;
}

bool RequestReader::Hidden(const cache::key::MaskSet& masks, size_t i) {
  const Node& node = nodes.nodes()[i];
  const bool top = node.parent == kNoParent;
  if (!top && hidden_[node.parent]) {
    hidden_[i] = true;
    return true;
  }
  const MaskNode* const above = top ? masks.root() : walk_[node.parent];
  // No mask names unknown fields: they share the fate of their message.
  if (above == nullptr || node.kind == NodeKind::kUnknown) return false;
  walk_[i] = node.index >= 0 ? above->element() : above->Find(node.name);
  hidden_[i] = walk_[i] != nullptr && walk_[i]->masked;
  return hidden_[i];
}

}  // namespace fncache::insight::explain
