// SPDX-License-Identifier: Apache-2.0
#include "common/setting.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace fncache {

const std::string& SettingValue::text() const {
  static const std::string* const kEmpty = new std::string;
  return values.empty() ? *kEmpty : values.front();
}

absl::Status SettingError(const SettingValue& value, absl::string_view why) {
  // A flag and a variable have the setting's name, so that its key would name
  // it a second time.
  const bool named = value.where == FlagName(value.key) ||
                     value.where == EnvironmentName(value.key);
  return absl::InvalidArgumentError(absl::StrCat(
      value.where, ": ", named ? "" : absl::StrCat(value.key, ": "), why));
}

std::string FlagName(absl::string_view key) {
  return absl::StrCat("--", absl::StrReplaceAll(key, {{".", "-"}, {"_", "-"}}));
}

std::string EnvironmentName(absl::string_view key) {
  return absl::StrCat("FNCACHE_", absl::AsciiStrToUpper(
                                      absl::StrReplaceAll(key, {{".", "_"}})));
}

}  // namespace fncache
