// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/space_saving.h"

#include <algorithm>

namespace fncache::insight::explain {

void SpaceSaving::Add(const std::string& what) {
  if (what.empty()) return;
  const auto found = counts_.find(what);
  if (found != counts_.end()) {
    ++found->second;
    return;
  }
  uint64_t count = 0;
  if (counts_.size() >= kCounted) {
    const auto rarest = std::min_element(
        counts_.begin(), counts_.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    count = rarest->second;
    counts_.erase(rarest);
  }
  counts_[what] = count + 1;
}

SpaceSaving::Top SpaceSaving::Most(size_t most) const {
  Top top(counts_.begin(), counts_.end());
  std::stable_sort(top.begin(), top.end(), [](const auto& a, const auto& b) {
    return a.second > b.second;
  });
  if (top.size() > most) top.resize(most);
  return top;
}

}  // namespace fncache::insight::explain
