// SPDX-License-Identifier: Apache-2.0
// The settings in force as a list, for pages and programs. SettingsAsYaml gives
// a file that can be read again; this gives rows.
//
// Pure function; thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_SETTINGS_LIST_H_
#define FNCACHE_PROXY_TELEMETRY_SETTINGS_LIST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/settings.h"

namespace fncache::proxy::telemetry {

struct ListedSetting {
  // The function whose entry has the setting. Empty: it is the process's, or
  // that of all functions whose entries do not set it.
  std::string function;
  std::string key;  // "ttl.max"; in an entry as the entry spells it
  bool is_list = false;
  bool set = false;                 // false: it has no value
  std::vector<std::string> values;  // one, but for lists
  bool given = false;               // true: an explicit value, no default
  std::string where;                // "--ttl-max", "fncache.yaml:3", "default"
  // These explain the values, if the values do not do so themselves.
  std::vector<std::string> notes;
};

// All settings, in the order of the table; those of entries come last.
// `name_key` is the key of the setting that names an entry's function.
std::vector<ListedSetting> ListSettings(const SettingsTable& table,
                                        const ResolvedSettings& resolved,
                                        absl::string_view name_key);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_SETTINGS_LIST_H_
