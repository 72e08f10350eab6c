// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/function_state.h"

#include <set>
#include <string>
#include <utility>

#include "common/log.h"

namespace fncache::proxy::serving {
namespace {

// Sets of masks stand under their names, and only where no path of theirs
// matched: few functions are sent all that a set is of.
std::vector<std::string> UnmatchedMasks(const cache::key::MaskSet& masks) {
  std::set<std::string> unmatched;
  for (std::string& path : masks.Unmatched()) unmatched.insert(std::move(path));
  const std::set<std::string> all(masks.canonical().begin(),
                                  masks.canonical().end());
  std::vector<std::string> named;
  for (const cache::key::NamedMaskSet& set : cache::key::NamedMaskSets()) {
    // In the spelling of the others.
    const auto parsed = cache::key::MaskSet::Parse({set.name});
    if (!parsed.ok()) continue;
    size_t there = 0, missed = 0;
    for (const std::string& path : parsed->canonical()) {
      there += all.count(path);
      missed += unmatched.count(path);
    }
    if (there == 0) continue;
    // The set is among the masks if it adds nothing to them; some of its paths
    // may lie below another mask, and are not there by themselves.
    std::vector<std::string> more = masks.canonical();
    more.push_back(set.name);
    const auto with = cache::key::MaskSet::Parse(more);
    if (!with.ok() || with->canonical() != masks.canonical()) continue;
    for (const std::string& path : parsed->canonical()) unmatched.erase(path);
    if (missed == there) named.push_back(set.name);
  }
  named.insert(named.end(), unmatched.begin(), unmatched.end());
  return named;
}

}  // namespace

void FunctionState::TryMasks() {
  constexpr int kTrial = 1000;
  if (tried_masks_.load(std::memory_order_relaxed) >= kTrial) return;
  if (tried_masks_.fetch_add(1, std::memory_order_relaxed) + 1 != kTrial) {
    return;
  }
  for (const std::string& mask : UnmatchedMasks(options.masks)) {
    Log(LogLevel::kWarning,
        "a mask matched nothing in the function's first 1,000 requests",
        {{"function", options.name}, {"mask", mask}});
  }
}

FunctionStates::FunctionStates(const settings::FunctionOptions& options,
                               cache::store::TieredStore* store)
    : store_(store), states_(std::make_shared<FunctionState>(options, store)) {}

void FunctionStates::Replace(const settings::FunctionOptions& options) {
  states_.Replace(
      std::make_shared<FunctionState>(options, store_, Newest()->shadow));
}

}  // namespace fncache::proxy::serving
