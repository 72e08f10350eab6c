// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/settings_list.h"

#include <utility>

namespace fncache::proxy::telemetry {
namespace {

ListedSetting Listed(const Setting& setting, const SettingValue& value) {
  ListedSetting listed;
  listed.key = setting.key;
  listed.is_list = setting.kind == Setting::Kind::kList;
  listed.set = value.set || listed.is_list;
  if (listed.set) listed.values = value.values;
  listed.given = value.source != SettingSource::kDefault;
  listed.where = value.where;
  if (listed.set && setting.explain != nullptr) {
    listed.notes = setting.explain(value.values);
  }
  return listed;
}

// The value for entries that do not set one themselves; null if all of them do.
const SettingValue* Inherited(const std::vector<SettingValues>& entries,
                              const std::string& key) {
  for (const SettingValues& entry : entries) {
    const auto found = entry.find(key);
    if (found != entry.end() && found->second.source != SettingSource::kEntry) {
      return &found->second;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<ListedSetting> ListSettings(const SettingsTable& table,
                                        const ResolvedSettings& resolved,
                                        absl::string_view name_key) {
  std::vector<ListedSetting> list;
  for (const Setting& setting : table.settings()) {
    const auto found = resolved.top.find(setting.key);
    const SettingValue* const value =
        found != resolved.top.end() ? &found->second
                                    : Inherited(resolved.entries, setting.key);
    if (value != nullptr) list.push_back(Listed(setting, *value));
  }
  for (const SettingValues& entry : resolved.entries) {
    const auto name = entry.find(std::string(name_key));
    for (const Setting& setting : table.settings()) {
      const auto found = entry.find(setting.key);
      if (found == entry.end() ||
          found->second.source != SettingSource::kEntry) {
        continue;
      }
      ListedSetting listed = Listed(setting, found->second);
      if (name != entry.end()) listed.function = name->second.text();
      if (!setting.entry_key.empty()) listed.key = setting.entry_key;
      list.push_back(std::move(listed));
    }
  }
  return list;
}

}  // namespace fncache::proxy::telemetry
