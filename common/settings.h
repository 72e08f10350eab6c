// SPDX-License-Identifier: Apache-2.0
// Settings: one table defines every setting of a command; its YAML key, flag,
// environment variable, default, accepted values and help all follow from one
// row, and so do precedence and messages. DESIGN's "The command line is a
// contract" is what this follows.
//
//   flag         `ttl.max`  ->  --ttl-max
//   environment  `ttl.max`  ->  FNCACHE_TTL_MAX
//   YAML         `ttl.max`  ->  ttl: {max: 1h}
//
// Values stay text here; a row's `check` says whether a text is accepted, and
// the table's owner makes options of accepted texts.
//
// Flow: the command line yields SettingsInput, Resolve() checks all of it and
// yields ResolvedSettings, from which options are made.
//
// Immutable after construction; thread-safe.
#ifndef FNCACHE_COMMON_SETTINGS_H_
#define FNCACHE_COMMON_SETTINGS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/setting.h"
#include "common/yaml.h"

namespace fncache {

// Everything that a command was given, before it is checked.
struct SettingsInput {
  // A key of the table and the text of its flag, in the order given; a list's
  // flag repeats.
  std::vector<std::pair<std::string, std::string>> flags;
  // Looks up a variable: its value, or nothing if it is not set.
  std::function<absl::optional<std::string>(const std::string&)> environment;
  // The file's content; kNull where there is none.
  YamlNode file;
  std::string file_name;
};

struct ResolvedSettings {
  // Settings of the process and, without `functions:`, of its only function.
  SettingValues top;
  // One per entry of `functions:`: all settings of scope kFunction and kBoth,
  // from any source.
  std::vector<SettingValues> entries;
  bool has_entries = false;
};

class SettingsTable {
 public:
  // Keys are distinct, and so are the flags and variables made of them.
  // Settings with a common parent (`ttl.`) are neighbours.
  explicit SettingsTable(std::vector<Setting> settings);

  const std::vector<Setting>& settings() const { return settings_; }
  // Null if there is none.
  const Setting* Find(absl::string_view key) const;

  // Checks everything given, and picks for each setting, in this order: the
  // function's entry, flag, environment, top level of the file, default.
  // InvalidArgument, one line, names the key, where it was given, and what is
  // accepted.
  absl::StatusOr<ResolvedSettings> Resolve(const SettingsInput& input) const;

 private:
  std::vector<Setting> settings_;
};

// The settings as YAML that reads back as the same settings, each with a
// comment that says where its value came from. Unset ones are comments only.
std::string SettingsAsYaml(const SettingsTable& table,
                           const ResolvedSettings& resolved);

}  // namespace fncache

#endif  // FNCACHE_COMMON_SETTINGS_H_
