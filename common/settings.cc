// SPDX-License-Identifier: Apache-2.0
#include "common/settings.h"

#include <cassert>
#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/settings_file.h"
#include "common/utf8.h"

namespace fncache {
namespace {

absl::Status ReadFlags(const SettingsTable& table, const SettingsInput& input,
                       SettingValues* out) {
  for (const auto& [key, text] : input.flags) {
    const Setting* setting = table.Find(key);
    assert(setting != nullptr);
    SettingValue& value = (*out)[key];
    const bool again = value.set;
    value.set = true;
    value.values.push_back(text);
    value.source = SettingSource::kFlag;
    value.where = FlagName(key);
    value.key = key;
    if (again && setting->kind != Setting::Kind::kList) {
      return SettingError(
          value, absl::StrCat("is given twice; accepted: ", setting->accepted));
    }
  }
  for (const auto& [key, value] : *out) {
    absl::Status status = CheckSetting(*table.Find(key), value);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The environment's form of a list. The error is a phrase; it is empty if the
// text is no such list at all.
absl::Status FromFlowList(const Setting& setting, const std::string& text,
                          SettingValue* value) {
  if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "[")) {
    return absl::InvalidArgumentError("");
  }
  const absl::StatusOr<YamlNode> node = ParseYaml(text, "");
  if (!node.ok()) {
    // ":1: why", of what has no name and one line.
    const absl::string_view said = node.status().message();
    return absl::InvalidArgumentError(said.substr(said.find(": ") + 2));
  }
  return SettingFromYaml(setting, *node, value).ok()
             ? absl::OkStatus()
             : absl::InvalidArgumentError("");
}

absl::Status ReadEnvironment(const SettingsTable& table,
                             const SettingsInput& input, SettingValues* out) {
  if (input.environment == nullptr) return absl::OkStatus();
  for (const Setting& setting : table.settings()) {
    const std::string name = EnvironmentName(setting.key);
    const absl::optional<std::string> text = input.environment(name);
    if (!text.has_value()) continue;
    SettingValue value;
    value.set = true;
    value.source = SettingSource::kEnvironment;
    value.where = name;
    value.key = setting.key;
    absl::Status status;
    if (setting.kind != Setting::Kind::kList) {
      value.values = {*text};
    } else {
      status = FromFlowList(setting, *text, &value);
    }
    if (!status.ok()) {
      return SettingError(
          value,
          absl::StrCat(ShownText(*text),
                       " is not a YAML flow list such as [a, b]",
                       status.message().empty() ? "" : ": ", status.message(),
                       "; accepted: ", setting.accepted));
    }
    status = CheckSetting(setting, value);
    if (!status.ok()) return status;
    (*out)[setting.key] = std::move(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<SettingValue> DefaultOf(const Setting& setting,
                                       const SettingsInput& input) {
  SettingValue value;
  value.key = setting.key;
  value.where = "default";
  if (!setting.default_variable.empty() && input.environment != nullptr) {
    const auto text = input.environment(setting.default_variable);
    if (text.has_value() && !text->empty()) {
      value.set = true;
      value.values = {*text};
      value.where = absl::StrCat("$", setting.default_variable);
      absl::Status status = CheckSetting(setting, value);
      if (!status.ok()) return status;
      return value;
    }
  }
  if (setting.default_value.has_value()) {
    value.set = true;
    value.values = {*setting.default_value};
  }
  return value;
}

const SettingValue* First(const std::string& key,
                          std::initializer_list<const SettingValues*> layers) {
  for (const SettingValues* layer : layers) {
    const auto found = layer->find(key);
    if (found != layer->end()) return &found->second;
  }
  return nullptr;
}

// Reads what entry `item` of `functions:` says itself.
absl::StatusOr<SettingValues> ReadEntry(const std::vector<Setting>& settings,
                                        const std::string& file,
                                        const YamlNode& item, size_t index) {
  const std::string name = absl::StrCat(kFunctionsKey, "[", index, "]");
  const std::string where = absl::StrCat(file, ":", item.line, ": ", name);
  if (item.kind != YamlNode::Kind::kMap) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": must be a map with at least name, listen and upstream"));
  }
  SettingValues values;
  absl::Status status =
      SettingsFileReader(settings, file, name + ".", /*entry=*/true)
          .Read(item, &values);
  if (!status.ok()) return status;
  for (const Setting& setting : settings) {
    if (setting.scope != SettingScope::kFunction) continue;
    if (values.count(setting.key) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        where, ".", setting.entry_key.empty() ? setting.key : setting.entry_key,
        ": is missing; accepted: ", setting.accepted));
  }
  return values;
}

absl::Status ReadEntries(const std::vector<Setting>& settings,
                         const SettingsInput& input,
                         ResolvedSettings* resolved) {
  for (const YamlEntry& child : input.file.entries) {
    if (child.key != kFunctionsKey) continue;
    resolved->has_entries = true;
    if (child.value.kind != YamlNode::Kind::kList ||
        child.value.items.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          input.file_name, ":", child.line, ": ", kFunctionsKey,
          ": must be a list of maps with at least name, listen and upstream"));
    }
    for (size_t i = 0; i < child.value.items.size(); ++i) {
      absl::StatusOr<SettingValues> values =
          ReadEntry(settings, input.file_name, child.value.items[i], i);
      if (!values.ok()) return values.status();
      resolved->entries.push_back(*std::move(values));
    }
  }
  return absl::OkStatus();
}

std::string ValueAsYaml(const Setting& setting, const SettingValue& value) {
  if (setting.kind != Setting::Kind::kList) return YamlScalar(value.text());
  return absl::StrCat(
      "[",
      absl::StrJoin(value.values, ", ",
                    [](std::string* out, const std::string& item) {
                      absl::StrAppend(out, YamlScalar(item));
                    }),
      "]");
}

void AppendMap(const SettingsTable& table, const SettingValues& values,
               bool entry, std::string* out) {
  const std::string indent = entry ? "    " : "";
  bool dash = entry;  // the first key of an entry carries the list's dash
  std::string parent;
  for (const Setting& setting : table.settings()) {
    const auto found = values.find(setting.key);
    if (found == values.end()) continue;
    const SettingValue& value = found->second;
    const std::string name =
        entry && !setting.entry_key.empty() ? setting.entry_key : setting.key;
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    if (!value.set && setting.kind != Setting::Kind::kList) {
      // Within its map where that is open, else under its whole name.
      const bool open = parts.size() > 1 && parts.front() == parent;
      absl::StrAppend(out, indent, open ? "  # " : "# ",
                      open ? parts.back() : name, ": unset\n");
      continue;
    }
    const std::string start = dash ? "  - " : indent;
    dash = false;
    const bool nested = parts.size() > 1;
    if (nested && parts.front() != parent) {
      absl::StrAppend(out, start, parts.front(), ":\n");
    }
    parent = nested ? parts.front() : "";
    const std::string key_indent = nested ? indent + "  " : indent;
    absl::StrAppend(out, nested ? key_indent : start, parts.back(), ": ",
                    ValueAsYaml(setting, value), "  # ", Printable(value.where),
                    "\n");
    if (setting.explain == nullptr) continue;
    for (const std::string& line : setting.explain(value.values)) {
      absl::StrAppend(out, key_indent, "#   ", Printable(line), "\n");
    }
  }
}

}  // namespace

SettingsTable::SettingsTable(std::vector<Setting> settings)
    : settings_(std::move(settings)) {}

const Setting* SettingsTable::Find(absl::string_view key) const {
  for (const Setting& setting : settings_) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

absl::StatusOr<ResolvedSettings> SettingsTable::Resolve(
    const SettingsInput& input) const {
  SettingValues flags;
  SettingValues environment;
  SettingValues file;
  ResolvedSettings resolved;
  absl::Status status = ReadFlags(*this, input, &flags);
  if (!status.ok()) return status;
  status = ReadEnvironment(*this, input, &environment);
  if (!status.ok()) return status;
  if (input.file.kind != YamlNode::Kind::kMap &&
      input.file.kind != YamlNode::Kind::kNull) {
    return absl::InvalidArgumentError(absl::StrCat(
        input.file_name, ":", input.file.line, ": must be a map of settings"));
  }
  status = SettingsFileReader(settings_, input.file_name, "", /*entry=*/false)
               .Read(input.file, &file);
  if (!status.ok()) return status;
  status = ReadEntries(settings_, input, &resolved);
  if (!status.ok()) return status;

  for (const Setting& setting : settings_) {
    const SettingValue* given =
        First(setting.key, {&flags, &environment, &file});
    if (resolved.has_entries && setting.scope == SettingScope::kFunction) {
      if (given == nullptr) continue;
      return SettingError(*given, absl::StrCat("stands beside `", kFunctionsKey,
                                               ":`; accepted: in its entries "
                                               "only"));
    }
    absl::StatusOr<SettingValue> value =
        given != nullptr ? *given : DefaultOf(setting, input);
    if (!value.ok()) return value.status();
    if (!resolved.has_entries || setting.scope == SettingScope::kDaemon) {
      resolved.top.emplace(setting.key, *std::move(value));
      continue;
    }
    for (SettingValues& entry : resolved.entries) {
      entry.try_emplace(setting.key, *value);
    }
  }
  return resolved;
}

std::string SettingsAsYaml(const SettingsTable& table,
                           const ResolvedSettings& resolved) {
  std::string out;
  AppendMap(table, resolved.top, /*entry=*/false, &out);
  if (!resolved.has_entries) return out;
  absl::StrAppend(&out, kFunctionsKey, ":\n");
  for (const SettingValues& entry : resolved.entries) {
    AppendMap(table, entry, /*entry=*/true, &out);
  }
  return out;
}

}  // namespace fncache
