// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/proposed_mask.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/field_path.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"

namespace fncache::insight::explain {
namespace {

using request::PathSegment;

constexpr absl::string_view kVersion = ".metadata.resourceVersion";
constexpr absl::string_view kManagers = ".metadata.managedFields";

// The first `count` segments as a mask; "" if no mask can spell them: unknown
// fields, and keys with the names of sets.
std::string Spelled(const std::vector<PathSegment>& segments, size_t count) {
  std::string mask;
  for (size_t i = 0; i < count; ++i) {
    const PathSegment& segment = segments[i];
    if (segment.name == "[?]" ||
        (!segment.name.empty() && segment.name[0] == '@')) {
      return "";
    }
    if (segment.index || (segment.name == "*" && !segment.quoted)) {
      absl::StrAppend(&mask, ".*");
    } else {
      mask = PathBelow(mask, segment.name);
    }
  }
  return mask;
}

}  // namespace

bool IsLeaf(request::NodeKind kind) {
  return kind == request::NodeKind::kString ||
         kind == request::NodeKind::kNumber || kind == request::NodeKind::kBool;
}

std::string ProposedMask(absl::string_view path, bool leaf) {
  const std::vector<PathSegment> segments = request::SplitPath(path);
  const size_t object = request::ObjectSegments(segments);
  if (object == 0) {
    // A context key: its contents are unknown.
    const bool context = segments.size() > 1 && segments[0].name == "context";
    return context && leaf ? Spelled(segments, segments.size()) : "";
  }
  if (segments.size() <= object || segments[0].name == "desired") return "";
  const auto is = [&](size_t at, absl::string_view name) {
    at += object;
    return at < segments.size() && !segments[at].index &&
           segments[at].name == name;
  };
  if (is(0, "metadata") &&
      (is(1, "resourceVersion") || is(1, "managedFields"))) {
    return Spelled(segments, object + 2);
  }
  if (is(0, "status") && is(1, "conditions")) {
    const bool time =
        segments.size() == object + 4 && is(3, "lastTransitionTime");
    return time && leaf ? "@times" : "";
  }
  const bool generation =
      (is(0, "metadata") && is(1, "generation")) ||
      std::any_of(segments.begin() + static_cast<std::ptrdiff_t>(object),
                  segments.end(), [](const PathSegment& segment) {
                    return segment.name == "observedGeneration";
                  });
  const bool asked_for = object == 3 && is(0, "spec") && !is(1, "crossplane");
  const bool whole =
      segments.size() == object + 1 && (is(0, "spec") || is(0, "metadata"));
  return leaf && !generation && !asked_for && !whole
             ? Spelled(segments, segments.size())
             : "";
}

std::vector<std::string> ProposedTogether(const std::string& mask) {
  absl::string_view object = mask;
  if (!absl::ConsumeSuffix(&object, kVersion) &&
      !absl::ConsumeSuffix(&object, kManagers)) {
    return {mask};
  }
  return {absl::StrCat(object, kManagers), absl::StrCat(object, kVersion)};
}

}  // namespace fncache::insight::explain
