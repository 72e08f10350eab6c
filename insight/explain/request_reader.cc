// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/request_reader.h"

#include <algorithm>

#include "absl/hash/hash.h"

namespace fncache::insight::explain {
namespace {

using cache::key::MaskNode;
using request::kNoParent;
using request::Node;
using request::NodeDrift;
using request::NodeKind;

uint64_t ValueOf(const Node& node) {
  if (node.kind == NodeKind::kMap) return kNotCompared;
  const uint64_t value = absl::HashOf(static_cast<int>(node.kind), node.value);
  return value == kNotCompared ? 1 : value;
}

// Stands for all drift of this type.
uint64_t MarkOf(NodeDrift drift) {
  // Values of nodes are hashed with their kinds, which are positive.
  const uint64_t value = absl::HashOf(-static_cast<int>(drift), uint64_t{0});
  return value == kNotCompared ? 1 : value;
}

// A hash of both, which are hashes themselves.
uint64_t MixOf(uint64_t path, uint64_t value) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const uint64_t mixed = (path ^ (value * kOdd)) * kOdd;
  return mixed ^ (mixed >> 32);
}

}  // namespace

uint64_t HashOfPaths(const std::vector<uint64_t>& paths) {
  return absl::HashOf(
      absl::string_view(reinterpret_cast<const char*>(paths.data()),
                        paths.size() * sizeof paths[0]));
}

bool RequestReader::Read(const cache::key::MaskSet& masks,
                         absl::Span<const absl::string_view> slices,
                         bool tuned) {
  if (!nodes.Read(slices)) return false;
  const absl::Span<const Node> all = nodes.nodes();
  drifts_.Read(all);
  driftless = 0;
  at.clear();
  paths.clear();
  values.clear();
  walk_.assign(masks.empty() ? 0 : all.size(), nullptr);
  hidden_.assign(masks.empty() ? 0 : all.size(), false);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!masks.empty() && Hidden(masks, i)) continue;
    const NodeDrift drift = drifts_[i];
    const bool is_drift = drift != NodeDrift::kNone;
    const uint64_t value = is_drift && tuned ? MarkOf(drift) : ValueOf(all[i]);
    if (drift != NodeDrift::kInside && value != kNotCompared) {
      driftless +=
          MixOf(all[i].path, is_drift && !tuned ? MarkOf(drift) : value);
    }
    if (tuned && drift == NodeDrift::kInside) continue;
    at.push_back(static_cast<uint32_t>(i));
    paths.push_back(all[i].path);
    values.push_back(value);
  }
  driftless = std::max<uint64_t>(driftless, 1);
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
