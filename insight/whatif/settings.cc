// SPDX-License-Identifier: Apache-2.0
#include "insight/whatif/settings.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fncache::insight::whatif {

const FunctionSettings& CacheSettings::Of(const std::string& function) const {
  const auto found = functions.find(function);
  return found == functions.end() ? defaults : found->second;
}

SettingTexts Overlaid(SettingTexts base, const SettingTexts& over) {
  for (const auto& [name, texts] : over) {
    if (!absl::StartsWith(name, "functions.")) {
      const std::string ending = absl::StrCat(".", name);
      for (auto it = base.begin(); it != base.end();) {
        const bool covered = absl::StartsWith(it->first, "functions.") &&
                             absl::EndsWith(it->first, ending);
        it = covered ? base.erase(it) : std::next(it);
      }
    }
    base[name] = texts;
  }
  return base;
}

}  // namespace fncache::insight::whatif
