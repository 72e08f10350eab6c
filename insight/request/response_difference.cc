// SPDX-License-Identifier: Apache-2.0
#include "insight/request/response_difference.h"

#include <cstdint>

#include "absl/container/flat_hash_map.h"

namespace fncache::insight::request {
namespace {

// The unknown fields of a Value and of the Struct in it have one path. Those of
// the second node get the next number.
constexpr uint64_t kNext = 1;

using ByPath = absl::flat_hash_map<uint64_t, uint32_t>;

ByPath Index(absl::Span<const Node> nodes) {
  ByPath index;
  index.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    // A map exists as long as it has an entry.
    if (nodes[i].kind == NodeKind::kMap) continue;
    const auto at = static_cast<uint32_t>(i);
    if (!index.emplace(nodes[i].path, at).second) {
      index.emplace(nodes[i].path + kNext, at);
    }
  }
  return index;
}

uint64_t PathOf(const ByPath& index, absl::Span<const Node> nodes, size_t i) {
  const uint64_t path = nodes[i].path;
  return index.find(path)->second == i ? path : path + kNext;
}

// Whether the other response lacks the parent of `node`, which is the
// difference.
bool ParentIsMissing(absl::Span<const Node> nodes, const Node& node,
                     const ByPath& other) {
  uint32_t parent = node.parent;
  while (parent != kNoParent && nodes[parent].kind == NodeKind::kMap) {
    parent = nodes[parent].parent;
  }
  return parent != kNoParent && other.count(nodes[parent].path) == 0;
}

}  // namespace

std::string ResponseComparer::Shown(const Node& node) {
  switch (node.kind) {
    case NodeKind::kMessage:
    case NodeKind::kStruct:
    case NodeKind::kList:
    case NodeKind::kSecret:
    case NodeKind::kMap:
      return "present";
    default:
      break;
  }
  // The kind counts, too.
  std::string bytes(1, static_cast<char>(node.kind));
  bytes.append(node.bytes.data(), node.bytes.size());
  cache::key::Key key;
  if (!hash_.Hash(bytes, &scratch_, &key)) return "present";
  return key.Hex().substr(0, 8);
}

std::vector<ResponseDifference> ResponseComparer::Compare(
    absl::Span<const absl::string_view> first,
    absl::Span<const absl::string_view> second, size_t most) {
  std::vector<ResponseDifference> differences;
  if (!first_.ReadResponse(first) || !second_.ReadResponse(second)) {
    return differences;
  }
  const absl::Span<const Node> ours = first_.nodes();
  const absl::Span<const Node> theirs = second_.nodes();
  const ByPath our_paths = Index(ours);
  const ByPath their_paths = Index(theirs);
  for (size_t i = 0; i < ours.size() && differences.size() < most; ++i) {
    const Node& node = ours[i];
    if (node.kind == NodeKind::kMap) continue;
    const auto found = their_paths.find(PathOf(our_paths, ours, i));
    if (found != their_paths.end()) {
      const Node& other = theirs[found->second];
      // Two lists of unequal length differ in their elements.
      if (other.kind == node.kind &&
          (other.value == node.value || node.kind == NodeKind::kList)) {
        continue;
      }
      differences.push_back(
          {first_.Spell(i), first_.SpellMask(i), Shown(node), Shown(other)});
    } else if (!ParentIsMissing(ours, node, their_paths)) {
      differences.push_back(
          {first_.Spell(i), first_.SpellMask(i), Shown(node), "absent"});
    }
  }
  for (size_t i = 0; i < theirs.size() && differences.size() < most; ++i) {
    const Node& node = theirs[i];
    if (node.kind == NodeKind::kMap ||
        our_paths.count(PathOf(their_paths, theirs, i)) > 0 ||
        ParentIsMissing(theirs, node, our_paths)) {
      continue;
    }
    differences.push_back(
        {second_.Spell(i), second_.SpellMask(i), "absent", Shown(node)});
  }
  return differences;
}

}  // namespace fncache::insight::request
