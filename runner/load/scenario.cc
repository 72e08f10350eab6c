// SPDX-License-Identifier: Apache-2.0
#include "runner/load/scenario.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/duration.h"
#include "common/nearest.h"
#include "common/utf8.h"
#include "common/yaml.h"

namespace fncache::runner::load {
namespace {

using Kind = YamlNode::Kind;

const std::vector<std::string>& ChurnKinds() {
  static const auto* const kinds =
      new std::vector<std::string>{"spec", "composed", "status", "noop"};
  return *kinds;
}

// Which write of a provider's sets a field, and to what.
using When = model::StatusField::When;
using Content = model::StatusField::Content;

const std::vector<std::pair<std::string, When>>& WriteNames() {
  static const auto* const names =
      new std::vector<std::pair<std::string, When>>{
          {"first", When::kFirst},
          {"every", When::kEvery},
          {"ready", When::kReady},
          {"heartbeat", When::kHeartbeat}};
  return *names;
}

const std::vector<std::pair<std::string, Content>>& ContentNames() {
  static const auto* const names =
      new std::vector<std::pair<std::string, Content>>{
          {"id", Content::kId},
          {"counter", Content::kCounter},
          {"time", Content::kTime}};
  return *names;
}

// Reads the sections of a file. Its status is the first error.
class Reader {
 public:
  explicit Reader(absl::string_view name) : name_(name) {}

  absl::StatusOr<Scenario> Read(const YamlNode& top) {
    if (top.kind != Kind::kMap) {
      Fail(top.line, "a map of options and events is needed");
      return status_;
    }
    std::vector<std::string> keys = ScenarioKeys();
    keys.insert(keys.end(), {"churn", "status", "events"});
    for (const YamlEntry& entry : top.entries) {
      if (!Known(entry, keys)) continue;
      if (entry.key == "churn") {
        ReadChurn(entry);
      } else if (entry.key == "status") {
        ReadStatus(entry);
      } else if (entry.key == "events") {
        ReadEvents(entry);
      } else {
        AddOption(entry, entry.key, Scalar(entry));
      }
    }
    if (!status_.ok()) return status_;
    return std::move(scenario_);
  }

 private:
  std::string Location(int line) const {
    return absl::StrCat(name_, ":", line);
  }

  void Fail(int line, absl::string_view why) {
    status_.Update(
        absl::InvalidArgumentError(absl::StrCat(Location(line), ": ", why)));
  }
  void Refuse(const YamlEntry& entry, absl::string_view accepted) {
    const bool scalar = entry.value.kind == Kind::kScalar;
    Fail(entry.line,
         absl::StrCat(
             entry.key, ": ",
             scalar ? absl::StrCat("\"", Printable(entry.value.scalar), "\"")
                    : "this",
             " is not accepted; accepted: ", accepted));
  }
  bool Known(const YamlEntry& entry, const std::vector<std::string>& keys) {
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) {
      return true;
    }
    Fail(entry.line,
         absl::StrCat("\"", Printable(entry.key),
                      "\" is not known here; accepted: ",
                      absl::StrJoin(keys, ", "), DidYouMean(entry.key, keys)));
    return false;
  }
  bool IsMap(const YamlEntry& entry) {
    // A map without entries may be left out.
    if (entry.value.kind == Kind::kMap || entry.value.kind == Kind::kNull) {
      return true;
    }
    Refuse(entry, "a map");
    return false;
  }

  std::string Scalar(const YamlEntry& entry) {
    if (entry.value.kind != Kind::kScalar) Refuse(entry, "one value");
    return entry.value.scalar;
  }
  void Number(const YamlEntry& entry, double least, double most,
              double* value) {
    if (!absl::SimpleAtod(Scalar(entry), value) ||
        !(*value >= least && *value <= most)) {
      Refuse(entry, absl::StrCat("a number from ", least, " to ", most));
    }
  }
  void Duration(const YamlEntry& entry, absl::Duration least,
                absl::Duration* value) {
    const auto duration = ParseGoDuration(Scalar(entry));
    if (!duration.ok() || *duration < least ||
        *duration > absl::Hours(24 * 365)) {
      return Refuse(entry,
                    absl::StrCat("a duration from ", FormatGoDuration(least),
                                 " to 8760h, such as 90s or 1h30m"));
    }
    *value = *duration;
  }

  void AddOption(const YamlEntry& entry, const std::string& key,
                 std::string text) {
    scenario_.options.push_back({key, std::move(text), Location(entry.line)});
  }

  void ReadChurn(const YamlEntry& churn) {
    if (!IsMap(churn)) return;
    for (const YamlEntry& entry : churn.value.entries) {
      if (!Known(entry, ChurnKinds())) continue;
      double rate = 0;
      Number(entry, 0, 1e6, &rate);
      AddOption(entry, "churn",
                absl::StrCat(entry.key, "=", entry.value.scalar));
    }
  }

  void ReadStatus(const YamlEntry& status) {
    if (status.value.kind != Kind::kList) {
      return Refuse(status, "a list of fields");
    }
    for (const YamlNode& item : status.value.items) ReadStatusField(item);
  }

  void ReadStatusField(const YamlNode& item) {
    if (item.kind != Kind::kMap) {
      return Fail(item.line,
                  "a field of the status is a map: field, when, "
                  "and value or text");
    }
    model::StatusField field;
    int contents = 0;
    for (const YamlEntry& entry : item.entries) {
      if (!Known(entry, {"field", "when", "value", "text", "kind"})) continue;
      if (entry.key == "field") {
        field.path = absl::StrSplit(Scalar(entry), '.');
        if (std::count(field.path.begin(), field.path.end(), "") > 0 ||
            field.path[0] == "conditions") {
          Refuse(entry,
                 "names below status with dots between them, such as "
                 "atProvider.vpcId; conditions are the model's own");
        }
      } else if (entry.key == "when") {
        OneOf(entry, WriteNames(), &field.when);
      } else if (entry.key == "value") {
        ++contents;
        OneOf(entry, ContentNames(), &field.content);
      } else if (entry.key == "text") {
        ++contents;
        field.text = Scalar(entry);
      } else {
        field.kind = Scalar(entry);
      }
    }
    if (field.path.empty() || item.Find("when") == nullptr || contents != 1) {
      Fail(item.line,
           "a field of the status needs field: PATH, when: WRITE, and one of "
           "value: WHAT and text: TEXT");
    }
    scenario_.status.push_back(std::move(field));
  }

  // Reads one of the names.
  template <typename T>
  void OneOf(const YamlEntry& entry,
             const std::vector<std::pair<std::string, T>>& names, T* value) {
    const std::string given = Scalar(entry);
    std::vector<std::string> accepted;
    for (const auto& [name, meaning] : names) {
      if (name == given) {
        *value = meaning;
        return;
      }
      accepted.push_back(name);
    }
    Refuse(entry, absl::StrJoin(accepted, ", "));
  }

  void ReadEvents(const YamlEntry& events) {
    if (events.value.kind != Kind::kList) {
      return Refuse(events, "a list of events");
    }
    for (const YamlNode& item : events.value.items) ReadEvent(item);
  }

  void ReadEvent(const YamlNode& item) {
    if (item.kind != Kind::kMap) {
      return Fail(item.line, "an event is a map: at, and what happens");
    }
    model::ScenarioEvent event;
    bool timed = false;
    int kinds = 0;
    for (const YamlEntry& entry : item.entries) {
      if (!Known(entry, {"at", "flapping", "upgrade", "burst", "restart"})) {
        continue;
      }
      if (entry.key == "at") {
        timed = true;
        Duration(entry, absl::ZeroDuration(), &event.at);
        continue;
      }
      ++kinds;
      if (!IsMap(entry)) continue;
      if (entry.key == "flapping") {
        ReadFlapping(entry, &event);
      } else if (entry.key == "upgrade") {
        ReadUpgrade(entry, &event);
      } else if (entry.key == "burst") {
        ReadBurst(entry, &event);
      } else {
        event.kind = model::ScenarioEvent::Kind::kRestart;
        for (const YamlEntry& more : entry.value.entries) {
          Fail(more.line, absl::StrCat("\"", Printable(more.key),
                                       "\" is not known here; accepted: "
                                       "nothing, as in restart: {}"));
        }
      }
    }
    if (!timed) Fail(item.line, "an event needs at: DURATION");
    if (kinds != 1) {
      Fail(item.line, "an event has one of flapping, upgrade, burst, restart");
    }
    scenario_.events.push_back(std::move(event));
    scenario_.event_locations.push_back(Location(item.line));
  }

  void ReadFlapping(const YamlEntry& map, model::ScenarioEvent* event) {
    event->kind = model::ScenarioEvent::Kind::kFlapping;
    bool rate = false;
    for (const YamlEntry& entry : map.value.entries) {
      if (!Known(entry, {"for", "per-second", "share"})) continue;
      if (entry.key == "for") {
        Duration(entry, absl::Milliseconds(1), &event->length);
      } else if (entry.key == "per-second") {
        rate = true;
        Number(entry, 0.001, 1000, &event->rate);
      } else {
        Number(entry, 0, 1, &event->share);
      }
    }
    if (event->length == absl::ZeroDuration() || !rate) {
      Fail(map.line, "flapping needs for: DURATION and per-second: N");
    }
  }

  void ReadUpgrade(const YamlEntry& map, model::ScenarioEvent* event) {
    event->kind = model::ScenarioEvent::Kind::kUpgrade;
    FunctionUpgrade upgrade;
    upgrade.event = scenario_.events.size();
    upgrade.location = Location(map.line);
    for (const YamlEntry& entry : map.value.entries) {
      if (!Known(entry, {"function", "target"})) continue;
      (entry.key == "function" ? upgrade.function : upgrade.target) =
          Scalar(entry);
    }
    if (upgrade.function.empty() || upgrade.target.empty()) {
      return Fail(map.line, "upgrade needs function: NAME and target: ADDRESS");
    }
    scenario_.upgrades.push_back(std::move(upgrade));
  }

  void ReadBurst(const YamlEntry& map, model::ScenarioEvent* event) {
    event->kind = model::ScenarioEvent::Kind::kBurst;
    for (const YamlEntry& entry : map.value.entries) {
      if (!Known(entry, {"composites"})) continue;
      if (!absl::SimpleAtoi(Scalar(entry), &event->composites) ||
          event->composites < 1 || event->composites > 1000000) {
        Refuse(entry, "a whole number from 1 to 1000000");
      }
    }
    if (event->composites == 0) Fail(map.line, "burst needs composites: N");
  }

  const absl::string_view name_;
  Scenario scenario_;
  absl::Status status_;
};

}  // namespace

const std::vector<std::string>& ScenarioKeys() {
  static const auto* const keys = new std::vector<std::string>{
      "composites",        "start",         "workers",      "reconcile-timeout",
      "realtime",          "poll-interval", "resync",       "breaker",
      "seed-requirements", "ready-after",   "ready-writes", "connections",
      "duration",          "warmup",        "seed"};
  return *keys;
}

absl::StatusOr<Scenario> ParseScenario(absl::string_view text,
                                       absl::string_view name) {
  const auto top = ParseYaml(text, name);
  if (!top.ok()) return top.status();
  return Reader(name).Read(*top);
}

}  // namespace fncache::runner::load
