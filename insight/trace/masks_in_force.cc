// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/masks_in_force.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "cache/key/mask.h"

namespace fncache::insight::trace {

using cache::key::MaskRules;
using cache::key::MaskSet;

absl::StatusOr<MasksInForce> MasksInForce::Of(
    const TraceHeader& header, const std::vector<std::string>& more) {
  std::map<std::string, std::vector<std::string>> texts;
  texts[""];
  for (const auto& [setting, value] : header.settings) {
    absl::string_view function = setting;
    if (setting == "mask") {
      function = "";
    } else if (!absl::ConsumePrefix(&function, "functions.") ||
               !absl::ConsumeSuffix(&function, ".mask")) {
      continue;
    }
    // A function with an empty list masks nothing: the list of all functions
    // does not apply to it.
    std::vector<std::string>& own = texts[std::string(function)];
    for (std::string& text : cache::key::SplitMasks(value)) {
      if (!MaskSet::Parse({text}, MaskRules::kAnyPath).ok()) continue;
      own.push_back(std::move(text));
    }
  }
  MasksInForce all;
  for (auto& [function, list] : texts) {
    list.insert(list.end(), more.begin(), more.end());
    auto set = MaskSet::Parse(list, MaskRules::kAnyPath);
    if (!set.ok()) return set.status();
    all.masks_.emplace(function, Masks{std::move(list),
                                       request::MaskMatcher(*std::move(set))});
  }
  return all;
}

const MasksInForce::Masks& MasksInForce::MasksOf(
    const std::string& function) const {
  const auto found = masks_.find(function);
  return found == masks_.end() ? masks_.at("") : found->second;
}

const std::vector<std::string>& MasksInForce::Texts(
    const std::string& function) const {
  return MasksOf(function).texts;
}

bool MasksInForce::Hide(const std::string& function,
                        absl::string_view path) const {
  return MasksOf(function).matcher.Masks(path);
}

bool MasksInForce::any() const {
  return std::any_of(masks_.begin(), masks_.end(),
                     [](const auto& one) { return !one.second.texts.empty(); });
}

}  // namespace fncache::insight::trace
