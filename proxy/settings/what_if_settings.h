// SPDX-License-Identifier: Apache-2.0
// The daemon's settings for `fncache replay`. A what-if's settings have the
// names and the accepted values of the same table.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_WHAT_IF_SETTINGS_H_
#define FNCACHE_PROXY_SETTINGS_WHAT_IF_SETTINGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "insight/whatif/settings.h"

namespace fncache::proxy::settings {

class WhatIfSettings final : public insight::whatif::SettingsReader {
 public:
  std::vector<std::string> Names() const override;
  bool Takes(absl::string_view name) const override;
  std::vector<std::string> Split(absl::string_view name,
                                 absl::string_view text) const override;
  absl::StatusOr<insight::whatif::CacheSettings> Read(
      const insight::whatif::SettingTexts& texts) const override;
  std::vector<std::string> NotPlayed(
      const std::map<std::string, std::string>& settings) const override;
};

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_WHAT_IF_SETTINGS_H_
