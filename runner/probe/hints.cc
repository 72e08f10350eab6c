// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/hints.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "cache/key/mask.h"
#include "cache/key/read_fields.h"
#include "insight/request/compare.h"
#include "proto/function_v1.pb.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::probe {
namespace {

// The request without what does not count; nullopt if it cannot be made.
absl::optional<std::string> Counting(const ReceivedHint::Request& request,
                                     const cache::key::MaskNode* reads) {
  const std::string bytes = text::DeterministicBytes(request);
  std::string rest(bytes.size(), '\0');
  const char* const end = cache::key::WriteReadFields(bytes, reads, &rest[0]);
  if (end == nullptr) return absl::nullopt;
  rest.resize(end - rest.data());
  return rest;
}

}  // namespace

ReceivedHint::ReceivedHint(const absl::optional<std::string>& metadata) {
  if (!metadata) return;
  auto hint = cache::key::Hint::Parse({absl::string_view(*metadata)});
  if (hint.ok()) {
    hint_ = *std::move(hint);
  } else {
    refused_ = std::string(hint.status().message());
  }
}

bool ReceivedHint::SaysSame(const Request& a, const Request& b) const {
  if (!hint_) return false;
  const auto of_a = Counting(a, hint_->root());
  return of_a && of_a == Counting(b, hint_->root());
}

void UnnamedReads::Add(const std::vector<Change>& changes) {
  Group group;
  for (int i = 0; i < static_cast<int>(changes.size()); ++i) {
    if (changes[i] != Change::kKeep) group.push_back(i);
  }
  const auto smaller = [&](const Group& one) { return IsWithin(one, group); };
  if (absl::c_any_of(groups_, smaller)) return;
  groups_.erase(
      std::remove_if(groups_.begin(), groups_.end(),
                     [&](const Group& one) { return IsWithin(group, one); }),
      groups_.end());
  groups_.push_back(std::move(group));
}

bool UnnamedReads::IsWithin(const Group& group, const Group& of) const {
  return absl::c_all_of(group, [&](int field) {
    return absl::c_any_of(of, [&](int other) {
      return other <= field && field < fields_[other].end;
    });
  });
}

std::set<std::string> UnnamedReads::Masks() const {
  constexpr size_t kMost = 3;  // fields of a group that are spelled
  std::set<std::string> masks;
  for (const Group& group : groups_) {
    std::string text;
    for (size_t i = 0; i < std::min(group.size(), kMost); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : " with ", fields_[group[i]].mask);
    }
    if (group.size() > kMost) {
      absl::StrAppend(&text, " and ", group.size() - kMost,
                      " more, or some of them");
    }
    masks.insert(std::move(text));
  }
  return masks;
}

HintFindings CompareHints(const std::vector<ReceivedHint>& hints,
                          const std::vector<Field>& fields,
                          const std::vector<Search::Result>& results) {
  HintFindings found;
  found.answers = static_cast<int>(hints.size());
  std::set<std::string> paths;
  for (const ReceivedHint& one : hints) {
    if (found.refused.empty()) found.refused = one.refused();
    if (one.hint() == nullptr) continue;
    found.pure = (found.hints++ == 0 || found.pure) && one.hint()->pure();
    paths.insert(one.hint()->reads().begin(), one.hint()->reads().end());
  }
  for (const std::string& path : paths) {
    const auto mask =
        cache::key::MaskSet::Parse({path}, cache::key::MaskRules::kAnyPath);
    HintFindings::Path one = {path, false};
    if (mask.ok()) {
      const insight::request::MaskMatcher at(*mask);
      for (size_t i = 0; i < fields.size() && !one.read; ++i) {
        one.read =
            results[i] == Search::Result::kRead && at.Masks(fields[i].path);
      }
    }
    found.paths.push_back(std::move(one));
  }
  return found;
}

}  // namespace fncache::runner::probe
