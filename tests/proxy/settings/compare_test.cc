// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/compare.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/settings/check.h"
#include "proxy/settings/help.h"
#include "proxy/settings/settings.h"
#include "proxy/settings/source.h"
#include "proxy/telemetry/settings_list.h"

namespace fncache::proxy::settings {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kOne[] = "insecure: true\nupstream: 127.0.0.1:1\n";

ResolvedSettings Read(
    const std::string& text,
    std::map<std::string, std::string> environment = {},
    std::vector<std::pair<std::string, std::string>> flags = {}) {
  const SettingsSource source(std::move(flags), std::move(environment), "f");
  auto effective = source.Resolve(text);
  EXPECT_TRUE(effective.ok()) << effective.status();
  return effective.ok() ? effective->resolved : ResolvedSettings();
}

std::vector<std::string> Texts(const std::vector<SettingChange>& changes) {
  std::vector<std::string> texts;
  for (const SettingChange& change : changes) {
    texts.push_back(
        absl::StrCat(NameOf(change), " ", change.before, " ", change.after));
  }
  return texts;
}

// The settings in force as `--check` would print them, without their sources.
std::map<std::string, std::string> InForce(const ReloadedSettings& reloaded) {
  std::map<std::string, std::string> values;
  for (const telemetry::ListedSetting& setting : telemetry::ListSettings(
           ServeSettings(), reloaded.settings, "function")) {
    const std::string name = setting.function.empty()
                                 ? setting.key
                                 : setting.function + "." + setting.key;
    for (const std::string& value : setting.values) {
      values[name] += value + ";";
    }
  }
  return values;
}

std::string Functions(const std::vector<std::string>& entries) {
  std::string text = "insecure: true\nfunctions:\n";
  for (const std::string& entry : entries) absl::StrAppend(&text, "- ", entry);
  return text;
}
std::string Entry(const std::string& name, int port,
                  const std::string& more = "") {
  return absl::StrCat("{name: ", name, ", listen: \"127.0.0.1:", port,
                      "\", upstream: \"127.0.0.1:1", port, "\"", more, "}\n");
}

TEST(CompareTest, TheSameIsNoChange) {
  const auto before = Read(absl::StrCat(kOne, "mask: [\"@times\"]\n"));
  const auto reloaded = Reloaded(
      before, Read(absl::StrCat("\n\n", kOne, "mask: [\"@times\"] # so\n")));
  EXPECT_THAT(reloaded.changed, IsEmpty());
  EXPECT_THAT(reloaded.restart, IsEmpty());
  EXPECT_THAT(reloaded.functions, ElementsAre(false));
  EXPECT_EQ(reloaded.settings.top.at("mask").where, "f:5")
      << "its place is the new one";
}

TEST(CompareTest, AnEmptyListIsNoOtherThanOneThatNobodyGives) {
  const auto given = Read(absl::StrCat(kOne, "mask: []\n"));
  const auto reloaded = Reloaded(given, Read(kOne));
  EXPECT_THAT(reloaded.changed, IsEmpty());
  EXPECT_THAT(reloaded.functions, ElementsAre(false));
  EXPECT_THAT(Reloaded(Read(kOne), given).changed, IsEmpty());
}

TEST(CompareTest, WhatReloadsChangesAndWhatTakesARestartStays) {
  const auto reloaded = Reloaded(
      Read(absl::StrCat(kOne, "ttl: {max: 1h}\ndrain: 1s\n")),
      Read(absl::StrCat(kOne, "mask: [\"@times\"]\ndrain: 2s\nworkers: 3\n",
                        "log: {level: debug}\n")));
  EXPECT_THAT(Texts(reloaded.changed),
              UnorderedElementsAre("ttl.max 1h 24h", "mask [] [@times]",
                                   "log.level info debug"));
  EXPECT_THAT(Texts(reloaded.restart),
              UnorderedElementsAre("drain 1s 2s", "workers unset 3"));
  EXPECT_THAT(reloaded.functions, ElementsAre(true));
  EXPECT_EQ(InForce(reloaded)["drain"], "1s;");
  EXPECT_EQ(InForce(reloaded)["ttl.max"], "24h;");
  EXPECT_EQ(reloaded.settings.top.at("drain").where, "f:4 (at the start)");
  // Read again, they are still named, and no stranger for it.
  ResolvedSettings again = Read(absl::StrCat(kOne, "drain: 2s\n"));
  const auto more = Reloaded(reloaded.settings, again);
  EXPECT_THAT(Texts(more.restart), ElementsAre("drain 1s 2s"));
  EXPECT_EQ(more.settings.top.at("drain").where, "f:4 (at the start)");
  const auto back =
      Reloaded(more.settings, Read(absl::StrCat(kOne, "drain: 1s\n")));
  EXPECT_THAT(back.restart, IsEmpty());
  EXPECT_EQ(back.settings.top.at("drain").where, "f:3");
}

TEST(CompareTest, FlagsAndEnvironmentStandBeforeTheFile) {
  const auto with = [](const std::string& text) {
    return Read(text, {{"FNCACHE_TTL_MAX", "2h"}, {"REVISION_NAME", "r"}},
                {{"ttl.min", "1m"}});
  };
  const auto reloaded = Reloaded(
      with(kOne), with(absl::StrCat(kOne, "ttl: {max: 5h, min: 5m}\n")));
  EXPECT_THAT(reloaded.changed, IsEmpty());
  EXPECT_EQ(InForce(reloaded)["ttl.max"], "2h;");
  EXPECT_EQ(InForce(reloaded)["generation"], "r;");
}

TEST(CompareTest, FunctionsAreMatchedByName) {
  const auto before = Read(Functions({Entry("a", 1), Entry("b", 2)}));
  const auto reloaded = Reloaded(
      before,
      Read(Functions({Entry("b", 2, ", mode: \"off\""), Entry("a", 1)})));
  EXPECT_THAT(Texts(reloaded.changed), ElementsAre("b.mode on off"));
  EXPECT_THAT(reloaded.restart, IsEmpty()) << "another order is nothing";
  EXPECT_THAT(reloaded.functions, ElementsAre(false, true));
  EXPECT_EQ(reloaded.settings.entries[1].at("function").text(), "b");
}

TEST(CompareTest, AFunctionThatComesGoesOrMovesTakesARestart) {
  const auto before = Read(Functions({Entry("a", 1), Entry("b", 2)}));
  const auto reloaded =
      Reloaded(before, Read(Functions({Entry("a", 7, ", ttl: {max: 3h}"),
                                       Entry("c", 3, ", mode: \"off\"")})));
  EXPECT_THAT(Texts(reloaded.changed), ElementsAre("a.ttl.max 24h 3h"));
  EXPECT_THAT(Texts(reloaded.restart),
              UnorderedElementsAre("a.listen 127.0.0.1:1 127.0.0.1:7",
                                   "a.upstream 127.0.0.1:11 127.0.0.1:17",
                                   "b.functions present absent",
                                   "c.functions absent present"));
  ASSERT_EQ(reloaded.settings.entries.size(), 2u);
  EXPECT_EQ(reloaded.settings.entries[0].at("listen").text(), "127.0.0.1:1");
  EXPECT_EQ(reloaded.settings.entries[1].at("function").text(), "b");
  EXPECT_THAT(reloaded.functions, ElementsAre(true, false));
}

TEST(CompareTest, WhatAllFunctionsHaveInCommonIsSaidOnce) {
  const auto before = Read(Functions({Entry("a", 1), Entry("b", 2)}));
  const auto reloaded = Reloaded(
      before, Read(absl::StrCat("ttl: {max: 2h}\n",
                                Functions({Entry("a", 1, ", mode: \"off\""),
                                           Entry("b", 2)}))));
  EXPECT_THAT(Texts(reloaded.changed),
              UnorderedElementsAre("a.mode on off", "ttl.max 24h 2h"));
  EXPECT_THAT(reloaded.functions, ElementsAre(true, true));
}

TEST(CompareTest, AFunctionMayMoveIntoTheListAndOut) {
  const std::string top =
      absl::StrCat("insecure: true\nfunction: a\nlisten: \"127.0.0.1:1\"\n",
                   "upstream: \"127.0.0.1:11\"\nttl: {max: 1h}\n");
  const std::string list = Functions({Entry("a", 1, ", ttl: {max: 2h}")});
  const auto in = Reloaded(Read(top), Read(list));
  EXPECT_THAT(Texts(in.changed), ElementsAre("ttl.max 1h 2h"));
  EXPECT_THAT(in.restart, IsEmpty());
  EXPECT_FALSE(in.settings.has_entries);
  const auto out = Reloaded(Read(list), Read(top));
  EXPECT_THAT(Texts(out.changed), ElementsAre("a.ttl.max 2h 1h"));
  EXPECT_THAT(out.restart, IsEmpty());
  EXPECT_TRUE(out.settings.has_entries);
}

// Only settings of objects that are made at the start need a restart.
TEST(CompareTest, TheTableKnowsWhatCanChange) {
  std::vector<std::string> restart;
  for (const Setting& setting : ServeSettings().settings()) {
    if (!setting.reloads) restart.push_back(setting.key);
  }
  EXPECT_THAT(
      restart,
      UnorderedElementsAre(
          "listen", "upstream", "function", "tls_dir", "insecure",
          "upstream_tls_dir", "upstream_server_name", "cache.dir", "shared.url",
          "shared.secret_file", "shared.username", "shared.password_file",
          "shared.tls_dir", "shared.server_name", "shared.prefix", "workers",
          "admin", "admin_socket", "drain", "drain_delay", "explain.memory"));
  for (const Setting& setting : ServeSettings().settings()) {
    EXPECT_THAT(ReloadNotes(), HasSubstr(setting.key));
  }
  EXPECT_THAT(ServeReference(), HasSubstr("- changes: while it runs\n"));
  EXPECT_THAT(ServeReference(), HasSubstr("- changes: at a restart\n"));
}

TEST(SourceTest, ErrorsNameFileLineKeyAndRange) {
  const SettingsSource source({}, {}, "some.yaml");
  const auto bad = source.Resolve(absl::StrCat(kOne, "ttl: {max: soon}\n"));
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.status().message(), HasSubstr("some.yaml:3: ttl.max: "));
  EXPECT_THAT(bad.status().message(), HasSubstr("accepted: a duration"));
  EXPECT_FALSE(source.Resolve("mask: [\"@ver").ok());
  EXPECT_FALSE(source.ReadFile().ok());
}

}  // namespace
}  // namespace fncache::proxy::settings
