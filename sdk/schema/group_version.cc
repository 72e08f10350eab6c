// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/group_version.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "text/object.h"
#include "text/quoted.h"

namespace fncache::sdk::schema {

absl::StatusOr<GroupVersion> ParseGroupVersion(absl::string_view api_version) {
  if (std::count(api_version.begin(), api_version.end(), '/') > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot parse apiVersion ", text::Quoted(api_version),
                     ": unexpected GroupVersion string: ", api_version));
  }
  return GroupVersion{std::string(text::GroupOf(api_version)),
                      std::string(text::VersionOf(api_version))};
}

}  // namespace fncache::sdk::schema
