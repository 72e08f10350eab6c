// SPDX-License-Identifier: Apache-2.0
// Reads the settings that one map of a settings file gives, and checks them
// against the rows of the table. SettingsTable (settings.h) uses it for the
// file's top level, for each entry of `functions:`, and for lists in the
// environment.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_SETTINGS_FILE_H_
#define FNCACHE_COMMON_SETTINGS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/setting.h"
#include "common/yaml.h"

namespace fncache {

// The key that holds the entries of the functions.
extern const char kFunctionsKey[];

// Whether the row accepts the value; the error names key, place and range.
absl::Status CheckSetting(const Setting& setting, const SettingValue& value);

// Takes a scalar, or for a list a list of scalars, as the setting's value.
absl::Status SettingFromYaml(const Setting& setting, const YamlNode& node,
                             SettingValue* value);

// Text in quotes for a message: cut off and escaped.
std::string ShownText(absl::string_view text);

class SettingsFileReader {
 public:
  // `prefix` goes before keys in messages. `entry`: the map is an entry of
  // `functions:`. The arguments outlive the reader.
  SettingsFileReader(const std::vector<Setting>& settings,
                     const std::string& file, std::string prefix, bool entry);

  // Adds the settings of `map`; the first that is wrong is the error.
  absl::Status Read(const YamlNode& map, SettingValues* out) const;

 private:
  // The name under which the setting is written here; empty = nowhere.
  std::string NameHere(const Setting& setting) const;
  const Setting* FindHere(const std::string& name) const;
  bool IsParent(const std::string& name) const;
  // The keys that are accepted directly below `parent`.
  std::vector<std::string> Children(const std::string& parent) const;
  // The end of a sentence about a key that differs from a setting's in `_`,
  // `-`, `.` and case only, as its flag and its variable do; else empty.
  std::string OtherSpelling(const std::string& parent,
                            const std::string& key) const;
  absl::Status ReadBelow(const YamlNode& map, const std::string& parent,
                         SettingValues* out) const;

  const std::vector<Setting>& settings_;
  const std::string& file_;
  const std::string prefix_;
  const bool entry_;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_SETTINGS_FILE_H_
