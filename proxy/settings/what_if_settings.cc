// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/what_if_settings.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/key/mask.h"
#include "common/nearest.h"
#include "proxy/settings/options.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy::settings {
namespace {

using insight::whatif::CacheSettings;
using insight::whatif::FunctionSettings;

constexpr absl::string_view kFunctions = "functions.";
constexpr absl::string_view kMemory = "cache.memory";
// A policy setting that a replay does not play, and why.
struct NotTaken {
  absl::string_view key;
  absl::string_view why;
  // The note for the replay of a daemon that had the setting; empty: none.
  absl::string_view instead = "";
};
constexpr NotTaken kNotTaken[] = {
    {"key", "a trace has its keys made"},
    {"key_hash", "a trace has its keys made"},
    {"bypass_metadata", "a trace has no metadata"},
    {"operations",
     "operations are played as the daemon of the trace treated them"},
    {"tune",
     "a trace does not tell what the function would have answered to the "
     "questions of a proof",
     "requests that differ in drift only count as hits, whether the entry was "
     "proven or not, so these are at most the hits"},
    {"tune_share", "a trace has no questions"},
    {"vary", "a trace does not tell what responses depend on",
     "hits by hint of the trace are hits of their keys here, and other "
     "requests "
     "miss"},
    {"max_released", "calls are not played as waiting for each other's places"},
    {"stale_if_error",
     "a trace does not tell when the function would have failed had it been "
     "asked at another time",
     "where an old answer hid an error, the function answers here"},
    {"finish_abandoned",
     "a trace does not tell for how long a call would have run that its "
     "callers had left",
     "calls that their callers left fill nothing here"}};

// Null if the name is no such setting. It may be a function's or the default.
const NotTaken* FindNotTaken(absl::string_view name) {
  for (const NotTaken& setting : kNotTaken) {
    if (name == setting.key ||
        (absl::StartsWith(name, kFunctions) &&
         absl::EndsWith(name, absl::StrCat(".", setting.key)))) {
      return &setting;
    }
  }
  return nullptr;
}

// A name, split into the function ("" = all functions) and the setting.
struct Name {
  std::string function;
  const Setting* setting = nullptr;  // null: no such setting is taken
};

bool IsTaken(const Setting& setting) {
  if (setting.key == kMemory) return true;
  return setting.group == "Policy" && FindNotTaken(setting.key) == nullptr;
}

Name Find(absl::string_view text) {
  Name name;
  const bool scoped = absl::StartsWith(text, kFunctions);
  for (const Setting& setting : ServeSettings().settings()) {
    if (!IsTaken(setting)) continue;
    if (text == setting.key) return {"", &setting};
    if (!scoped || setting.scope == SettingScope::kDaemon) continue;
    const std::string ending = absl::StrCat(".", setting.key);
    // A function's name may have dots: the longest setting counts.
    if (absl::EndsWith(text, ending) &&
        text.size() > kFunctions.size() + ending.size() &&
        (name.setting == nullptr ||
         name.setting->key.size() < setting.key.size())) {
      name.function = std::string(text.substr(
          kFunctions.size(), text.size() - kFunctions.size() - ending.size()));
      name.setting = &setting;
    }
  }
  return name;
}

absl::Status Check(absl::string_view name, const Setting& setting,
                   const std::vector<std::string>& texts) {
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", why.empty() ? "" : absl::StrCat(why, "; "),
                     "accepted: ", setting.accepted));
  };
  if (setting.kind == Setting::Kind::kBool) {
    return texts.size() == 1 && (texts[0] == "true" || texts[0] == "false")
               ? absl::OkStatus()
               : refused("");
  }
  if (setting.kind != Setting::Kind::kList && texts.size() != 1) {
    return refused("is given more than once");
  }
  if (setting.check == nullptr) return absl::OkStatus();
  const absl::Status status = setting.check(texts);
  return status.ok() ? status : refused(status.message());
}

}  // namespace

std::vector<std::string> WhatIfSettings::Names() const {
  std::vector<std::string> names;
  for (const Setting& setting : ServeSettings().settings()) {
    if (IsTaken(setting)) names.push_back(setting.key);
  }
  return names;
}

bool WhatIfSettings::Takes(absl::string_view name) const {
  return Find(name).setting != nullptr;
}

std::vector<std::string> WhatIfSettings::Split(absl::string_view name,
                                               absl::string_view text) const {
  const Name found = Find(name);
  if (found.setting == nullptr || found.setting->kind != Setting::Kind::kList) {
    return {std::string(text)};
  }
  return cache::key::SplitMasks(text);
}

absl::StatusOr<CacheSettings> WhatIfSettings::Read(
    const insight::whatif::SettingTexts& texts) const {
  SettingValues top;
  std::map<std::string, SettingValues> functions;
  for (const auto& [text, values] : texts) {
    const Name name = Find(text);
    if (name.setting == nullptr) {
      const std::vector<std::string> names = Names();
      const NotTaken* const known = FindNotTaken(text);
      return absl::InvalidArgumentError(absl::StrCat(
          text,
          known == nullptr
              ? absl::StrCat(": is no setting of a what-if",
                             DidYouMean(text, names))
              : absl::StrCat(": cannot be asked about: ", known->why),
          "; accepted: ", absl::StrJoin(names, ", "),
          ", each also as functions.NAME.KEY but for ", kMemory));
    }
    const absl::Status status = Check(text, *name.setting, values);
    if (!status.ok()) return status;
    SettingValue value;
    value.set = true;
    value.values = values;
    value.where = value.key = text;
    (name.function.empty() ? top
                           : functions[name.function])[name.setting->key] =
        std::move(value);
  }
  DaemonOptions daemon;
  absl::Status status = ApplyToDaemon(top, &daemon);
  CacheSettings settings;
  settings.memory = daemon.cache_memory;
  const auto apply = [&](const SettingValues& values) {
    FunctionOptions options;
    status.Update(ApplyToFunction(values, &options));
    status.Update(options.policy.Validate());
    return FunctionSettings{options.policy, options.masks};
  };
  settings.defaults = apply(top);
  for (auto& [function, values] : functions) {
    values.insert(top.begin(), top.end());  // unset values of the entry
    settings.functions[function] = apply(values);
  }
  if (!status.ok()) return status;
  return settings;
}

std::vector<std::string> WhatIfSettings::NotPlayed(
    const std::map<std::string, std::string>& settings) const {
  std::vector<std::string> notes;
  for (const auto& [name, text] : settings) {
    const NotTaken* const setting = FindNotTaken(name);
    if (setting == nullptr || setting->instead.empty() ||
        ServeSettings().Find(setting->key)->default_value == text) {
      continue;
    }
    notes.push_back(absl::StrCat("the daemon had ", name, ": ", text,
                                 ", which is not played: ", setting->instead));
  }
  return notes;
}

}  // namespace fncache::proxy::settings
