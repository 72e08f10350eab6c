// SPDX-License-Identifier: Apache-2.0
#include "runner/function/expression.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "sdk/compose/call.h"
#include "tests/runner/messages.h"

namespace fncache::runner::function {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using ::fncache::function::Value;
using ::fncache::function::Yaml;
using testing::HasSubstr;

class ExpressionTest : public testing::Test {
 protected:
  // The value that `text` becomes, as JSON; or "error: " and the message.
  std::string Of(absl::string_view text,
                 absl::optional<int> index = absl::nullopt) {
    return Json(ExpandString(text, {ctx_, index}));
  }
  static std::string Json(const absl::StatusOr<Value>& value) {
    if (!value.ok()) {
      return absl::StrCat("error: ", value.status().message());
    }
    return ::fncache::function::Json(*value).raw();
  }

  const RunFunctionRequest request_ = FromJson<RunFunctionRequest>(R"({
    "observed": {
      "composite": {
        "resource": {
          "metadata": {"annotations": {"example.org/size": "large"}},
          "spec": {"region": "eu-1", "count": 3, "ratio": 0.1, "on": true,
                   "off": false, "zones": ["a", "b"], "none": null,
                   "zero": 0, "empty": "", "tags": {"team": "x"},
                   "big": 12345678901, "deep": [[1, {"k": "v"}]]}
        },
        "connectionDetails": {"user": "YWRtaW4=", "raw": "/w=="}
      },
      "resources": {
        "bucket-0": {"resource": {"status": {"arn": "arn:0"}}},
        "bucket-1": {"resource": {"status": {"arn": "arn:1"}}},
        "a.b": {"resource": {"x": 1}},
        "odd \"q\" \\": {"resource": {"x": 2}}
      }
    },
    "desired": {"resources": {"net": {"resource": {"cidr": "10.0.0.0/8"}}}},
    "input": {"metadata": {"name": "in"}},
    "context": {"example.org/env": {"tier": "gold"}},
    "credentials": {"aws": {"credentialData": {"data": {"id": "a2V5"}}}},
    "requiredResources": {
      "zones": {"items": [{"resource": {"metadata": {"name": "z0"}}},
                          {"resource": {"metadata": {"name": "z1"}}}]},
      "gone": {}
    }
  })");
  const ::fncache::function::Options options_{};
  const sdk::CallInfo info_{};
  sdk::Call call_{options_, info_};
  const sdk::WithReporter reporter_{&call_};
  const bool parsed_ = call_.Parse(request_.SerializeAsString());
  ::fncache::function::Context ctx_{&call_};
};

TEST_F(ExpressionTest, WholeStringKeepsTheTypeOfTheValue) {
  EXPECT_EQ(Of("${observed.composite.resource.spec.region}"), "\"eu-1\"");
  EXPECT_EQ(Of("${observed.composite.resource.spec.count}"), "3");
  EXPECT_EQ(Of("${observed.composite.resource.spec.ratio}"), "0.1");
  EXPECT_EQ(Of("${observed.composite.resource.spec.on}"), "true");
  EXPECT_EQ(Of("${observed.composite.resource.spec.off}"), "false");
  EXPECT_EQ(Of("${observed.composite.resource.spec.zones}"), "[\"a\",\"b\"]");
  EXPECT_EQ(Of("${observed.composite.resource.spec.tags}"), "{\"team\":\"x\"}");
  EXPECT_EQ(Of("${observed.composite.resource.spec.empty}"), "\"\"");
  EXPECT_EQ(Of("${observed.composite.resource.spec.zero}"), "0");
}

TEST_F(ExpressionTest, TextAroundAnExpressionMakesText) {
  EXPECT_EQ(Of("r=${observed.composite.resource.spec.region}!"), "\"r=eu-1!\"");
  EXPECT_EQ(Of("${observed.composite.resource.spec.count}"
               "${observed.composite.resource.spec.on}"),
            "\"3true\"");
  EXPECT_EQ(Of(" ${observed.composite.resource.spec.ratio}"), "\" 0.1\"");
  EXPECT_EQ(Of("n${observed.composite.resource.spec.big}"), "\"n12345678901\"");
}

TEST_F(ExpressionTest, ObjectsListsAndNullCannotBePartOfAText) {
  EXPECT_THAT(Of("x${observed.composite.resource.spec.tags}"),
              HasSubstr("an object cannot be part of a text"));
  EXPECT_THAT(Of("x${observed.composite.resource.spec.zones}"),
              HasSubstr("a list cannot be part of a text"));
  EXPECT_THAT(Of("x${observed.composite.resource.spec.none|null}"),
              HasSubstr("null cannot be part of a text"));
}

TEST_F(ExpressionTest, PathsReachEveryPartOfTheRequest) {
  EXPECT_EQ(Of("${observed.resources.bucket-0.resource.status.arn}"),
            "\"arn:0\"");
  EXPECT_EQ(Of("${desired.resources.net.resource.cidr}"), "\"10.0.0.0/8\"");
  EXPECT_EQ(Of("${context.\"example.org/env\".tier}"), "\"gold\"");
  EXPECT_EQ(Of("${input.metadata.name}"), "\"in\"");
  EXPECT_EQ(Of("${credentials.aws.credential_data.data.id}"), "\"key\"");
  EXPECT_EQ(Of("${observed.composite.connection_details.user}"), "\"admin\"");
  EXPECT_EQ(Of("${required_resources.zones.items.1.resource.metadata.name}"),
            "\"z1\"");
  EXPECT_EQ(Of("${observed.composite.resource.spec.zones.1}"), "\"b\"");
  EXPECT_EQ(Of("${observed.composite.resource.spec.deep.0.1.k}"), "\"v\"");
  EXPECT_EQ(Of("${context}"), "{\"example.org/env\":{\"tier\":\"gold\"}}");
}

TEST_F(ExpressionTest, ItemsAreAListOfWhatWasFound) {
  EXPECT_EQ(Of("${required_resources.zones.items}"),
            "[{\"resource\":{\"metadata\":{\"name\":\"z0\"}}},"
            "{\"resource\":{\"metadata\":{\"name\":\"z1\"}}}]");
  EXPECT_EQ(Of("${required_resources.gone.items}"), "[]");
  EXPECT_EQ(Of("${required_resources.never.items|no}"), "\"no\"");
}

TEST_F(ExpressionTest, KeysWithDotsAndQuotesAreQuoted) {
  EXPECT_EQ(Of("${observed.resources.\"a.b\".resource.x}"), "1");
  EXPECT_EQ(Of(R"(${observed.resources."odd \"q\" \\".resource.x})"), "2");
  EXPECT_EQ(Of("${observed.composite.resource.metadata.annotations."
               "\"example.org/size\"}"),
            "\"large\"");
}

TEST_F(ExpressionTest, MissingValueIsAnErrorThatNamesThePath) {
  EXPECT_EQ(Of("${observed.composite.resource.spec.nope}"),
            "error: ${observed.composite.resource.spec.nope}: the request has "
            "no such value");
  for (const char* path : {"observed.composite.resource.spec.region.deeper",
                           "observed.composite.resource.spec.zones.2",
                           "observed.composite.resource.spec.zones.-1",
                           "observed.composite.resource.spec.zones.x",
                           "observed.composite.resource.spec.none",
                           "observed.resources.nope.resource",
                           "observed.composite.connection_details.nope",
                           "required_resources.zones.items.2.resource",
                           "required_resources.nope.items.0.resource",
                           "credentials.nope.credential_data.data.id"}) {
    EXPECT_THAT(Of(absl::StrCat("${", path, "}")), HasSubstr("no such value"))
        << path;
    EXPECT_EQ(Of(absl::StrCat("${", path, "|d}")), "\"d\"") << path;
  }
}

TEST_F(ExpressionTest, DefaultsHaveTypesToo) {
  EXPECT_EQ(Of("${context.x|text}"), "\"text\"");
  EXPECT_EQ(Of("${ context.x | two words }"), "\"two words\"");
  EXPECT_EQ(Of("${context.x|}"), "\"\"");
  EXPECT_EQ(Of("${context.x|3}"), "3");
  EXPECT_EQ(Of("${context.x|-1.5e2}"), "-150");
  EXPECT_EQ(Of("${context.x|true}"), "true");
  EXPECT_EQ(Of("${context.x|null}"), "null");
  EXPECT_EQ(Of("${context.x|\"true\"}"), "\"true\"");
  EXPECT_EQ(Of("${context.x|\"a } | b\"}"), "\"a } | b\"");
  EXPECT_EQ(Of("${context.x|{}}"), "\"{}\"");
  // No JSON numbers, so text.
  EXPECT_EQ(Of("${context.x|007}"), "\"007\"");
  EXPECT_EQ(Of("${context.x|1.}"), "\"1.\"");
  EXPECT_EQ(Of("${context.x|1e999}"), "\"1e999\"");
  EXPECT_EQ(Of("${context.x|a|b}"), "\"a|b\"");
  // A value that is there wins.
  EXPECT_EQ(Of("${observed.composite.resource.spec.empty|d}"), "\"\"");
  EXPECT_EQ(Of("${observed.composite.resource.spec.off|true}"), "false");
}

TEST_F(ExpressionTest, PathsThatNoRequestCouldHaveFailDespiteADefault) {
  for (const char* path :
       {"nope", "observed", "observed.nope.x", "observed.composite",
        "observed.composite.spec", "observed.resources",
        "observed.resources.nope", "observed.resources.nope.spec",
        "observed.composite.connection_details", "required_resources.zones",
        "required_resources.nope.resource.x", "credentials.aws.data.id",
        "required_resources.zones.items.x", "observed.composite.ready",
        "meta.tag"}) {
    EXPECT_THAT(Of(absl::StrCat("${", path, "|d}")), HasSubstr("error: "))
        << path;
  }
}

TEST_F(ExpressionTest, BytesThatAreNotTextAreAnError) {
  EXPECT_THAT(Of("${observed.composite.connection_details.raw|d}"),
              HasSubstr("is not text"));
}

TEST_F(ExpressionTest, BadSyntaxIsAnError) {
  for (const char* text :
       {"${", "${}", "${context", "a ${context.x", "${context..x}",
        "${.context}", "${context.}", "${context x}", "${context.\"x}",
        "${context.\"x\"y}", "${context.a\"b\"}", "${context.\"a\\n\"}",
        "${context.x|\"a}", "${context.x|\"a\" b}", "${context.a{b}}",
        "${context.$x}", "${|x}"}) {
    EXPECT_THAT(Of(text), HasSubstr("error: ")) << text;
  }
}

TEST_F(ExpressionTest, DollarsAreOrdinaryUnlessABraceFollows) {
  EXPECT_EQ(Of("$5 $x $ $$"), "\"$5 $x $ $$\"");
  EXPECT_EQ(Of("$${context.x}"), "\"${context.x}\"");
  EXPECT_EQ(Of("$$${context.x}"), "\"$${context.x}\"");
  EXPECT_EQ(Of("$${a} ${context.x|b}"), "\"${a} b\"");
}

TEST_F(ExpressionTest, IndexIsANumberAndMayStandInKeys) {
  EXPECT_EQ(Of("${index}", 1), "1");
  EXPECT_EQ(Of("b-${index}", 1), "\"b-1\"");
  EXPECT_EQ(Of("${observed.resources.bucket-${index}.resource.status.arn}", 1),
            "\"arn:1\"");
  EXPECT_EQ(
      Of("${observed.resources.\"bucket-${index}\".resource.status.arn}", 0),
      "\"arn:0\"");
  EXPECT_EQ(Of("${observed.composite.resource.spec.zones.${index}}", 1),
            "\"b\"");
  EXPECT_THAT(Of("${index}"), HasSubstr("with count only"));
  EXPECT_THAT(Of("${context.x-${index}|d}"), HasSubstr("with count only"));
}

TEST_F(ExpressionTest, ExpandGoesThroughObjectsAndListsButNotKeys) {
  EXPECT_EQ(Json(Expand(Yaml(R"({
        "a": ["${observed.composite.resource.spec.count}", {"b": "x${index}"}],
        "${index}": 1, "n": null, "t": true})"),
                        {ctx_, 7}, "spec")),
            R"({"${index}":1,"a":[3,{"b":"x7"}],"n":null,"t":true})");
}

TEST_F(ExpressionTest, ExpandNamesThePlaceOfTheFirstFault) {
  EXPECT_THAT(Json(Expand(Yaml(R"({"z": "${nope}", "b": [1, {"c": "${nope}"}],
                           "c": "${nope}"})"),
                          {ctx_, absl::nullopt}, "spec.status")),
              HasSubstr("error: spec.status.b[1].c: ${nope}: "));
}

TEST_F(ExpressionTest, ThePlaceIsSpelledAsPathsAre) {
  EXPECT_THAT(Json(Expand(Yaml(R"({"example.org/a": "${nope}"})"),
                          {ctx_, absl::nullopt}, "spec.context")),
              HasSubstr(R"(spec.context."example.org/a": ${nope}: )"));
}

}  // namespace
}  // namespace fncache::runner::function
