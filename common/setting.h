// SPDX-License-Identifier: Apache-2.0
// One setting as data, and one given value of it. The table (settings.h) and
// the reader of files (settings_file.h) exchange these.
//
// Values own their content; the functions are pure and thread-safe.
#ifndef FNCACHE_COMMON_SETTING_H_
#define FNCACHE_COMMON_SETTING_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace fncache {

// Where a setting may be given.
enum class SettingScope {
  kDaemon,    // once for the process
  kBoth,      // as a default for all functions, and in a function's entry
  kFunction,  // of one function; beside `functions:` only in its entries
};

struct Setting {
  enum class Kind { kText, kBool, kList };

  // Its name in the file, dots standing for nesting: "ttl.max".
  std::string key;
  Kind kind = Kind::kText;
  SettingScope scope = SettingScope::kDaemon;
  // Its key in an entry of `functions:`, where it has another name there.
  std::string entry_key;
  // The heading under which help and reference show it.
  std::string group;
  // The placeholder of its value in help, "DURATION"; empty for kBool.
  std::string metavar;
  // The text that applies if no value is given; absent = unset.
  absl::optional<std::string> default_value;
  // A variable that replaces the default where it is set and not empty.
  std::string default_variable;
  // Words for people, shown where there is no default_value.
  std::string default_note;
  // The values that `check` accepts, in words: "a duration from 0 up, such as
  // 90s".
  std::string accepted;
  // A sentence or a few about what it does.
  std::string help;
  // Another value takes effect while the command runs, where that reads its
  // settings again; else it takes a restart.
  bool reloads = false;
  // OK, or InvalidArgument whose message is the reason, empty where `accepted`
  // says it all. A list gets all its elements, anything else one value. Texts
  // are UTF-8 without control characters.
  std::function<absl::Status(const std::vector<std::string>&)> check;
  // Explains accepted values that do not speak for themselves, such as names of
  // sets of masks: lines that SettingsAsYaml adds as comments. May be null.
  std::function<std::vector<std::string>(const std::vector<std::string>&)>
      explain;
};

// The other two names of a setting, which follow from its key.
std::string FlagName(absl::string_view key);         // --ttl-max
std::string EnvironmentName(absl::string_view key);  // FNCACHE_TTL_MAX

// Where a value was given.
enum class SettingSource { kDefault, kFile, kEnvironment, kFlag, kEntry };

struct SettingValue {
  // Whether there is a value: given, or a default.
  bool set = false;
  // One text, but any number for a list.
  std::vector<std::string> values;
  SettingSource source = SettingSource::kDefault;
  // For messages: "--ttl-max", "FNCACHE_TTL_MAX", "fncache.yaml:3",
  // "$REVISION_NAME", "default".
  std::string where;
  // For messages: "ttl.max", or in an entry "functions[0].ttl.max".
  std::string key;

  // The single value, or empty if unset.
  const std::string& text() const;
};

// Returns InvalidArgument for a value that the setting may not have, in one
// line that names the setting once: `--FLAG: why`, `VARIABLE: why`, and
// elsewhere `WHERE: KEY: why`.
absl::Status SettingError(const SettingValue& value, absl::string_view why);

// Values by the key of their setting.
using SettingValues = std::map<std::string, SettingValue>;

}  // namespace fncache

#endif  // FNCACHE_COMMON_SETTING_H_
