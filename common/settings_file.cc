// SPDX-License-Identifier: Apache-2.0
#include "common/settings_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/nearest.h"
#include "common/utf8.h"

namespace fncache {
namespace {

// Whether `text` has nothing that would break a line, a label or a terminal.
bool IsPlainText(absl::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return false;
  }
  return IsUtf8(text);
}

std::string ShownValue(const Setting& setting, const SettingValue& value) {
  if (setting.kind != Setting::Kind::kList) return ShownText(value.text());
  return absl::StrCat(
      "[",
      absl::StrJoin(value.values, ", ",
                    [](std::string* out, const std::string& text) {
                      absl::StrAppend(out, ShownText(text));
                    }),
      "]");
}

// Without what the spellings of a key, a flag and a variable differ in.
std::string LettersOf(absl::string_view key) {
  return absl::AsciiStrToLower(
      absl::StrReplaceAll(key, {{"_", ""}, {"-", ""}, {".", ""}}));
}

}  // namespace

const char kFunctionsKey[] = "functions";

std::string ShownText(absl::string_view text) {
  return absl::StrCat("\"", Printable(text.substr(0, 100)), "\"");
}

absl::Status CheckSetting(const Setting& setting, const SettingValue& value) {
  const std::string accepted = absl::StrCat("; accepted: ", setting.accepted);
  for (const std::string& text : value.values) {
    if (IsPlainText(text)) continue;
    return SettingError(
        value,
        // A URL may have a password before its `@`.
        absl::StrCat(absl::StrContains(text, '@') ? "it" : ShownText(text),
                     " holds control characters or is not UTF-8", accepted));
  }
  absl::Status status;
  if (setting.kind == Setting::Kind::kBool) {
    if (value.text() != "true" && value.text() != "false") {
      status = absl::InvalidArgumentError("");
    }
  } else if (setting.check != nullptr) {
    status = setting.check(value.values);
  }
  if (status.ok()) return status;
  if (!status.message().empty()) {
    return SettingError(value, absl::StrCat(status.message(), accepted));
  }
  return SettingError(value, absl::StrCat(ShownValue(setting, value),
                                          " is not accepted", accepted));
}

absl::Status SettingFromYaml(const Setting& setting, const YamlNode& node,
                             SettingValue* value) {
  const std::string accepted = absl::StrCat("; accepted: ", setting.accepted);
  value->set = true;
  if (setting.kind == Setting::Kind::kList) {
    if (node.kind == YamlNode::Kind::kNull) return absl::OkStatus();
    bool list = node.kind == YamlNode::Kind::kList;
    for (const YamlNode& item : node.items) {
      list = list && item.kind == YamlNode::Kind::kScalar;
      value->values.push_back(item.scalar);
    }
    if (list) return absl::OkStatus();
    return SettingError(*value,
                        absl::StrCat("must be a list of texts", accepted));
  }
  if (node.kind != YamlNode::Kind::kScalar) {
    return SettingError(*value,
                        absl::StrCat("must be a single value", accepted));
  }
  value->values = {node.scalar};
  return absl::OkStatus();
}

SettingsFileReader::SettingsFileReader(const std::vector<Setting>& settings,
                                       const std::string& file,
                                       std::string prefix, bool entry)
    : settings_(settings),
      file_(file),
      prefix_(std::move(prefix)),
      entry_(entry) {}

std::string SettingsFileReader::NameHere(const Setting& setting) const {
  if (!entry_) return setting.key;
  if (setting.scope == SettingScope::kDaemon) return "";
  return setting.entry_key.empty() ? setting.key : setting.entry_key;
}

const Setting* SettingsFileReader::FindHere(const std::string& name) const {
  for (const Setting& setting : settings_) {
    if (!name.empty() && NameHere(setting) == name) return &setting;
  }
  return nullptr;
}

bool SettingsFileReader::IsParent(const std::string& name) const {
  for (const Setting& setting : settings_) {
    if (absl::StartsWith(NameHere(setting), name + ".")) return true;
  }
  return false;
}

std::vector<std::string> SettingsFileReader::Children(
    const std::string& parent) const {
  std::vector<std::string> names;
  for (const Setting& setting : settings_) {
    const std::string here = NameHere(setting);
    if (here.empty() || !absl::StartsWith(here, parent)) continue;
    const std::string rest = here.substr(parent.size());
    std::string name = rest.substr(0, rest.find('.'));
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  if (!entry_ && parent.empty()) names.push_back(kFunctionsKey);
  return names;
}

std::string SettingsFileReader::OtherSpelling(const std::string& parent,
                                              const std::string& key) const {
  const std::string letters = LettersOf(key);
  for (const Setting& setting : settings_) {
    const std::string here = NameHere(setting);
    if (here.empty() || !absl::StartsWith(here, parent)) continue;
    const std::string name = here.substr(parent.size());
    if (LettersOf(name) != letters) continue;
    const std::string::size_type dot = name.rfind('.');
    if (dot == std::string::npos) {
      return absl::StrCat("; did you mean ", name, "?");
    }
    return absl::StrCat("; did you mean ", name, ", written as ",
                        name.substr(dot + 1), " below ", name.substr(0, dot),
                        "?");
  }
  return "";
}

absl::Status SettingsFileReader::Read(const YamlNode& map,
                                      SettingValues* out) const {
  return ReadBelow(map, "", out);
}

absl::Status SettingsFileReader::ReadBelow(const YamlNode& map,
                                           const std::string& parent,
                                           SettingValues* out) const {
  for (const YamlEntry& child : map.entries) {
    if (!entry_ && parent.empty() && child.key == kFunctionsKey) continue;
    const std::string name = parent + child.key;
    SettingValue value;
    value.source = entry_ ? SettingSource::kEntry : SettingSource::kFile;
    value.where = absl::StrCat(file_, ":", child.line);
    value.key = absl::StrCat(prefix_, Printable(name.substr(0, 100)));
    // Dots are nesting; in a key of the file they would only look like it.
    const bool dotted = child.key.find('.') != std::string::npos;
    const Setting* setting = dotted ? nullptr : FindHere(name);
    if (setting != nullptr) {
      absl::Status status = SettingFromYaml(*setting, child.value, &value);
      if (status.ok()) status = CheckSetting(*setting, value);
      if (!status.ok()) return status;
      (*out)[setting->key] = std::move(value);
    } else if (!dotted && IsParent(name)) {
      if (child.value.kind != YamlNode::Kind::kMap) {
        return SettingError(
            value, absl::StrCat("must be a map; accepted keys: ",
                                absl::StrJoin(Children(name + "."), ", ")));
      }
      absl::Status status = ReadBelow(child.value, name + ".", out);
      if (!status.ok()) return status;
    } else {
      const std::vector<std::string> keys = Children(parent);
      const std::string hint = OtherSpelling(parent, child.key);
      return SettingError(
          value, absl::StrCat("unknown key",
                              hint.empty() ? DidYouMean(child.key, keys) : hint,
                              "; accepted keys: ", absl::StrJoin(keys, ", ")));
    }
  }
  return absl::OkStatus();
}

}  // namespace fncache
