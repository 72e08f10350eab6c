// SPDX-License-Identifier: Apache-2.0
// The rules of any table of settings, one by one, on a small table.
#include "common/settings.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Flags = std::vector<std::pair<std::string, std::string>>;
using Map = std::map<std::string, std::string>;

Setting Made(std::string key, SettingScope scope,
             absl::optional<std::string> default_value) {
  Setting setting;
  setting.key = std::move(key);
  setting.scope = scope;
  setting.default_value = std::move(default_value);
  setting.accepted = "anything but bad";
  setting.check = [](const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      if (value == "bad") return absl::InvalidArgumentError("");
      if (value == "worse") return absl::InvalidArgumentError("it is worse");
    }
    return absl::OkStatus();
  };
  return setting;
}

const SettingsTable& Table() {
  static const SettingsTable* const table = [] {
    Setting name = Made("function", SettingScope::kFunction, "f");
    name.entry_key = "name";
    Setting generation = Made("generation", SettingScope::kBoth, absl::nullopt);
    generation.default_variable = "REVISION_NAME";
    Setting store = Made("store_it", SettingScope::kBoth, "false");
    store.kind = Setting::Kind::kBool;
    store.accepted = "true or false";
    Setting mask = Made("mask", SettingScope::kBoth, absl::nullopt);
    mask.kind = Setting::Kind::kList;
    return new SettingsTable(
        {name, generation, Made("ttl.max", SettingScope::kBoth, "24h"),
         Made("ttl.min", SettingScope::kBoth, {}), store, mask,
         Made("drain", SettingScope::kDaemon, "25s")});
  }();
  return *table;
}

absl::StatusOr<ResolvedSettings> Resolve(const std::string& yaml,
                                         Flags flags = {},
                                         Map environment = {}) {
  SettingsInput input;
  input.flags = std::move(flags);
  input.environment =
      [environment](const std::string& name) -> absl::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return absl::nullopt;
    return found->second;
  };
  input.file_name = "f.yaml";
  auto file = ParseYaml(yaml, "f.yaml");
  if (!file.ok()) return file.status();
  input.file = *std::move(file);
  return Table().Resolve(input);
}

SettingValue Top(const std::string& key, const std::string& yaml,
                 Flags flags = {}, Map environment = {}) {
  auto resolved = Resolve(yaml, std::move(flags), std::move(environment));
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return resolved.ok() ? resolved->top.at(key) : SettingValue();
}

void ExpectRefused(const absl::StatusOr<ResolvedSettings>& resolved,
                   const std::string& message) {
  ASSERT_FALSE(resolved.ok()) << message;
  EXPECT_TRUE(absl::IsInvalidArgument(resolved.status()));
  EXPECT_EQ(resolved.status().message(), message);
}

TEST(SettingsTableTest, FlagAndVariableFollowFromTheKey) {
  EXPECT_EQ(FlagName("ttl.max"), "--ttl-max");
  EXPECT_EQ(FlagName("max_entry_bytes"), "--max-entry-bytes");
  EXPECT_EQ(EnvironmentName("ttl.max"), "FNCACHE_TTL_MAX");
  EXPECT_EQ(EnvironmentName("max_entry_bytes"), "FNCACHE_MAX_ENTRY_BYTES");
}

TEST(SettingsTableTest, StrongestLayerWins) {
  const Flags flag = {{"drain", "1"}};
  const Map variable = {{"FNCACHE_DRAIN", "2"}};
  EXPECT_EQ(Top("drain", "drain: 3", flag, variable).where, "--drain");
  EXPECT_EQ(Top("drain", "drain: 3", {}, variable).where, "FNCACHE_DRAIN");
  EXPECT_EQ(Top("drain", "\ndrain: 3").where, "f.yaml:2");
  EXPECT_EQ(Top("drain", "").where, "default");
  EXPECT_EQ(Top("drain", "").text(), "25s");
}

TEST(SettingsTableTest, WeakerLayersAreCheckedAllTheSame) {
  ExpectRefused(Resolve("drain: bad", {{"drain", "1"}}),
                "f.yaml:1: drain: \"bad\" is not accepted; accepted: anything "
                "but bad");
  ExpectRefused(Resolve("", {{"drain", "1"}}, {{"FNCACHE_DRAIN", "worse"}}),
                "FNCACHE_DRAIN: it is worse; accepted: anything but bad");
}

TEST(SettingsTableTest, DefaultVariableReplacesTheDefaultOnly) {
  const Map variable = {{"REVISION_NAME", "r"}};
  EXPECT_EQ(Top("generation", "", {}, variable).where, "$REVISION_NAME");
  EXPECT_EQ(Top("generation", "generation: g", {}, variable).text(), "g");
  EXPECT_FALSE(Top("generation", "", {}, {{"REVISION_NAME", ""}}).set);
  ExpectRefused(Resolve("", {}, {{"REVISION_NAME", "bad"}}),
                "$REVISION_NAME: generation: \"bad\" is not accepted; "
                "accepted: anything but bad");
}

TEST(SettingsTableTest, ListsRepeatAsFlagsAndFlowAsVariables) {
  EXPECT_THAT(Top("mask", "", {{"mask", "a"}, {"mask", "b"}}).values,
              ElementsAre("a", "b"));
  EXPECT_THAT(Top("mask", "", {}, {{"FNCACHE_MASK", " [a, \"b, c\"]"}}).values,
              ElementsAre("a", "b, c"));
  EXPECT_THAT(Top("mask", "", {}, {{"FNCACHE_MASK", "[]"}}).values, IsEmpty());
  EXPECT_THAT(Top("mask", "mask:\n- a\n- b").values, ElementsAre("a", "b"));
  EXPECT_THAT(Top("mask", "mask:").values, IsEmpty());
  // A layer replaces the weaker one's list; it does not add to it.
  EXPECT_THAT(Top("mask", "mask: [a]", {{"mask", "b"}}).values,
              ElementsAre("b"));
  for (const char* text :
       {"a", "", "- a", "[a", "{a: b}", "[[a]]", "[a]\n[b]"}) {
    const auto refused = Resolve("", {}, {{"FNCACHE_MASK", text}});
    ASSERT_FALSE(refused.ok()) << text;
    const std::string message(refused.status().message());
    EXPECT_THAT(message, StartsWith("FNCACHE_MASK: ")) << text;
    EXPECT_THAT(message, HasSubstr("[a, b]")) << text;
  }
  ExpectRefused(Resolve("mask: a"),
                "f.yaml:1: mask: must be a list of texts; accepted: anything "
                "but bad");
  ExpectRefused(Resolve("mask: [a, [b]]"),
                "f.yaml:1: mask: must be a list of texts; accepted: anything "
                "but bad");
  ExpectRefused(Resolve("mask: [a, bad]"),
                "f.yaml:1: mask: [\"a\", \"bad\"] is not accepted; accepted: "
                "anything but bad");
}

TEST(SettingsTableTest, SingleValuesAreSingle) {
  ExpectRefused(Resolve("", {{"drain", "1"}, {"drain", "1"}}),
                "--drain: is given twice; accepted: anything but bad");
  for (const char* yaml : {"drain:", "drain: []", "drain: {a: b}"}) {
    ExpectRefused(Resolve(yaml),
                  "f.yaml:1: drain: must be a single value; accepted: anything "
                  "but bad");
  }
}

TEST(SettingsTableTest, BoolsAreTrueOrFalse) {
  EXPECT_EQ(Top("store_it", "store_it: true").text(), "true");
  EXPECT_EQ(Top("store_it", "", {}, {{"FNCACHE_STORE_IT", "false"}}).text(),
            "false");
  for (const char* text : {"True", "yes", "on", "1", "''"}) {
    EXPECT_FALSE(Resolve(std::string("store_it: ") + text).ok()) << text;
  }
}

TEST(SettingsTableTest, UnknownKeysNameTheKnownOnes) {
  ExpectRefused(Resolve("a: 1"),
                "f.yaml:1: a: unknown key; accepted keys: function, "
                "generation, ttl, store_it, mask, drain, functions");
  ExpectRefused(Resolve("ttl:\n  mux: 1"),
                "f.yaml:2: ttl.mux: unknown key; did you mean max?; accepted "
                "keys: max, min");
  ExpectRefused(Resolve("ttl: 1h"),
                "f.yaml:1: ttl: must be a map; accepted keys: max, min");
  // One that resembles a known one where it stands is proposed, as for flags.
  ExpectRefused(Resolve("generatoin: g"),
                "f.yaml:1: generatoin: unknown key; did you mean generation?; "
                "accepted keys: function, generation, ttl, store_it, mask, "
                "drain, functions");
  // So is one under the spelling of its flag or variable.
  for (const char* const key :
       {"ttl_min", "ttl-min", "ttlMin", "TTL_MIN", "ttl.min"}) {
    ExpectRefused(
        Resolve(absl::StrCat(key, ": 1h")),
        absl::StrCat("f.yaml:1: ", key,
                     ": unknown key; did you mean ttl.min, written as min "
                     "below ttl?; accepted keys: function, generation, ttl, "
                     "store_it, mask, drain, functions"));
  }
  ExpectRefused(Resolve("Store-It: true"),
                "f.yaml:1: Store-It: unknown key; did you mean store_it?; "
                "accepted keys: function, generation, ttl, store_it, mask, "
                "drain, functions");
  ExpectRefused(Resolve("function: f\nfunctons: []"),
                "f.yaml:2: functons: unknown key; did you mean functions?; "
                "accepted keys: function, generation, ttl, store_it, mask, "
                "drain, functions");
  ExpectRefused(Resolve("functions:\n- {nmae: a}"),
                "f.yaml:2: functions[0].nmae: unknown key; did you mean name?; "
                "accepted keys: name, generation, ttl, store_it, mask");
  EXPECT_FALSE(Resolve("ttl.max: 1").ok());
  EXPECT_FALSE(Resolve("'': 1").ok());
  EXPECT_FALSE(Resolve("name: 1").ok());
  ExpectRefused(Resolve("- a"), "f.yaml:1: must be a map of settings");
}

TEST(SettingsTableTest, NothingThatBreaksALineIsAValue) {
  for (const char* text : {"a\nb", "a\tb", "\x7f", "\xff", "\x1b[31m"}) {
    for (const auto& resolved : {Resolve("", {{"drain", text}}),
                                 Resolve("", {}, {{"FNCACHE_DRAIN", text}}),
                                 Resolve("", {{"mask", text}})}) {
      ASSERT_FALSE(resolved.ok());
      EXPECT_THAT(resolved.status().message(), HasSubstr("control characters"));
      EXPECT_EQ(resolved.status().message(),
                Printable(resolved.status().message()));
    }
  }
}

TEST(SettingsTableTest, EntriesTakeWhatTheyDoNotSay) {
  const auto resolved = Resolve(
      "ttl: {max: 1h}\nfunctions:\n- {name: a}\n"
      "- name: b\n  ttl:\n    max: 2h\n",
      {{"generation", "g"}});
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_TRUE(resolved->has_entries);
  ASSERT_EQ(resolved->entries.size(), 2u);
  EXPECT_EQ(resolved->entries[0].at("function").text(), "a");
  EXPECT_EQ(resolved->entries[0].at("ttl.max").text(), "1h");
  EXPECT_EQ(resolved->entries[0].at("generation").text(), "g");
  EXPECT_EQ(resolved->entries[1].at("ttl.max").text(), "2h");
  EXPECT_EQ(resolved->entries[1].at("ttl.max").where, "f.yaml:6");
  EXPECT_EQ(resolved->entries[1].at("ttl.max").key, "functions[1].ttl.max");
  EXPECT_EQ(resolved->entries[1].count("drain"), 0u);
  EXPECT_EQ(resolved->top.count("ttl.max"), 0u);
  EXPECT_EQ(resolved->top.at("drain").text(), "25s");
}

TEST(SettingsTableTest, EntriesAreChecked) {
  ExpectRefused(Resolve("functions:\n- {}"),
                "f.yaml:2: functions[0].name: is missing; accepted: anything "
                "but bad");
  ExpectRefused(Resolve("functions:\n- {name: a, drain: 1}"),
                "f.yaml:2: functions[0].drain: unknown key; accepted keys: "
                "name, generation, ttl, store_it, mask");
  ExpectRefused(Resolve("functions:\n- {name: a,\n   generation: bad}"),
                "f.yaml:3: functions[0].generation: \"bad\" is not accepted; "
                "accepted: anything but bad");
  EXPECT_FALSE(Resolve("functions:\n- {function: a}").ok());
  EXPECT_FALSE(Resolve("functions:\n- {name: a, functions: []}").ok());
  for (const char* yaml :
       {"functions:", "functions: []", "functions: {a: b}", "functions: a",
        "functions: [a]", "functions: [~]"}) {
    const auto resolved = Resolve(yaml);
    ASSERT_FALSE(resolved.ok()) << yaml;
    EXPECT_THAT(resolved.status().message(),
                HasSubstr("with at least name, listen and upstream"));
  }
}

TEST(SettingsTableTest, BesideEntriesAFunctionsOwnSettingsStandInThemOnly) {
  const std::string entries = "functions:\n- {name: a}\n";
  ExpectRefused(Resolve("function: x\n" + entries),
                "f.yaml:1: function: stands beside `functions:`; accepted: in "
                "its entries only");
  EXPECT_FALSE(Resolve(entries, {{"function", "x"}}).ok());
  EXPECT_FALSE(Resolve(entries, {}, {{"FNCACHE_FUNCTION", "x"}}).ok());
}

TEST(SettingsTableTest, PrintedFormSaysWhereValuesCameFrom) {
  const auto resolved =
      Resolve("\nttl: {max: 1h}\nmask: [a, 'b c']", {{"drain", "1s"}});
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(SettingsAsYaml(Table(), *resolved),
            "function: f  # default\n"
            "# generation: unset\n"
            "ttl:\n"
            "  max: 1h  # f.yaml:2\n"
            "  # min: unset\n"
            "store_it: false  # default\n"
            "mask: [a, \"b c\"]  # f.yaml:3\n"
            "drain: 1s  # --drain\n");
  const auto entries =
      Resolve("functions:\n- {name: a, ttl: {min: 5s}}", {{"drain", "1s"}});
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(SettingsAsYaml(Table(), *entries),
            "drain: 1s  # --drain\n"
            "functions:\n"
            "  - name: a  # f.yaml:2\n"
            "    # generation: unset\n"
            "    ttl:\n"
            "      max: 24h  # default\n"
            "      min: 5s  # f.yaml:2\n"
            "    store_it: false  # default\n"
            "    mask: []  # default\n");
}

}  // namespace
}  // namespace fncache
