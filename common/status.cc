// SPDX-License-Identifier: Apache-2.0
#include "common/status.h"

#include "absl/strings/str_cat.h"

namespace fncache {

absl::Status Prefixed(absl::string_view prefix, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(prefix, ": ", status.message()));
}

}  // namespace fncache
