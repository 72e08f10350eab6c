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
// the table's owner turns accepted texts into options.
//
// Flow: the command line yields SettingsInput, Resolve() checks all of it and
// yields ResolvedSettings, from which options are made.
//
// Immutable after construction; thread-safe.
#ifndef FNCACHE_COMMON_SETTINGS_H_
#define FNCACHE_COMMON_SETTINGS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/yaml.h"

namespace fncache {

// Where a setting may be given.
enum class SettingScope {
  kDaemon,    // once for the process
  kBoth,      // as a default for all functions, and in a function's entry
  kFunction,  // of one function; beside `functions:` only in its entries
};

struct Setting {
  enum class Kind { kText, kBool, kList };

  std::string key;
  Kind kind = Kind::kText;
  SettingScope scope = SettingScope::kDaemon;
  // Its key in an entry of `functions:`, where that is another.
  std::string entry_key;
  std::string group;
  std::string metavar;
  // What holds where nobody says anything; absent = unset.
  absl::optional<std::string> default_value;
  // A variable that replaces the default where it is set and not empty.
  std::string default_variable;
  // For people, where the default is unset or needs a word.
  std::string default_note;
  // "a duration from 0 up, such as 90s"
  std::string accepted;
  std::string help;
  // OK, or InvalidArgument whose message is the reason, empty where `accepted`
  // says it all. A list gets all its elements, anything else one value. Texts
  // are UTF-8 without control characters.
  std::function<absl::Status(const std::vector<std::string>&)> check;
  // What accepted values stand for, where they do not say it themselves: lines
  // for SettingsAsYaml to add as comments. May be null.
  std::function<std::vector<std::string>(const std::vector<std::string>&)>
      explain;
};

// The names that follow from a key.
std::string FlagName(absl::string_view key);         // --ttl-max
std::string EnvironmentName(absl::string_view key);  // FNCACHE_TTL_MAX

enum class SettingSource { kDefault, kFile, kEnvironment, kFlag, kEntry };

struct SettingValue {
  bool set = false;                 // false: unset by default
  std::vector<std::string> values;  // one, but for lists
  SettingSource source = SettingSource::kDefault;
  // For messages: "--ttl-max", "FNCACHE_TTL_MAX", "fncache.yaml:3",
  // "$REVISION_NAME", "default".
  std::string where;
  // For messages: "ttl.max", or in an entry "functions[0].ttl.max".
  std::string key;

  // The single value, or empty if unset.
  const std::string& text() const;
};

// A value that a setting may not have: `WHERE: KEY: why`, one line.
absl::Status SettingError(const SettingValue& value, absl::string_view why);

// By key.
using SettingValues = std::map<std::string, SettingValue>;

// What a command was given, before it is checked.
struct SettingsInput {
  // Keys of the table and texts in the order given; a list's flag repeats.
  std::vector<std::pair<std::string, std::string>> flags;
  // A variable's value, or nothing if it is not set.
  std::function<absl::optional<std::string>(const std::string&)> environment;
  // The file's content; kNull where there is none.
  YamlNode file;
  std::string file_name;
};

struct ResolvedSettings {
  // Settings of the process and, without `functions:`, of its only function.
  SettingValues top;
  // One per entry of `functions:`: all settings of scope kFunction and kBoth,
  // whoever gave them.
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
