// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/problems.h"

#include <algorithm>
#include <utility>

#include "absl/strings/strip.h"
#include "common/field_path.h"

namespace fncache::sdk::schema {

using function::Problem;

void Problems::Add(const Node* node, absl::optional<absl::string_view> key,
                   std::string text) {
  if (full()) return;
  const std::string whole = PathInDocument(node);
  absl::string_view below = whole;
  absl::ConsumePrefix(&below, root_path_);
  if (!root_path_.empty()) absl::ConsumePrefix(&below, ".");
  std::string path =
      key.has_value() ? PathBelow(below, *key) : std::string(below);
  const auto same = [&](const Problem& known) {
    return known.path == path && known.text == text;
  };
  if (std::any_of(problems_.begin(), problems_.end(), same)) return;
  problems_.push_back({std::move(path), std::move(text)});
}

std::vector<Problem> Problems::Take() {
  std::stable_sort(
      problems_.begin(), problems_.end(),
      [](const Problem& a, const Problem& b) { return a.path < b.path; });
  return std::move(problems_);
}

}  // namespace fncache::sdk::schema
