// SPDX-License-Identifier: Apache-2.0
// The requirements loop of a pipeline: how often a step is called, and with
// what of the resources and schemas that it requires.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runner/engine/pipeline.h"
#include "tests/runner/engine/pipeline_testing.h"
#include "tests/runner/engine/whole_tag.h"
#include "tests/runner/messages.h"

namespace fncache::runner::engine {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using testing::ElementsAre;

using PipelineRequirementsTest = PipelineTest;

// `count` answers, each of which requires something else.
std::vector<std::string> UnstableAnswers(int count) {
  std::vector<std::string> answers;
  for (int i = 1; i <= count; ++i) {
    answers.push_back(absl::StrCat(
        R"({"requirements": {"resources": {"r": {"kind": "K)", i, R"("}}}})"));
  }
  return answers;
}

TEST_F(PipelineRequirementsTest, OneCallWithoutRequirementsOrWithEmptyOnes) {
  AddStep("a", {"{}", "{}"});
  AddStep("b", {R"({"requirements": {}})", "{}"});
  ASSERT_TRUE(Run().status.ok());
  EXPECT_EQ(Calls(), "a1 b1");
}

TEST_F(PipelineRequirementsTest, OneCallIfBootstrapHadSentWhatIsRequired) {
  AddStep("a", {std::string(kNeedsA), "{}"});
  composition_.steps[0].required_resources = {
      {"a", FromJson<fn::ResourceSelector>(
                R"({"apiVersion": "v1", "kind": "A", "matchName": "a"})")}};
  ASSERT_TRUE(Run().status.ok());
  EXPECT_EQ(Calls(), "a1");
}

TEST_F(PipelineRequirementsTest, TwoCallsIfRequirementsAreRepeated) {
  AddStep("a", {std::string(kNeedsA)});
  ASSERT_TRUE(Run().status.ok());
  EXPECT_EQ(Calls(), "a1 a2");
}

TEST_F(PipelineRequirementsTest, ThreeCallsIfRequirementsGo) {
  AddStep("a", {std::string(kNeedsA), R"({"context": {"call": 2}})",
                R"({"context": {"call": 3}})"});
  composition_.steps[0].required_resources = {
      {"up",
       FromJson<fn::ResourceSelector>(R"({"apiVersion": "v1", "kind": "B"})")}};
  const PipelineOutcome outcome = Run();
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(Calls(), "a1 a2 a3");
  const std::string b = absl::StrCat(R"({"items": [{"resource": )", kB, "}]}");
  const std::string a = absl::StrCat(R"({"items": [{"resource": )", kA, "}]}");
  // A repeat has another context, and bootstrap besides what is required.
  ExpectRequest(0, absl::StrCat(R"(, "desired": {}, "context": {},
      "requiredResources": {"up": )",
                                b, "}"));
  ExpectRequest(1, absl::StrCat(R"(, "desired": {}, "context": {"call": 1},
      "requiredResources": {"up": )",
                                b, R"(, "a": )", a, "}"));
  ExpectRequest(2, absl::StrCat(R"(, "desired": {}, "context": {"call": 2},
      "requiredResources": {"up": )",
                                b, "}"));
  ExpectJson(*outcome.context, R"({"call": 3})");
}

TEST_F(PipelineRequirementsTest, RepeatsKeepMetaAndTag) {
  AddStep("a", {std::string(kNeedsA)});
  ASSERT_TRUE(Run().status.ok());
  EXPECT_EQ(asked_[1].request.meta().SerializeAsString(),
            asked_[0].request.meta().SerializeAsString());
  EXPECT_EQ(asked_[0].request.meta().tag(), RequestTag(asked_[0].request));
  EXPECT_NE(asked_[1].request.meta().tag(), RequestTag(asked_[1].request));
}

TEST_F(PipelineRequirementsTest, ARepeatHasNoContextIfTheResponseHadNone) {
  AddStep("a", {R"({"requirements": {"resources": {"r": {"kind": "Z"}}}})"});
  ASSERT_TRUE(Run().status.ok());
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_FALSE(asked_[1].request.has_context());
  ExpectRequest(1, R"(, "desired": {}, "requiredResources": {"r": {}})");
}

TEST_F(PipelineRequirementsTest, ExtraResourcesAndSchemasAreHonouredToo) {
  const std::string response = R"({"context": {}, "requirements": {
      "extraResources": {"e": {"apiVersion": "v1", "kind": "A"},
                         "n": {"apiVersion": "v1", "kind": "A",
                               "matchName": "z"}},
      "resources": {"r": {"apiVersion": "v1", "kind": "B"}},
      "schemas": {"s": {"apiVersion": "v1", "kind": "S"},
                  "t": {"apiVersion": "v1", "kind": "None"}}}})";
  AddStep("a", {response});
  AddStep("b", {"{}"});
  ASSERT_TRUE(Run().status.ok());
  EXPECT_EQ(Calls(), "a1 a2 b1");
  ExpectRequest(1, absl::StrCat(R"(, "desired": {}, "context": {},
      "extraResources": {"e": {"items": [{"resource": )",
                                kA, R"(}]}, "n": {}},
      "requiredResources": {"r": {"items": [{"resource": )",
                                kB, R"(}]}},
      "requiredSchemas": {"s": {"openapiV3": {"of": "S"}}, "t": {}})"));
  // Nothing of it is left for the next step.
  ExpectRequest(2, R"(, "context": {})");
}

TEST_F(PipelineRequirementsTest, WithoutASourceEverySchemaIsEmpty) {
  input_.schemas = nullptr;
  AddStep("a", {R"({"requirements": {"schemas": {
      "s": {"apiVersion": "v1", "kind": "A"}}}})"});
  composition_.steps[0].required_schemas = {
      {"up", FromJson<fn::SchemaSelector>(R"({"kind": "B"})")}};
  ASSERT_TRUE(Run().status.ok());
  ExpectRequest(0, R"(, "desired": {}, "context": {},
                      "requiredSchemas": {"up": {}})");
  ExpectRequest(1,
                R"(, "desired": {}, "requiredSchemas": {"up": {}, "s": {}})");
}

TEST_F(PipelineRequirementsTest, WithoutAStoreNothingIsFound) {
  input_.objects = nullptr;
  AddStep("a", {std::string(kNeedsA)});
  ASSERT_TRUE(Run().status.ok());
  ExpectRequest(1, R"(, "desired": {}, "context": {"call": 1},
                      "requiredResources": {"a": {}})");
}

TEST_F(PipelineRequirementsTest, ASchemaThatCannotBeHadIsAnError) {
  const auto message = [&](absl::string_view selector) {
    composition_.steps.clear();
    AddStep("a", {absl::StrCat(R"({"requirements": {"schemas": {"s": )",
                               selector, "}}}")});
    return std::string(Run().status.message());
  };
  const std::string start =
      R"(cannot run Composition pipeline step "a": fetching schema for s: )";
  EXPECT_EQ(message(R"({"apiVersion": "v1", "kind": "Bad"})"),
            start + "bad document");
  const std::string wrong =
      start + R"(cannot parse apiVersion "a/b/c": unexpected GroupVersion )"
              "string: a/b/c";
  EXPECT_EQ(message(R"({"apiVersion": "a/b/c", "kind": "A"})"), wrong);
  EXPECT_THAT(schemas_->asked_, ElementsAre("v1:Bad"));
  input_.schemas = nullptr;
  EXPECT_EQ(message(R"({"apiVersion": "a/b/c", "kind": "A"})"), wrong);
}

TEST_F(PipelineRequirementsTest, ASixthUnstableAnswerIsAnError) {
  AddStep("a", UnstableAnswers(7));
  const PipelineOutcome outcome = Run();
  EXPECT_EQ(Calls(), "a1 a2 a3 a4 a5 a6");
  EXPECT_EQ(outcome.status.message(),
            R"(cannot run Composition pipeline step "a": requirements didn't )"
            "stabilize after the maximum number of iterations (5)");
  EXPECT_FALSE(outcome.fatal);
}

TEST_F(PipelineRequirementsTest, ASixthAnswerMayBeStable) {
  AddStep("a", UnstableAnswers(5));
  AddStep("b", {"{}"});
  EXPECT_TRUE(Run().status.ok());
  EXPECT_EQ(Calls(), "a1 a2 a3 a4 a5 a6 b1");
}

TEST_F(PipelineRequirementsTest, FetchesAreToldInTheirOrder) {
  AddStep("a", {R"({"requirements": {
      "extraResources": {"z": {"kind": "E"}},
      "resources": {"y": {"kind": "R2"}, "x": {"kind": "R1"}},
      "schemas": {"w": {"kind": "S2"}, "v": {"kind": "S1"}}}})"});
  AddStep("b", {"{}"});
  composition_.steps[0].required_resources = {
      {"q", FromJson<fn::ResourceSelector>(R"({"kind": "Up2"})")},
      {"p", FromJson<fn::ResourceSelector>(R"({"kind": "Up1"})")}};
  composition_.steps[1].required_resources = {
      {"q", FromJson<fn::ResourceSelector>(R"({"kind": "Up3"})")}};
  composition_.steps[1].required_schemas = {
      {"q", FromJson<fn::SchemaSelector>(R"({"kind": "Up4"})")}};
  functions_.Answer("f-b", {R"({"requirements": {"resources": {
      "q": {"kind": "Again"}}}})"});
  const PipelineOutcome outcome = Run();
  ASSERT_TRUE(outcome.status.ok());
  std::vector<std::string> resources;
  for (const auto& selector : outcome.fetched_resources) {
    resources.push_back(selector.kind());
  }
  EXPECT_THAT(resources,
              ElementsAre("Up2", "Up1", "E", "R1", "R2", "Up3", "Again"));
  std::vector<std::string> schemas;
  for (const auto& selector : outcome.fetched_schemas) {
    schemas.push_back(selector.kind());
  }
  EXPECT_THAT(schemas, ElementsAre("S1", "S2", "Up4"));
  EXPECT_THAT(schemas_->asked_, ElementsAre(":S1", ":S2", ":Up4"));
}

}  // namespace
}  // namespace fncache::runner::engine
