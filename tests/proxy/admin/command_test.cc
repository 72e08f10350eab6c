// SPDX-License-Identifier: Apache-2.0
// The command line against a daemon that is not one: what is asked of it, what
// is printed, and the exit code.
#include "proxy/admin/command.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/admin/server.h"
#include "tests/common/temp_dir.h"
#include "tests/proxy/admin/fake_actions.h"
#include "tests/proxy/admin/stats_testing.h"

namespace fncache::proxy::admin {
namespace {

using ::fncache::testing::TempDir;
using ::fncache::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kKey[] = "30313233343536373839616263646566";

class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    ServerOptions options;
    options.path = dir_.File("a.sock");
    auto server = Server::Start(options, &actions_);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Runs it and returns the exit code. Its output is in out_ and err_.
  int Admin(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"admin", "--socket", server_->path()});
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = AdminMain(static_cast<int>(arguments.size()), argv.data());
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  TempDir dir_;
  FakeActions actions_;
  std::unique_ptr<Server> server_;
  std::string out_;
  std::string err_;
};

TEST_F(CommandTest, PurgeAsksForWhatItsFlagsSay) {
  EXPECT_EQ(Admin({"purge", "--all"}), 0);
  EXPECT_THAT(out_, StartsWith(absl::StrCat("purged: everything, on ",
                                            server_->path(), "; ")));
  EXPECT_EQ(Admin({"purge", "--function", "f", "--soft"}), 0);
  EXPECT_THAT(out_, StartsWith("made stale: function f, on "));
  EXPECT_EQ(Admin({"purge", "--function=f", "--generation", ""}), 0);
  EXPECT_THAT(out_,
              StartsWith("purged: function f, generation \"\" (none), on "));
  EXPECT_EQ(Admin({"purge", "--function=f", "--generation", "g"}), 0);
  EXPECT_THAT(out_, StartsWith("purged: function f, generation \"g\", on "));
  EXPECT_EQ(Admin({"purge", "--key", kKey}), 0);
  EXPECT_THAT(out_, StartsWith(absl::StrCat("purged: key ", kKey, ", on ")));
  EXPECT_EQ(Admin({"purge", "--key", kKey, "--function", "f"}), 0);
  EXPECT_THAT(out_, HasSubstr(" of function f, on "));
  EXPECT_THAT(
      actions_.asked(),
      ElementsAre("Purge: all { }",
                  "Purge: of_function { function: \"f\" } "
                  "soft: true",
                  "Purge: of_function { function: \"f\" generation: \"\" }",
                  "Purge: of_function { function: \"f\" generation: \"g\" }",
                  "Purge: key: \"0123456789abcdef\"",
                  "Purge: key: \"0123456789abcdef\" function: \"f\""));
}

TEST_F(CommandTest, AnEmptyValueIsNoFlagThatWasNotGiven) {
  const std::vector<std::vector<std::string>> cases = {
      {"purge", "--all", "--key", ""},
      {"purge", "--key", kKey, "--function", ""},
      {"lookup", "--key", kKey, "--function", ""},
      {"explain", "--function", ""},
      {"trace", "start", "--dir", ""},
      {"trace", "start", "--for", ""},
      {"log", "info", "--for", ""},
      {"stats", "--cache-dir", ""},
  };
  for (const std::vector<std::string>& arguments : cases) {
    EXPECT_EQ(Admin(arguments), 2) << arguments.back();
    EXPECT_THAT(err_, HasSubstr(": must not be empty; see "));
  }
  EXPECT_EQ(Admin({"log", ""}), 2);
  EXPECT_THAT(actions_.asked(), IsEmpty());
}

TEST_F(CommandTest, AGenerationHasAtMostSoManyBytes) {
  EXPECT_EQ(
      Admin({"purge", "--function=f", "--generation", std::string(1024, 'g')}),
      0);
  EXPECT_EQ(
      Admin({"purge", "--function=f", "--generation", std::string(1025, 'g')}),
      2);
  EXPECT_THAT(err_, HasSubstr("--generation: has 1025 bytes; accepted: a text "
                              "of at most 1024 bytes"));
  EXPECT_EQ(actions_.asked().size(), 1u);
}

TEST_F(CommandTest, DurationsAreOfTheDaemonsRange) {
  EXPECT_EQ(Admin({"log", "info", "--for", "8760h"}), 0);
  EXPECT_EQ(Admin({"log", "info", "--for", "1ns"}), 0);
  EXPECT_EQ(actions_.asked().size(), 2u);
  for (const std::string bad : {"8760h1ns", "0s", "-1s", "soon"}) {
    EXPECT_EQ(Admin({"log", "info", "--for", bad}), 2);
    EXPECT_THAT(err_, HasSubstr(absl::StrCat(
                          "--for: \"", bad,
                          "\" is not accepted; accepted: a duration above 0, "
                          "at most 8760h, such as 10m")));
    EXPECT_EQ(Admin({"trace", "start", "--for", bad}), 2);
  }
  EXPECT_EQ(actions_.asked().size(), 2u);
}

TEST_F(CommandTest, ATraceGoesToAnAbsolutePath) {
  EXPECT_EQ(Admin({"trace", "start", "--dir", "trace"}), 2);
  EXPECT_THAT(err_, HasSubstr("--dir: \"trace\" is not accepted, as it is on "
                              "the daemon's machine; accepted: an absolute "
                              "path; see fncache admin trace start --help"));
  EXPECT_THAT(actions_.asked(), IsEmpty());
}

TEST_F(CommandTest, OnlyFlagsOfTheCommandAreProposed) {
  EXPECT_EQ(Admin({"stats", "--jsno"}), 2);
  EXPECT_THAT(err_, HasSubstr("unknown flag --jsno; did you mean --json?"));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"purge", "--jsno"},
        {"purge", "--json"},
        {"trace", "stop", "--fro"},
        {"lookup", "--lats", "3"}}) {
    EXPECT_EQ(Admin(arguments), 2);
    EXPECT_THAT(err_, Not(HasSubstr("did you mean"))) << arguments.back();
  }
  EXPECT_EQ(Admin({"purge", "--sokcet", "a"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean --socket?"));
  EXPECT_EQ(Admin({"trace", "start", "--dri=/a"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean --dir?"));
}

TEST_F(CommandTest, APartThatWasNotReachedIsAFailure) {
  actions_.purge.add_unreached("shared tier: redis-1:6379");
  EXPECT_EQ(Admin({"purge", "--all"}), 1);
  EXPECT_THAT(out_, HasSubstr("not reached: shared tier: redis-1:6379\n"));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(CommandTest, LookUpAsksByKeyOrByRequest) {
  EXPECT_EQ(Admin({"lookup", "--key", kKey}), 0);
  EXPECT_THAT(out_, HasSubstr("no tier has an entry"));
  WriteFile(dir_.File("r.binpb"), "a request");
  EXPECT_EQ(Admin({"lookup", "--request", dir_.File("r.binpb"), "--function",
                   "f", "--method", "v1beta1"}),
            0);
  EXPECT_THAT(actions_.asked(),
              ElementsAre("LookUp: key: \"0123456789abcdef\"",
                          "LookUp: request: \"a request\" function: \"f\" "
                          "method: \"v1beta1\""));
}

TEST_F(CommandTest, ReloadThatIsRefusedIsNoWrongUsage) {
  actions_.reload.add_changed()->set_key("ttl.max");
  EXPECT_EQ(Admin({"reload"}), 0);
  EXPECT_THAT(out_, HasSubstr("ttl.max"));
  actions_.SetStatus(
      absl::InvalidArgumentError("fncache.yaml:3: ttl.max: \"x\""));
  EXPECT_EQ(Admin({"reload"}), 1);
  EXPECT_EQ(err_, absl::StrCat("fncache admin reload: ", server_->path(),
                               ": fncache.yaml:3: ttl.max: \"x\"\n"));
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(CommandTest, TraceAndLogPassTheirFlags) {
  EXPECT_EQ(Admin({"trace", "start", "--dir", "/t", "--level", "full", "--for",
                   "1h30m"}),
            0);
  EXPECT_EQ(Admin({"trace", "start"}), 0);
  EXPECT_EQ(Admin({"trace", "stop"}), 0);
  EXPECT_EQ(Admin({"log", "debug", "--for=10m"}), 0);
  EXPECT_EQ(Admin({"log", "warn"}), 0);
  EXPECT_THAT(
      actions_.asked(),
      ElementsAre("StartTrace: dir: \"/t\" level: \"full\" for_time { seconds: "
                  "5400 }",
                  "StartTrace", "StopTrace",
                  "SetLogLevel: level: \"debug\" for_time { seconds: 600 }",
                  "SetLogLevel: level: \"warn\""));
}

TEST_F(CommandTest, ExplainConfigAndShadowPrintWhatTheyWereTold) {
  actions_.config.set_yaml("listen: a:1  # default\n");
  actions_.shadow.set_text("f: not enough yet\n");
  actions_.shadow.set_json("{}");
  EXPECT_EQ(Admin({"explain", "--function", "f", "--last", "7"}), 0);
  EXPECT_EQ(Admin({"explain"}), 0);
  EXPECT_EQ(Admin({"config"}), 0);
  EXPECT_EQ(out_, "listen: a:1  # default\n");
  EXPECT_EQ(Admin({"shadow"}), 0);
  EXPECT_EQ(out_, "f: not enough yet\n");
  EXPECT_EQ(Admin({"shadow", "--json"}), 0);
  EXPECT_EQ(out_, "{}\n");
  EXPECT_THAT(actions_.asked(),
              ElementsAre("Explain: function: \"f\" last: 7",
                          "Explain: last: 20", "Config", "Shadow", "Shadow"));
}

TEST_F(CommandTest, TunePrintsTextOrJson) {
  auto* const function = actions_.tune.add_functions();
  function->set_function("f");
  function->set_state("on");
  function->set_hits(12);
  EXPECT_EQ(Admin({"tune"}), 0);
  EXPECT_THAT(out_, HasSubstr("hits across drift  12\n"));
  EXPECT_EQ(Admin({"tune", "--function", "f", "--json"}), 0);
  EXPECT_THAT(out_, HasSubstr("\"hits_across_drift\": 12"));
  EXPECT_THAT(actions_.asked(), ElementsAre("Tune", "Tune: function: \"f\""));
  EXPECT_EQ(Admin({"tune", "--function", ""}), 2);
  EXPECT_EQ(Admin({"tune", "extra"}), 2);
  actions_.SetStatus(absl::NotFoundError("no function is called \"g\""));
  EXPECT_EQ(Admin({"tune", "--function", "g"}), 1);
  EXPECT_EQ(err_, absl::StrCat("fncache admin tune: ", server_->path(),
                               ": no function is called \"g\"\n"));
}

TEST_F(CommandTest, StatsPrintOnce) {
  actions_.stats = StatsOfAMinute();
  EXPECT_EQ(Admin({"stats"}), 0);
  EXPECT_THAT(out_, StartsWith("fncache 1.2.3  ready  up 1m0s"));
  EXPECT_EQ(Admin({"stats", "--json"}), 0);
  EXPECT_THAT(out_, StartsWith("{\"version\":\"1.2.3\""));
  EXPECT_THAT(actions_.asked(), ElementsAre("Stats", "Stats"));
}

TEST_F(CommandTest, APurgeThatTheFleetDoesNotKnowYetIsAnError) {
  actions_.SetStatus(absl::UnavailableError(
      "purged here, but not in the record of the fleet: down"));
  EXPECT_EQ(Admin({"purge", "--all"}), 1);
  EXPECT_EQ(err_,
            absl::StrCat("fncache admin purge: ", server_->path(),
                         ": purged here, but not in the record of the fleet: "
                         "down\n"));
  EXPECT_THAT(out_, IsEmpty());
  actions_.SetStatus(absl::OkStatus());
  actions_.purge.set_shared(true);
  EXPECT_EQ(Admin({"purge", "--all"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nThe record of bans has it: other replicas "
                              "have it within 2 s"));
}

TEST_F(CommandTest, WhatTheDaemonRefusesIsOneLineAndACode) {
  actions_.SetStatus(absl::FailedPreconditionError(
      "--soft needs stale serving\nand \033[31mmore"));
  EXPECT_EQ(Admin({"purge", "--all", "--soft"}), 1);
  EXPECT_EQ(err_, absl::StrCat("fncache admin purge: ", server_->path(),
                               ": --soft needs stale serving\\nand "
                               "\\x1b[31mmore\n"));
  actions_.SetStatus(absl::InvalidArgumentError("no such level"));
  EXPECT_EQ(Admin({"log", "info"}), 2);
  EXPECT_EQ(err_,
            absl::StrCat("fncache admin log: ", server_->path(),
                         ": no such level; see fncache admin log --help\n"));
  actions_.SetStatus(absl::UnimplementedError("not in this build"));
  EXPECT_EQ(Admin({"stats"}), 1);
  EXPECT_EQ(err_, absl::StrCat("fncache admin stats: ", server_->path(),
                               ": not in this build\n"));
}

}  // namespace
}  // namespace fncache::proxy::admin
