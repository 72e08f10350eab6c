// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/settings_list.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::proxy::telemetry {
namespace {

using testing::ElementsAre;

// A table of a name, a text of both scopes and a list.
SettingsTable Table() {
  Setting name;
  name.key = "function";
  name.entry_key = "name";
  name.scope = SettingScope::kFunction;
  Setting ttl;
  ttl.key = "ttl.max";
  ttl.scope = SettingScope::kBoth;
  ttl.default_value = "1h";
  Setting mask;
  mask.key = "mask";
  mask.kind = Setting::Kind::kList;
  mask.scope = SettingScope::kBoth;
  mask.explain = [](const std::vector<std::string>& values) {
    return std::vector<std::string>{absl::StrCat(values.size(), " paths")};
  };
  Setting dir;
  dir.key = "cache.dir";
  std::vector<Setting> settings = {name, ttl, mask, dir};
  for (Setting& setting : settings) {
    setting.check = [](const std::vector<std::string>&) {
      return absl::OkStatus();
    };
  }
  return SettingsTable(std::move(settings));
}

// "function key=value where given"
std::vector<std::string> Listed(const SettingsInput& input) {
  const SettingsTable table = Table();
  const auto resolved = table.Resolve(input);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  std::vector<std::string> lines;
  for (const ListedSetting& setting :
       ListSettings(table, *resolved, "function")) {
    lines.push_back(absl::StrCat(
        setting.function, setting.function.empty() ? "" : " ", setting.key,
        setting.set ? "=" : " unset", absl::StrJoin(setting.values, ","), " ",
        setting.where, setting.given ? " given" : "",
        setting.notes.empty() ? "" : " # ", absl::StrJoin(setting.notes, ",")));
  }
  return lines;
}

SettingsInput Input() {
  SettingsInput input;
  input.environment = [](const std::string&) { return absl::nullopt; };
  input.file_name = "f.yaml";
  return input;
}

TEST(SettingsListTest, TellsWhatWasGivenFromDefaults) {
  SettingsInput input = Input();
  input.flags = {{"mask", "a"}, {"mask", "b"}, {"function", "f"}};
  EXPECT_THAT(Listed(input),
              ElementsAre("function=f --function given", "ttl.max=1h default",
                          "mask=a,b --mask given # 2 paths",
                          "cache.dir unset default"));
}

TEST(SettingsListTest, EntriesTellOnlyWhatTheySayThemselves) {
  SettingsInput input = Input();
  input.flags = {{"mask", "a"}};
  const auto yaml = ParseYaml(
      "functions:\n- name: f\n  ttl: {max: 2h}\n- name: g\n  mask: [b]\n",
      input.file_name);
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  input.file = *yaml;
  EXPECT_THAT(
      Listed(input),
      ElementsAre("ttl.max=1h default", "mask=a --mask given # 1 paths",
                  "cache.dir unset default", "f name=f f.yaml:2 given",
                  "f ttl.max=2h f.yaml:3 given", "g name=g f.yaml:4 given",
                  "g mask=b f.yaml:5 given # 1 paths"));
}

}  // namespace
}  // namespace fncache::proxy::telemetry
