// SPDX-License-Identifier: Apache-2.0
#include "insight/request/response_difference.h"

#include "insight/request/match_paths.h"

namespace fncache::insight::request {

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
  // Nodes at or below a node that the other response lacks.
  std::vector<bool> ours_alone(ours.size());
  std::vector<bool> theirs_alone(theirs.size());
  MatchPaths(PathsOf(ours), PathsOf(theirs), [&](size_t i, size_t j) {
    if (differences.size() >= most) return;
    if (i != kNoMatch && j != kNoMatch) {
      // Two lists of unequal length differ in their elements.
      if (ours[i].kind == theirs[j].kind && (ours[i].value == theirs[j].value ||
                                             ours[i].kind == NodeKind::kList)) {
        return;
      }
      differences.push_back({first_.Spell(i), first_.SpellMask(i),
                             Shown(ours[i]), Shown(theirs[j])});
      return;
    }
    const bool in_first = i != kNoMatch;
    const size_t at = in_first ? i : j;
    const Node& node = in_first ? ours[at] : theirs[at];
    std::vector<bool>& alone = in_first ? ours_alone : theirs_alone;
    const bool below = node.parent != kNoParent && alone[node.parent];
    // A map exists as long as it has an entry.
    const bool is_map = node.kind == NodeKind::kMap;
    alone[at] = below || !is_map;
    if (below || is_map) return;
    const RequestNodes& nodes = in_first ? first_ : second_;
    differences.push_back({nodes.Spell(at), nodes.SpellMask(at),
                           in_first ? Shown(node) : "absent",
                           in_first ? "absent" : Shown(node)});
  });
  return differences;
}

}  // namespace fncache::insight::request
