// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/proposed_mask.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cache/key/field_path.h"
#include "cache/key/mask.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"

namespace fncache::insight::explain {
namespace {

struct NamedMatcher {
  std::string name;
  request::MaskMatcher matcher;
};

const std::vector<NamedMatcher>& NamedMatchers() {
  static const auto* const matchers = [] {
    auto* all = new std::vector<NamedMatcher>;
    for (const cache::key::NamedMaskSet& set : cache::key::NamedMaskSets()) {
      all->push_back({set.name, request::MaskMatcher(
                                    *cache::key::MaskSet::Parse({set.name}))});
    }
    return all;
  }();
  return *matchers;
}

// The same path with an index in place of each `*`, as requests have it.
std::string WithIndices(absl::string_view path) {
  std::string out;
  for (const request::PathPart& part : request::SplitPath(path)) {
    if (part.index || (part.name == "*" && !part.quoted)) {
      absl::StrAppend(&out, "[0]");
    } else {
      absl::StrAppend(&out, out.empty() ? "" : ".",
                      cache::key::SpellKey(part.name));
    }
  }
  return out;
}

}  // namespace

std::string ProposedMask(absl::string_view path) {
  const std::string indexed = WithIndices(path);
  for (const NamedMatcher& set : NamedMatchers()) {
    if (set.matcher.Masks(indexed)) return set.name;
  }
  return request::MaskFor(path);
}

bool HidesWholeSection(absl::string_view mask) {
  return absl::EndsWith(mask, ".resource.status") ||
         absl::EndsWith(mask, ".resource.status.conditions") ||
         absl::EndsWith(mask, ".resource.spec") ||
         absl::EndsWith(mask, ".resource.metadata") ||
         absl::EndsWith(mask, ".resource");
}

}  // namespace fncache::insight::explain
