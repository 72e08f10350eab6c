// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/variation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/field_path.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"

namespace fncache::runner::probe {

std::string SpelledAsMask(absl::string_view path) {
  std::string mask;
  for (const auto& part : insight::request::SplitPath(path)) {
    mask = part.index || (part.name == "*" && !part.quoted)
               ? absl::StrCat(mask, ".*")
               : PathBelow(mask, part.name);
  }
  return mask;
}

void Variation::AddCall(const std::vector<absl::string_view>& changed) {
  const uint32_t call = calls_++;
  for (const absl::string_view path : changed) {
    if (insight::request::MaskFor(path).empty()) return;
  }
  for (const absl::string_view path : changed) {
    Path& kept = paths_[SpelledAsMask(path)];
    if (kept.path.empty()) kept.path = std::string(path);
    // Elements of one list are one path here.
    if (kept.calls.empty() || kept.calls.back() != call) {
      kept.calls.push_back(call);
    }
  }
}

std::vector<int> Variation::GroupsOf(const std::vector<Field>& fields) const {
  // The fields that changed most often come first.
  const auto before = [](const std::vector<uint32_t>& a,
                         const std::vector<uint32_t>& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  };
  std::map<std::vector<uint32_t>, int, decltype(before)> groups(before);
  const std::vector<uint32_t> never;
  const auto calls_of =
      [&](const Field& field) -> const std::vector<uint32_t>& {
    const auto found = paths_.find(field.mask);
    return found == paths_.end() ? never : found->second.calls;
  };
  for (const Field& field : fields) groups.emplace(calls_of(field), 0);
  int number = 0;
  for (auto& [calls, group] : groups) group = number++;
  std::vector<int> all;
  all.reserve(fields.size());
  for (const Field& field : fields) all.push_back(groups.at(calls_of(field)));
  return all;
}

}  // namespace fncache::runner::probe
