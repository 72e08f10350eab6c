// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/tuning_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"

namespace fncache::proxy::serving {
namespace {

namespace fnv1 = apiextensions::fn::proto::v1;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// An answer without meta, with these values in a resource.
std::string Answer(const std::string& first, const std::string& second,
                   int more = 0) {
  fnv1::RunFunctionResponse response;
  auto& fields = *(*response.mutable_desired()->mutable_resources())["bucket"]
                      .mutable_resource()
                      ->mutable_fields();
  fields["first"].set_string_value(first);
  fields["second"].set_string_value(second);
  for (int i = 0; i < more; ++i) {
    fields[absl::StrCat("more", i)].set_string_value(first);
  }
  return response.SerializeAsString();
}

TEST(PathsDifferingTest, AnswersDifferAtPaths) {
  const std::string path = "desired.resources.bucket.resource.";
  EXPECT_EQ(PathsDiffering({Answer("a", "b")}, {Answer("c", "b")}),
            path + "first");
  const std::string both =
      PathsDiffering({Answer("secret-a", "b")}, {Answer("c", "d")});
  EXPECT_THAT(both, HasSubstr(path + "first"));
  EXPECT_THAT(both, HasSubstr(path + "second"));
  EXPECT_THAT(both, Not(HasSubstr("secret")));
  EXPECT_EQ(PathsDiffering({Answer("a", "b")}, {Answer("a", "b")}), "");
}

TEST(PathsDifferingTest, TheFirstPathsAreEnough) {
  const std::string paths =
      PathsDiffering({Answer("a", "b", 40)}, {Answer("c", "b", 40)});
  EXPECT_EQ(std::count(paths.begin(), paths.end(), ','), 4);
}

TEST(PathsDifferingTest, OfLargeAnswersOnlyFieldsAreNamed) {
  const std::string large(200 << 10, 'x');
  EXPECT_EQ(PathsDiffering({Answer(large, "b")}, {Answer(large, "c")}),
            "desired");
}

TEST(PathsDifferingTest, VeryLargeAnswersAreNotRead) {
  const std::string large(600 << 10, 'x');
  EXPECT_EQ(PathsDiffering({Answer(large, "b")}, {Answer(large, "c")}), "");
}

TEST(PathsDifferingTest, WhatCannotBeReadHasNoPaths) {
  EXPECT_EQ(PathsDiffering({"\xff"}, {Answer("a", "b")}), "");
  const std::string large(300 << 10, '\xff');
  EXPECT_EQ(PathsDiffering({large}, {Answer("a", "b")}), "");
}

class TuningLogTest : public ::testing::Test {
 protected:
  std::string Found(const Finding& finding, Reads reads = Reads::kTimes) {
    ::testing::internal::CaptureStderr();
    log_.Found(finding, reads, {"", "", "", "", "Bucket team-a/logs"},
               "desired.a, desired.b", now_);
    return ::testing::internal::GetCapturedStderr();
  }
  static Finding Reading(uint64_t revoked = 0) {
    Finding finding;
    finding.reads = true;
    finding.revoked_hits = revoked;
    return finding;
  }
  static Finding Varying() {
    Finding finding;
    finding.varies = true;
    return finding;
  }

  TuningLog log_{"function-a"};
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

TEST_F(TuningLogTest, AFindingIsALine) {
  EXPECT_THAT(Found(Finding()), IsEmpty());
  const std::string line = Found(Reading());
  EXPECT_THAT(line, HasSubstr(" info tune: the function reads drift: "));
  EXPECT_THAT(line, HasSubstr("function=function-a "
                              "composite=\"Bucket team-a/logs\" reads=times "
                              "paths=\"desired.a, desired.b\""));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  now_ += absl::Minutes(1);
  EXPECT_THAT(Found(Reading(), Reads::kAll), HasSubstr(" reads=versions "));
  now_ += absl::Minutes(1);
  EXPECT_THAT(Found(Reading(), Reads::kUndecided), HasSubstr(" reads=drift "));
  now_ += absl::Minutes(1);
  const std::string varies = Found(Varying());
  EXPECT_THAT(varies, HasSubstr("gave equal requests other answers"));
  EXPECT_THAT(varies, HasSubstr("paths=\"desired.a, desired.b\""));
  EXPECT_THAT(varies, Not(HasSubstr("reads=")));
}

TEST_F(TuningLogTest, AMinuteHasOneLine) {
  Found(Reading());
  now_ += absl::Seconds(59);
  EXPECT_THAT(Found(Varying()), IsEmpty());
  EXPECT_THAT(Found(Reading()), IsEmpty());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Found(Reading()), HasSubstr("unlogged=2"));
}

TEST_F(TuningLogTest, RevokedHitsAreAnError) {
  const std::string lines = Found(Reading(7));
  EXPECT_THAT(lines, HasSubstr(" info tune: "));
  const std::string error = lines.substr(lines.find('\n') + 1);
  EXPECT_THAT(error, HasSubstr(" error tune: "));
  EXPECT_THAT(error, HasSubstr("function=function-a "
                               "composite=\"Bucket team-a/logs\" reads=times "
                               "hits=7"));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1);
}

}  // namespace
}  // namespace fncache::proxy::serving
