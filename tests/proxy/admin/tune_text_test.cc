// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/tune_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/admin.pb.h"
#include "tests/proxy/admin/stats_testing.h"

namespace fncache::proxy::admin {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kTune[] = R"pb(
  since { seconds: 1800000000 }
  functions {
    function: "function-a"
    state: "on"
    hits: 12345
    saved { seconds: 7200 }
    revoked_hits: 3
    questions_by_answer { name: "same" count: 380 }
    questions_by_answer { name: "differs" count: 12 }
    questions_by_answer { name: "none" count: 8 }
    question_time { seconds: 20 }
    proofs_by_result { name: "proven" count: 90 }
    proofs_by_result { name: "read" count: 1 }
    keys_repeating: 78
    keys_proven: 56
    budget: 12.7
    steps {
      input_kind: "GoTemplate"
      input_digest: "1a2b3c4d"
      composite_api_version: "example.org/v1"
      composite_kind: "Bucket"
      reads: "times"
      reads_since { seconds: 1800000060 }
      varies_since { seconds: 1800000120 }
      no_questions_until { seconds: 1800000720 }
      seen: "Bucket team-a/logs\033[31m"
    }
    steps {
      composite_kind: "Network"
      varies_since { seconds: 1800000180 }
      seen: "Network net"
    }
    unread {
      path: "observed.resources.bucket.resource.status.polls"
      mask: "observed.resources.bucket.resource.status.polls"
      count: 1200
    }
    unread {
      path: "observed.composite.resource.status.conditions.*.lastTransitionTime"
      mask: "@times"
      count: 3
    }
    unread { path: "context.a\033" mask: "context.a\033" count: 2 }
  }
  functions { function: "function-b" state: "idle" }
  functions { function: "function-c" state: "off" }
)pb";

TEST(TuneTextTest, ShowsTheGainTheCostAndTheSteps) {
  EXPECT_EQ(TuneText(Parsed<v1::TuneResponse>(kTune)),
            R"(since 2027-01-15 08:00:00 UTC

function-a: tune: on
  hits across drift  12,345, 3 of them revoked: the function reads what they differed in
  saved              2h0m
  asked              400: 380 same, 12 differs, 8 none
  spent              20s
  proofs             90 proven, 1 read
  keys               56 proven, 78 repeating
  questions left     12

  input                composite              reads                                       since                    seen at
  GoTemplate 1a2b3c4d  example.org/v1 Bucket  times                                       2027-01-15 08:01:00 UTC  Bucket team-a/logs\x1b[31m
  GoTemplate 1a2b3c4d  example.org/v1 Bucket  varies, asked from 2027-01-15 08:12:00 UTC  2027-01-15 08:02:00 UTC  Bucket team-a/logs\x1b[31m
  -                    Network                varies                                      2027-01-15 08:03:00 UTC  Network net

  changed without changing answers: mask                                          runs
  observed.resources.bucket.resource.status.polls                                1,200  your promise
  @times for observed.composite.resource.status.conditions.*.lastTransitionTime      3  your promise
  context.a\x1b                                                                      2  your promise

function-b: tune: idle, as mode is not on
  hits across drift  0
  saved              0s
  asked              0
  spent              0s
  proofs
  keys               0 proven, 0 repeating
  questions left     0

function-c: tune: off

A mask is your promise that the function does not read what it hides. The function
was not asked about it: fncache probe asks.
)");
}

TEST(TuneTextTest, ShowsWhatChangedWithoutTuningToo) {
  auto response = Parsed<v1::TuneResponse>(R"pb(
    functions {
      function: "a"
      state: "off"
      unread { path: "x" mask: "x" count: 2 }
    }
  )pb");
  EXPECT_THAT(TuneText(response), HasSubstr("\na: tune: off\n\n  changed "));
  for (int i = 0; i < 12; ++i) {
    *response.mutable_functions(0)->add_unread() =
        response.functions(0).unread(0);
  }
  EXPECT_THAT(TuneText(response), HasSubstr("and 3 more; --json has all"));
  response.mutable_functions(0)->clear_unread();
  EXPECT_THAT(TuneText(response), EndsWith("\na: tune: off\n"));
}

TEST(TuneTextTest, ManyStepsAreCut) {
  auto response = Parsed<v1::TuneResponse>(kTune);
  auto* const function = response.mutable_functions(0);
  for (int i = 0; i < 20; ++i) *function->add_steps() = function->steps(1);
  EXPECT_THAT(TuneText(response), HasSubstr("and 13 more; --json has all"));
  EXPECT_EQ(json::parse(TuneJson(response))["functions"][0]["steps"].size(),
            22u);
}

TEST(TuneTextTest, SaysThatNothingIsTuned) {
  v1::TuneResponse response;
  response.mutable_since()->set_seconds(1'800'000'000);
  EXPECT_EQ(TuneText(response),
            "since 2027-01-15 08:00:00 UTC\n\nNo function has tune: on.\n");
  EXPECT_EQ(json::parse(TuneJson(response))["functions"], json::array());
}

TEST(TuneTextTest, TheJsonHasAll) {
  const json all = json::parse(TuneJson(Parsed<v1::TuneResponse>(kTune)));
  EXPECT_EQ(all["since_unix_seconds"], 1'800'000'000);
  ASSERT_EQ(all["functions"].size(), 3u);
  const json& function = all["functions"][0];
  EXPECT_EQ(function["function"], "function-a");
  EXPECT_EQ(function["state"], "on");
  EXPECT_EQ(function["hits_across_drift"], 12345);
  EXPECT_EQ(function["seconds_saved"], 7200);
  EXPECT_EQ(function["revoked_hits"], 3);
  EXPECT_EQ(function["questions"], 400);
  EXPECT_EQ(function["questions_by_answer"]["differs"], 12);
  EXPECT_EQ(function["question_seconds"], 20);
  EXPECT_EQ(function["questions_left"], 12.7);
  EXPECT_EQ(function["proofs_by_result"]["read"], 1);
  EXPECT_EQ(function["keys_proven"], 56);
  EXPECT_EQ(function["keys_repeating"], 78);
  const json& step = function["steps"][0];
  EXPECT_EQ(step["input_kind"], "GoTemplate");
  EXPECT_EQ(step["input_digest"], "1a2b3c4d");
  EXPECT_EQ(step["composite_api_version"], "example.org/v1");
  EXPECT_EQ(step["composite_kind"], "Bucket");
  EXPECT_EQ(step["reads"], "times");
  EXPECT_EQ(step["reads_since_unix_seconds"], 1'800'000'060);
  EXPECT_EQ(step["varies"], true);
  EXPECT_EQ(step["varies_since_unix_seconds"], 1'800'000'120);
  EXPECT_EQ(step["no_questions_until_unix_seconds"], 1'800'000'720);
  EXPECT_EQ(step["seen"], "Bucket team-a/logs\033[31m");
  const json& other = function["steps"][1];
  EXPECT_TRUE(other["input_kind"].is_null());
  EXPECT_TRUE(other["reads"].is_null());
  EXPECT_TRUE(other["reads_since_unix_seconds"].is_null());
  EXPECT_TRUE(other["no_questions_until_unix_seconds"].is_null());
  const json& changed = function["changed_without_changing_answers"];
  ASSERT_EQ(changed.size(), 3u);
  EXPECT_EQ(changed[1],
            json({{"path",
                   "observed.composite.resource.status.conditions.*."
                   "lastTransitionTime"},
                  {"mask", "@times"},
                  {"runs", 3},
                  {"function_asked", false}}));
  EXPECT_EQ(all["functions"][1]["changed_without_changing_answers"],
            json::array());
}

}  // namespace
}  // namespace fncache::proxy::admin
