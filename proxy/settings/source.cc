// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/source.h"

#include "common/file.h"
#include "common/yaml.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy::settings {

absl::StatusOr<std::string> SettingsSource::ReadFile() const {
  return ReadSmallFile(file_, kMaxYamlBytes);
}

absl::StatusOr<EffectiveSettings> SettingsSource::Resolve(
    absl::string_view text) const {
  SettingsInput input;
  input.flags = flags_;
  input.environment =
      [this](const std::string& name) -> absl::optional<std::string> {
    const auto found = environment_.find(name);
    if (found == environment_.end()) return absl::nullopt;
    return found->second;
  };
  input.file_name = file_;
  if (!file_.empty()) {
    absl::StatusOr<YamlNode> parsed = ParseYaml(text, file_);
    if (!parsed.ok()) return parsed.status();
    input.file = *std::move(parsed);
  }
  absl::StatusOr<ResolvedSettings> resolved = ServeSettings().Resolve(input);
  if (!resolved.ok()) return resolved.status();
  EffectiveSettings effective;
  effective.resolved = *std::move(resolved);
  absl::StatusOr<ServeOptions> options = MakeServeOptions(&effective.resolved);
  if (!options.ok()) return options.status();
  effective.options = *std::move(options);
  return effective;
}

}  // namespace fncache::proxy::settings
