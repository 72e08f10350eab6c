// SPDX-License-Identifier: Apache-2.0
// MatchPaths: pairs the nodes of two messages by their paths. All comparisons
// of nodes are made with it.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_INSIGHT_REQUEST_MATCH_PATHS_H_
#define FNCACHE_INSIGHT_REQUEST_MATCH_PATHS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "insight/request/nodes.h"

namespace fncache::insight::request {

inline constexpr size_t kNoMatch = static_cast<size_t>(-1);

inline std::vector<uint64_t> PathsOf(absl::Span<const Node> nodes) {
  std::vector<uint64_t> paths;
  paths.reserve(nodes.size());
  for (const Node& node : nodes) paths.push_back(node.path);
  return paths;
}

// Calls pair(i, j) for each node i of `a`, in order, with the node j of `b`
// that has its path, or kNoMatch. Then it calls pair(kNoMatch, j) for the other
// nodes of `b`, in order.
//
// The unknown fields of a Value and of the Struct in it have one path. The
// second of them is paired with the second.
template <typename Pair>
void MatchPaths(absl::Span<const uint64_t> a, absl::Span<const uint64_t> b,
                const Pair& pair) {
  constexpr uint64_t kSecond = 1;  // is added to the path of a second node
  size_t same = 0;
  for (; same < a.size() && same < b.size() && a[same] == b[same]; ++same) {
    pair(same, same);
  }
  if (same == a.size() && same == b.size()) return;
  // From here on they have other nodes, or the same ones in another order.
  absl::flat_hash_map<uint64_t, uint32_t> rest;
  rest.reserve(b.size() - same);
  for (size_t j = same; j < b.size(); ++j) {
    const auto at = static_cast<uint32_t>(j);
    if (!rest.emplace(b[j], at).second) rest.emplace(b[j] + kSecond, at);
  }
  std::vector<bool> paired(b.size());
  for (size_t i = same; i < a.size(); ++i) {
    auto found = rest.find(a[i]);
    if (found != rest.end() && paired[found->second]) {
      found = rest.find(a[i] + kSecond);
    }
    if (found == rest.end() || paired[found->second]) {
      pair(i, kNoMatch);
      continue;
    }
    paired[found->second] = true;
    pair(i, size_t{found->second});
  }
  for (size_t j = same; j < b.size(); ++j) {
    if (!paired[j]) pair(kNoMatch, j);
  }
}

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_MATCH_PATHS_H_
