// SPDX-License-Identifier: Apache-2.0
// Scenario files: what they say, and what is said of what they cannot say.
#include "runner/load/scenario.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "gtest/gtest.h"
#include "runner/load/options.h"
#include "tests/common/temp_dir.h"

namespace fncache::runner::load {
namespace {

using Kind = model::ScenarioEvent::Kind;

absl::StatusOr<LoadOptions> Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "load");
  const std::string folder = absl::StrCat(FNCACHE_SOURCE_DIR, "/examples/");
  arguments.push_back(folder + "xr.yaml");
  arguments.push_back(folder + "composition.yaml");
  arguments.push_back(folder + "functions.yaml");
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  return ParseLoadOptions(static_cast<int>(raw.size()), raw.data());
}

TEST(ScenarioTest, TheExampleSaysWhatItMeans) {
  const auto options = Parse({absl::StrCat("--scenario=", FNCACHE_SOURCE_DIR,
                                           "/examples/scenario.yaml")});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->model.composites, 50);
  EXPECT_EQ(options->model.start, model::StartFrom::kSteady);
  EXPECT_EQ(options->model.churn.noop, 60);
  EXPECT_EQ(options->duration, absl::Minutes(1));
  EXPECT_EQ(options->given.at("--composites"), "50");
  const auto& events = options->model.events;
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].kind, Kind::kFlapping);
  EXPECT_EQ(events[0].at, absl::Seconds(10));
  EXPECT_EQ(events[0].length, absl::Seconds(10));
  EXPECT_EQ(events[0].rate, 10);
  EXPECT_EQ(events[0].share, 0.2);
  EXPECT_EQ(events[1].kind, Kind::kUpgrade);
  ASSERT_EQ(options->upgrades.size(), 1U);
  EXPECT_EQ(options->upgrades[0].event, 1U);
  EXPECT_EQ(options->upgrades[0].function, "function-buckets");
  EXPECT_EQ(options->upgrades[0].target, "127.0.0.1:9445");
  EXPECT_EQ(events[2].kind, Kind::kBurst);
  EXPECT_EQ(events[2].composites, 20);
  EXPECT_EQ(events[3].kind, Kind::kRestart);
}

TEST(ScenarioTest, FlagsWin) {
  const auto options = Parse({absl::StrCat("--scenario=", FNCACHE_SOURCE_DIR,
                                           "/examples/scenario.yaml"),
                              "--composites=3", "--churn=spec=5"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->model.composites, 3);
  EXPECT_EQ(options->model.churn.spec, 5);
  EXPECT_EQ(options->model.churn.noop, 0);
}

TEST(ScenarioTest, NamesWhatProvidersWrite) {
  const testing::TempDir dir;
  const std::string path = dir.path() + "/scenario.yaml";
  testing::WriteFile(
      path,
      "status:\n"
      "- {field: atProvider.vpcId, when: ready, value: id, kind: VPC}\n"
      "- {field: atProvider.seen, when: heartbeat, value: time}\n"
      "- {field: phase, when: first, text: pending}\n"
      "- {field: tries, when: every, value: counter}\n");
  const auto options = Parse({"--scenario", path});
  ASSERT_TRUE(options.ok()) << options.status();
  const auto& status = options->model.status;
  using When = model::StatusField::When;
  using Content = model::StatusField::Content;
  // The heartbeat replaced the default one.
  ASSERT_EQ(status.size(), model::DefaultStatus().size() + 3);
  const auto* const named = &status[status.size() - 4];
  EXPECT_EQ(named[0].path, (std::vector<std::string>{"atProvider", "vpcId"}));
  EXPECT_EQ(named[0].when, When::kReady);
  EXPECT_EQ(named[0].content, Content::kId);
  EXPECT_EQ(named[0].kind, "VPC");
  EXPECT_EQ(named[1].when, When::kHeartbeat);
  EXPECT_EQ(named[1].content, Content::kTime);
  EXPECT_EQ(named[2].when, When::kFirst);
  EXPECT_EQ(named[2].text, "pending");
  EXPECT_EQ(named[3].when, When::kEvery);
  EXPECT_EQ(named[3].content, Content::kCounter);
}

TEST(ScenarioTest, WhatIsWrongIsNamedWithItsLine) {
  struct Case {
    const char* text;
    const char* said;
  };
  const Case cases[] = {
      {"a\n", ":1: a map of options"},
      {"seed: 1\nworkerz: 3\n", ":2: \"workerz\" is not known here"},
      {"seed: 1\nworkerz: 3\n", "did you mean workers?"},
      {"seed: 1\nworkers: 0\n", ":2: workers: \"0\" is not accepted; accepted"},
      {"start: hot\n", ":1: start: \"hot\" is not accepted; accepted: create"},
      {"poll-interval: 1ms\n", ":1: poll-interval: \"1ms\" is not accepted"},
      {"workers: [1]\n", ":1: workers: this is not accepted; accepted: one"},
      {"churn:\n  nop: 1\n", ":2: \"nop\" is not known here"},
      {"churn:\n  noop: x\n", ":2: noop: \"x\" is not accepted; accepted"},
      {"churn: 3\n", ":1: churn: \"3\" is not accepted; accepted: a map"},
      {"status: 3\n", ":1: status: \"3\" is not accepted; accepted: a list"},
      {"status:\n- x\n", ":2: a field of the status is a map"},
      {"status:\n- {field: a}\n", ":2: a field of the status needs"},
      {"status:\n- {field: a, when: ready}\n", ":2: a field of the status"},
      {"status:\n- {field: a, when: ready, value: id, text: x}\n",
       ":2: a field of the status needs"},
      {"status:\n- {field: a..b, when: ready, value: id}\n",
       ":2: field: \"a..b\" is not accepted; accepted: names below status"},
      {"status:\n- {field: conditions, when: ready, value: id}\n",
       ":2: field: \"conditions\" is not accepted"},
      {"status:\n- {field: a, when: now, value: id}\n",
       ":2: when: \"now\" is not accepted; accepted: first, every, ready, "},
      {"status:\n- {field: a, when: ready, value: uid}\n",
       ":2: value: \"uid\" is not accepted; accepted: id, counter, time"},
      {"events: 3\n", ":1: events: \"3\" is not accepted; accepted: a list"},
      {"events:\n- 3\n", ":2: an event is a map"},
      {"events:\n- restart: {}\n", ":2: an event needs at"},
      {"events:\n- at: 1s\n", ":2: an event has one of"},
      {"events:\n- {at: 1s, restart: {}, burst: {composites: 1}}\n",
       ":2: an event has one of"},
      {"events:\n- at: 1s\n  restart: {x: 1}\n", ":3: \"x\" is not known"},
      {"events:\n- at: -1s\n  restart: {}\n", ":2: at: \"-1s\" is not"},
      {"events:\n- at: 1h\n  restart: {}\n", ":2: at: 1h0m0s is not accepted"},
      {"events:\n- at: 1s\n  burst: {}\n", ":3: burst needs composites"},
      {"events:\n- at: 1s\n  burst: {composites: 0}\n",
       ":3: composites: \"0\" is not accepted"},
      {"events:\n- at: 1s\n  flapping: {for: 1s}\n", ":3: flapping needs for"},
      {"events:\n- at: 1s\n  flapping:\n    share: 2\n",
       ":4: share: \"2\" is not accepted; accepted: a number from 0 to 1"},
      {"events:\n- at: 1s\n  upgrade: {function: f}\n",
       ":3: upgrade needs function"},
  };
  for (const Case& one : cases) {
    const testing::TempDir dir;
    const std::string path = dir.path() + "/scenario.yaml";
    testing::WriteFile(path, one.text);
    const auto options = Parse({"--scenario", path});
    ASSERT_FALSE(options.ok()) << one.text;
    const std::string message(options.status().message());
    EXPECT_TRUE(absl::StrContains(message, path + ":")) << message;
    EXPECT_TRUE(absl::StrContains(message, one.said)) << message;
    EXPECT_FALSE(absl::StrContains(message, "\n")) << message;
  }
}

TEST(ScenarioTest, EventsNeedTheModel) {
  const std::string scenario = absl::StrCat("--scenario=", FNCACHE_SOURCE_DIR,
                                            "/examples/scenario.yaml");
  for (const char* loop : {"--rate=5", "--concurrency=5"}) {
    const auto options = Parse({scenario, loop});
    ASSERT_FALSE(options.ok()) << loop;
    EXPECT_TRUE(absl::StrContains(options.status().message(),
                                  "scenario.yaml:17: events: not with"))
        << options.status();
  }
  const auto missing = Parse({"--scenario", "/no/such/file"});
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_EQ(missing.status().message(),
            "--scenario: /no/such/file: No such file or directory");
}

}  // namespace
}  // namespace fncache::runner::load
