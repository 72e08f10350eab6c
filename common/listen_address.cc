// SPDX-License-Identifier: Apache-2.0
#include "common/listen_address.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fncache {

std::string WithHost(absl::string_view address) {
  return absl::StrCat(absl::StartsWith(address, ":") ? "0.0.0.0" : "", address);
}

}  // namespace fncache
