// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/mask_use.h"

#include <map>
#include <string>
#include <utility>

namespace fncache::proxy::serving {

std::vector<telemetry::MaskUse> UseOfMasks(const cache::key::MaskSet& masks) {
  std::map<std::string, bool> matched;  // masks that no set stands for yet
  for (const std::string& path : masks.canonical()) matched[path] = true;
  for (const std::string& path : masks.Unmatched()) matched[path] = false;
  const std::map<std::string, bool> all = matched;
  std::vector<telemetry::MaskUse> uses;
  for (const cache::key::NamedMaskSet& set : cache::key::NamedMaskSets()) {
    // Parse writes paths in canonical spelling, as in `all`.
    const auto parsed = cache::key::MaskSet::Parse({set.name});
    if (!parsed.ok()) continue;
    telemetry::MaskUse use;
    use.mask = set.name;
    use.paths = 0;
    for (const std::string& path : parsed->canonical()) {
      const auto there = all.find(path);
      if (there == all.end()) continue;
      ++use.paths;
      use.matched += there->second ? 1 : 0;
    }
    if (use.paths == 0) continue;
    // The set is among the masks if it adds nothing to them. Some of its paths
    // may lie below another mask, and are then not listed.
    std::vector<std::string> more = masks.canonical();
    more.push_back(set.name);
    const auto with = cache::key::MaskSet::Parse(more);
    if (!with.ok() || with->canonical() != masks.canonical()) continue;
    for (const std::string& path : parsed->canonical()) matched.erase(path);
    uses.push_back(std::move(use));
  }
  for (const std::string& path : masks.canonical()) {
    const auto alone = matched.find(path);
    if (alone == matched.end()) continue;
    uses.push_back({path, 1, alone->second ? size_t{1} : size_t{0}});
  }
  return uses;
}

}  // namespace fncache::proxy::serving
