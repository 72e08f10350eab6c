// SPDX-License-Identifier: Apache-2.0
// The check of the shared tier with a server that answers what a test says.
// Real servers: tests/integration/shared_check_test.cc.
#include "proxy/shared_check.h"

#include <functional>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/store/shared_scripts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::proxy {
namespace {

using resp::Answer;
using resp::Node;
using resp::Outcome;
using resp::Reply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Reply Text(std::string text) {
  Reply reply;
  reply.kind = Reply::Kind::kText;
  reply.text = std::move(text);
  return reply;
}

Answer Array(const std::vector<std::string>& texts) {
  Answer answer{Outcome::kReply, {}, ""};
  answer.reply.kind = Reply::Kind::kArray;
  for (const std::string& text : texts) {
    answer.reply.elements.push_back(Text(text));
  }
  return answer;
}

class FakeServer : public resp::Server {
 public:
  Answer Run(const resp::Command& command) override {
    const std::string name(command.words[0]);
    // A script's step has no name of its own: these are of the fill.
    const bool look = command.words.size() > 1 &&
                      command.words[1] == cache::store::kLookScript;
    if (const auto found = answers.find(name);
        !look && found != answers.end()) {
      return found->second;
    }
    if (look) {
      EXPECT_EQ(command.key, "record");
      if (time_fails) return {Outcome::kError, {}, "ERR no\x1b[31m"};
      const int64_t micros = absl::ToUnixMicros(absl::Now() + ahead);
      return Array({"", absl::StrCat(micros / 1'000'000),
                    absl::StrCat(micros % 1'000'000)});
    }
    if (name == "CONFIG") {
      return Array({"maxmemory", "1048576", "maxmemory-policy", "allkeys-lru"});
    }
    Answer answer{Outcome::kReply, {}, ""};
    if (name == "EVAL") {
      key = std::string(command.words[3]);
      value = std::string(command.words[4]);
    } else if (name == "GET") {
      answer.reply = Text(value);
    }
    EXPECT_EQ(command.key, key);
    if (name == "DEL") value.clear();
    return answer;
  }
  Node NodeOf(absl::string_view) const override { return node; }
  resp::ServerFigures figures() const override {
    resp::ServerFigures figures;
    figures.nodes = {node};
    return figures;
  }

  std::map<std::string, Answer> answers;
  bool time_fails = false;
  absl::Duration ahead;
  Node node{"h:1", Node::State::kUp, absl::Now(), "", "8.1", "master"};
  std::string key;
  std::string value;
};

TEST(SharedCheckTest, AServerThatWorksHasNoWarnings) {
  FakeServer server;
  const auto report = CheckShared("team", "record", &server);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->warnings, IsEmpty());
  EXPECT_THAT(report->text, HasSubstr("node: h:1, version 8.1, master\n"));
  EXPECT_THAT(report->text, HasSubstr("memory bound: 1MiB\n"));
  EXPECT_THAT(server.key, StartsWith("team:1:"));
  EXPECT_EQ(server.value, "") << "deleted";
}

TEST(SharedCheckTest, ClocksMoreThanASecondApartAreWarnedOf) {
  for (const int seconds : {-3, 3}) {
    FakeServer server;
    server.ahead = absl::Seconds(seconds);
    const auto report = CheckShared("p", "record", &server);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->warnings,
                ElementsAre(HasSubstr("does not use the shared tier")));
    EXPECT_THAT(report->text, HasSubstr(seconds > 0 ? "that of the server"
                                                    : "that of this machine"));
  }
}

TEST(SharedCheckTest, EachStepThatFailsIsNamedWithTheServersWords) {
  for (const char* const step : {"TIME", "fill", "GET", "DEL"}) {
    FakeServer server;
    server.time_fails = step == std::string("TIME");
    server.answers[step == std::string("fill") ? "EVAL" : step] = {
        Outcome::kError, {}, "ERR no\x1b[31m"};
    const auto report = CheckShared("p", "record", &server);
    ASSERT_TRUE(absl::IsUnavailable(report.status()));
    EXPECT_EQ(report.status().message(),
              absl::StrCat(step, ": ERR no\\x1b[31m"));
  }
  FakeServer server;
  server.answers["GET"] = {Outcome::kReply, Text("another"), ""};
  EXPECT_THAT(CheckShared("p", "record", &server).status().message(),
              HasSubstr("not the one that was stored"));
}

TEST(SharedCheckTest, ANodeThatIsDownIsNamedWithItsReason) {
  FakeServer server;
  server.node.state = Node::State::kDown;
  server.node.why = "LOADING";
  EXPECT_EQ(CheckShared("p", "record", &server).status().message(),
            "h:1: LOADING");
}

TEST(SharedCheckTest, AUserMayBeUnableToAskForTheBound) {
  FakeServer server;
  server.answers["CONFIG"] = {Outcome::kDown, {}, "NOPERM config"};
  const auto report = CheckShared("p", "record", &server);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->text, HasSubstr("may not ask (NOPERM config)\n"));
  EXPECT_THAT(report->warnings, IsEmpty());
}

TEST(SharedCheckTest, WhatTheServerSaysIsPrintable) {
  FakeServer server;
  server.node.version = "7\x1b]0;\n# x";
  EXPECT_THAT(CheckShared("p", "record", &server)->text,
              Not(HasSubstr("\x1b")));
  EXPECT_THAT(CheckShared("p", "record", &server)->text,
              Not(HasSubstr("\n# x")));
}

}  // namespace
}  // namespace fncache::proxy
