// SPDX-License-Identifier: Apache-2.0
// GroupVersion: an apiVersion in its two parts, as OpenAPI documents are found
// by.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_SDK_SCHEMA_GROUP_VERSION_H_
#define FNCACHE_SDK_SCHEMA_GROUP_VERSION_H_

#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::sdk::schema {

struct GroupVersion {
  std::string group;  // "" is the core group
  std::string version;

  bool operator<(const GroupVersion& other) const {
    return std::tie(group, version) < std::tie(other.group, other.version);
  }
  bool operator==(const GroupVersion& other) const {
    return group == other.group && version == other.version;
  }
};

// The parts of an apiVersion, read as the reference runner reads it: "apps/v1"
// has a group, "v1" has none, "/" is nothing at all. InvalidArgument, in that
// runner's words, if it has two slashes.
absl::StatusOr<GroupVersion> ParseGroupVersion(absl::string_view api_version);

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_SDK_SCHEMA_GROUP_VERSION_H_
