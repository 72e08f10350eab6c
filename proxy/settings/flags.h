// SPDX-License-Identifier: Apache-2.0
// Parses the command line of `fncache serve` with CLI11 and the table's flags.
#ifndef FNCACHE_PROXY_SETTINGS_FLAGS_H_
#define FNCACHE_PROXY_SETTINGS_FLAGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace fncache::proxy::settings {

struct ServeFlags {
  bool help = false;
  bool check = false;
  bool check_shared = false;
  std::vector<std::string> config;  // at most one
  // Keys of the table and the values of their flags, unchecked.
  std::vector<std::pair<std::string, std::string>> settings;
};

// `arguments` without the command's name. InvalidArgument, one line, for
// unknown flags and missing values.
absl::StatusOr<ServeFlags> ParseServeFlags(
    const std::vector<std::string>& arguments);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_FLAGS_H_
