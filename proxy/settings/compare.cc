// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/compare.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy::settings {
namespace {

constexpr char kFunctions[] = "functions";
constexpr char kName[] = "function";
// Follows the location of a value that the file does not give any more.
constexpr char kOfTheStart[] = " (at the start)";

bool Same(const Setting& setting, const SettingValue& a,
          const SettingValue& b) {
  // A list that is not set is empty.
  const bool alike = setting.kind == Setting::Kind::kList || a.set == b.set;
  return alike && a.values == b.values;
}

std::string TextOf(const Setting& setting, const SettingValue& value) {
  if (setting.kind == Setting::Kind::kList) {
    return absl::StrCat("[", absl::StrJoin(value.values, ", "), "]");
  }
  if (!value.set) return "unset";
  return value.text().empty() ? "empty" : value.text();
}

// The values of each function; without entries there is one, at the top.
std::vector<const SettingValues*> FunctionsOf(
    const ResolvedSettings& resolved) {
  std::vector<const SettingValues*> functions;
  if (!resolved.has_entries) functions.push_back(&resolved.top);
  for (const SettingValues& entry : resolved.entries) {
    functions.push_back(&entry);
  }
  return functions;
}

const std::string& FunctionName(const SettingValues& values) {
  return values.at(kName).text();
}

class Comparer {
 public:
  explicit Comparer(ReloadedSettings* out) : out_(*out) {}

  // Compares one value, and sets `running` to the value in force. True if it
  // changed.
  bool Settle(const Setting& setting, const std::string& function,
              const SettingValue& read, SettingValue* running) {
    if (Same(setting, *running, read)) {
      *running = read;  // its source may differ
      return false;
    }
    SettingChange change = {function, setting.key, TextOf(setting, *running),
                            TextOf(setting, read)};
    if (setting.reloads) {
      out_.changed.push_back(std::move(change));
      *running = read;
      return true;
    }
    out_.restart.push_back(std::move(change));
    if (!absl::EndsWith(running->where, kOfTheStart)) {
      running->where += kOfTheStart;
    }
    return false;
  }

  // Compares one function's settings; true if one changed.
  bool SettleFunction(const std::string& function, const SettingValues& read,
                      SettingValues* running) {
    bool changed = false;
    for (const Setting& setting : ServeSettings().settings()) {
      if (setting.scope == SettingScope::kDaemon) continue;
      const auto value = read.find(setting.key);
      if (value == read.end()) continue;
      changed |=
          Settle(setting, function, value->second, &running->at(setting.key));
    }
    return changed;
  }

 private:
  ReloadedSettings& out_;
};

// Joins a change that all functions have into one.
void JoinFunctions(size_t functions, std::vector<SettingChange>* changes) {
  if (functions < 2) return;
  const auto alike = [](const SettingChange& a, const SettingChange& b) {
    return a.key == b.key && a.before == b.before && a.after == b.after &&
           !a.function.empty() && !b.function.empty();
  };
  for (size_t i = 0; i < changes->size(); ++i) {
    const SettingChange one = (*changes)[i];
    const auto same = [&](const SettingChange& other) {
      return alike(one, other);
    };
    if (static_cast<size_t>(std::count_if(changes->begin(), changes->end(),
                                          same)) != functions) {
      continue;
    }
    changes->erase(
        std::remove_if(changes->begin() + static_cast<ptrdiff_t>(i) + 1,
                       changes->end(), same),
        changes->end());
    (*changes)[i].function.clear();
  }
}

}  // namespace

std::string NameOf(const SettingChange& change) {
  return change.function.empty()
             ? change.key
             : absl::StrCat(change.function, ".", change.key);
}

ReloadedSettings Reloaded(const ResolvedSettings& running,
                          const ResolvedSettings& read) {
  ReloadedSettings out;
  out.settings = running;
  Comparer comparer(&out);
  for (const Setting& setting : ServeSettings().settings()) {
    if (setting.scope != SettingScope::kDaemon) continue;
    comparer.Settle(setting, "", read.top.at(setting.key),
                    &out.settings.top.at(setting.key));
  }
  std::vector<SettingValues*> functions;
  if (!out.settings.has_entries) functions.push_back(&out.settings.top);
  for (SettingValues& entry : out.settings.entries) {
    functions.push_back(&entry);
  }
  std::vector<const SettingValues*> wanted = FunctionsOf(read);
  for (SettingValues* const function : functions) {
    const std::string name = FunctionName(*function);
    const auto found = std::find_if(
        wanted.begin(), wanted.end(),
        [&](const auto* values) { return FunctionName(*values) == name; });
    if (found == wanted.end()) {
      out.restart.push_back({name, kFunctions, "present", "absent"});
      out.functions.push_back(false);
      continue;
    }
    // The settings of a single function at the top need no name.
    out.functions.push_back(comparer.SettleFunction(
        out.settings.has_entries ? name : "", **found, function));
    wanted.erase(found);
  }
  for (const SettingValues* const added : wanted) {
    out.restart.push_back(
        {FunctionName(*added), kFunctions, "absent", "present"});
  }
  JoinFunctions(functions.size(), &out.changed);
  return out;
}

}  // namespace fncache::proxy::settings
