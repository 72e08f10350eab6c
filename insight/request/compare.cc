// SPDX-License-Identifier: Apache-2.0
#include "insight/request/compare.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/field_path.h"

namespace fncache::insight::request {
namespace {

// The end of a path of a message's unknown fields.
constexpr absl::string_view kUnknownFields = "[?]";

}  // namespace

std::vector<PathSegment> SplitPath(absl::string_view path) {
  std::vector<PathSegment> segments;
  while (!path.empty()) {
    if (path[0] == '[') {
      const size_t end = path.find(']');
      if (end == absl::string_view::npos ||
          (path != kUnknownFields &&
           (segments.empty() || !IsAllDigits(path.substr(1, end - 1))))) {
        return {};
      }
      segments.push_back({std::string(path.substr(0, end + 1)), true});
      path.remove_prefix(end + 1);
      if (!path.empty() && path[0] != '.' && path[0] != '[') return {};
      continue;
    }
    if (!segments.empty()) {
      if (path[0] != '.') return {};
      path.remove_prefix(1);
      if (path.empty()) return {};
    }
    if (path[0] == '"') {
      auto key = TakeQuoted(&path);
      if (!key.ok()) return {};
      segments.push_back({*std::move(key), false, true});
      continue;
    }
    const size_t end = path.find_first_of(".[");
    if (end == 0) return {};
    segments.push_back({std::string(path.substr(0, end)), false});
    path.remove_prefix(end == absl::string_view::npos ? path.size() : end);
  }
  return segments;
}

MaskMatcher::MaskMatcher(cache::key::MaskSet masks)
    : masks_(std::move(masks)) {}

bool MaskMatcher::Masks(absl::string_view path) const {
  const cache::key::MaskNode* node = masks_.root();
  if (node == nullptr) return false;
  for (const PathSegment& segment : SplitPath(path)) {
    // No mask names unknown fields: they share the fate of their message.
    if (segment.index && segment.name == kUnknownFields) return false;
    node = segment.index ? node->element() : node->Find(segment.name);
    if (node == nullptr) return false;
    if (node->masked) return true;
  }
  return false;
}

}  // namespace fncache::insight::request
