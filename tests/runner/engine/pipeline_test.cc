// SPDX-License-Identifier: Apache-2.0
// Tests what a pipeline asks its steps for, makes of their answers and reports;
// the requirements loop has a file of its own.
#include "runner/engine/pipeline.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runner/engine/pipeline_testing.h"
#include "tests/runner/engine/whole_tag.h"
#include "tests/runner/fake_functions.h"
#include "tests/runner/messages.h"
#include "text/object.h"

namespace fncache::runner::engine {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using testing::ElementsAre;
using testing::IsEmpty;

// --- A step's first request -------------------------------------------------

TEST_F(PipelineTest, TheFirstStepSeesEmptyDesiredAndContext) {
  AddStep("a", {"{}"});
  ASSERT_TRUE(Run().status.ok());
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_[0].function, "f-a");
  const RunFunctionRequest& request = asked_[0].request;
  EXPECT_TRUE(request.has_desired());
  EXPECT_TRUE(request.has_context());
  ExpectRequest(0, R"(, "desired": {}, "context": {})");
  ExpectJson(request.meta(),
             absl::StrCat(R"({"tag": ")", RequestTag(request), R"(",
                 "capabilities": ["CAPABILITY_CAPABILITIES",
                                  "CAPABILITY_REQUIRED_RESOURCES",
                                  "CAPABILITY_CREDENTIALS",
                                  "CAPABILITY_CONDITIONS",
                                  "CAPABILITY_REQUIRED_SCHEMAS"]})"));
}

TEST_F(PipelineTest, LaterStepsSeeWhatTheOneBeforeAnswered) {
  AddStep("a", {R"({"desired": {"resources": {"x": {"resource": {"n": 1}}}},
                    "context": {"k": "v"}})"});
  AddStep("b", {"{}"});
  AddStep("c", {R"({"desired": {}, "context": {}})"});
  AddStep("d", {R"({"desired": {"composite": {"ready": "READY_TRUE"}}})"});
  AddStep("e", {R"({"context": {"last": null}})"});
  const PipelineOutcome outcome = Run();
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  ASSERT_EQ(asked_.size(), 5U);
  ExpectRequest(1, R"(, "desired": {"resources": {"x": {"resource": {"n": 1}}}},
                      "context": {"k": "v"})");
  ExpectRequest(2, "");  // absent if absent
  EXPECT_FALSE(asked_[2].request.has_desired());
  EXPECT_FALSE(asked_[2].request.has_context());
  ExpectRequest(3, R"(, "desired": {}, "context": {})");
  ExpectRequest(4, R"(, "desired": {"composite": {"ready": "READY_TRUE"}})");
  ExpectJson(outcome.desired, "{}");
  ASSERT_TRUE(outcome.context.has_value());
  ExpectJson(*outcome.context, R"({"last": null})");
}

TEST_F(PipelineTest, TheOutcomeHasTheLastDesiredAndItsContextOrNone) {
  AddStep("a", {R"({"context": {"k": "v"}})"});
  AddStep("b", {R"({"desired": {"resources": {"x": {}}}})"});
  const PipelineOutcome outcome = Run();
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_FALSE(outcome.fatal);
  ExpectJson(outcome.desired, R"({"resources": {"x": {}}})");
  EXPECT_FALSE(outcome.context.has_value());
}

TEST_F(PipelineTest, WithoutStepsNothingIsCalled) {
  const PipelineOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  ExpectJson(outcome.desired, "{}");
  EXPECT_FALSE(outcome.context.has_value());
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(PipelineTest, InputCredentialsAndBootstrapAreTheStepsOwn) {
  AddStep("a", {"{}"});
  PipelineStep& step = composition_.steps.back();
  step.input = FromJson<google::protobuf::Value>(R"({"in": 1})");
  step.credentials.resize(1);
  step.credentials[0].name = "c";
  step.credentials[0].source = "Secret";
  step.credentials[0].secret_ref = StepCredentials::SecretRef{"ns", "s"};
  step.required_resources = {
      {"r", FromJson<fn::ResourceSelector>(
                R"({"apiVersion": "v1", "kind": "A", "matchName": "a"})")},
      {"none", FromJson<fn::ResourceSelector>(
                   R"({"apiVersion": "v1", "kind": "A", "matchName": "z"})")}};
  step.required_schemas = {
      {"s",
       FromJson<fn::SchemaSelector>(R"({"apiVersion": "v1", "kind": "A"})")},
      {"none", FromJson<fn::SchemaSelector>(
                   R"({"apiVersion": "v1", "kind": "None"})")}};
  AddStep("b", {R"({"context": {}})"});
  ASSERT_TRUE(Run().status.ok());
  ASSERT_EQ(asked_.size(), 2U);
  ExpectRequest(
      0, absl::StrCat(R"(, "desired": {}, "context": {}, "input": {"in": 1},
      "credentials": {"c": {"credentialData": {"data": {"k": "dg=="}}}},
      "requiredResources": {"r": {"items": [{"resource": )",
                      kA, R"(}]}, "none": {}},
      "requiredSchemas": {"s": {"openapiV3": {"of": "A"}}, "none": {}})"));
  EXPECT_EQ(asked_[0].request.meta().tag(), RequestTag(asked_[0].request));
  ExpectRequest(1, "");
  EXPECT_FALSE(asked_[1].request.has_input());
}

TEST_F(PipelineTest, EveryStepHasATagOfItsOwn) {
  AddStep("a", {R"({"desired": {}, "context": {}})"});
  AddStep("b", {R"({"desired": {}, "context": {"k": 1}})"});
  AddStep("c", {"{}"});
  ASSERT_TRUE(Run().status.ok());
  for (const auto& asked : asked_) {
    EXPECT_EQ(asked.request.meta().tag(), RequestTag(asked.request));
  }
  // Steps a and b are sent the same.
  EXPECT_EQ(asked_[0].request.meta().tag(), asked_[1].request.meta().tag());
  EXPECT_NE(asked_[1].request.meta().tag(), asked_[2].request.meta().tag());
}

TEST_F(PipelineTest, AdvertisesTheCapabilitiesGiven) {
  AddStep("a", {"{}"});
  input_.capabilities = {fn::CAPABILITY_CONDITIONS,
                         fn::CAPABILITY_CAPABILITIES};
  ASSERT_TRUE(Run().status.ok());
  EXPECT_THAT(
      asked_[0].request.meta().capabilities(),
      ElementsAre(fn::CAPABILITY_CONDITIONS, fn::CAPABILITY_CAPABILITIES));
  input_.capabilities = {};
  ASSERT_TRUE(Run().status.ok());
  EXPECT_THAT(asked_[1].request.meta().capabilities(), IsEmpty());
  // The tag does not cover them, and exists without any.
  EXPECT_EQ(asked_[1].request.meta().tag(), asked_[0].request.meta().tag());
}

TEST_F(PipelineTest, AnObservedStateWithNothingInItIsSent) {
  input_.observed.Clear();
  AddStep("a", {"{}"});
  ASSERT_TRUE(Run().status.ok());
  EXPECT_TRUE(asked_[0].request.has_observed());
}

// --- Errors before a call ---------------------------------------------------

TEST_F(PipelineTest, AMissingSecretEndsThePipelineAfterEarlierSteps) {
  AddStep("a", {R"({"results": [{"severity": "SEVERITY_NORMAL",
                                 "message": "kept"}]})"});
  AddStep("b", {"{}"});
  composition_.steps[1].credentials.resize(1);
  composition_.steps[1].credentials[0].name = "c";
  composition_.steps[1].credentials[0].source = "Secret";
  composition_.steps[1].credentials[0].secret_ref =
      StepCredentials::SecretRef{"ns", "missing"};
  const PipelineOutcome outcome = Run();
  EXPECT_EQ(outcome.status.message(),
            R"(cannot get Composition pipeline step "b" credential "c" from )"
            R"(Secret: Secret "missing" not found)");
  EXPECT_FALSE(outcome.fatal);
  EXPECT_EQ(Calls(), "a1");
}

TEST_F(PipelineTest, AnInputThatIsNoObjectIsAnErrorOnceTheStepRuns) {
  AddStep("a", {"{}"});
  AddStep("b", {"{}"});
  composition_.steps[1].input = FromJson<google::protobuf::Value>("[]");
  EXPECT_EQ(Run().status.message(),
            R"(cannot unmarshal input for Composition pipeline step "b": )"
            R"(proto: syntax error (line 1:1): unexpected token [)");
  EXPECT_EQ(Calls(), "a1");
}

TEST_F(PipelineTest, ABootstrapSchemaThatCannotBeHadIsAnError) {
  AddStep("a", {"{}"});
  composition_.steps[0].required_schemas = {
      {"s",
       FromJson<fn::SchemaSelector>(R"({"apiVersion": "v1", "kind": "Bad"})")}};
  const PipelineOutcome outcome = Run();
  EXPECT_EQ(outcome.status.message(),
            R"(cannot fetch bootstrap required schema for requirement "s": )"
            R"(bad document)");
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Calls(), "");
}

// --- What is left of a step -------------------------------------------------

TEST_F(PipelineTest, OnlyTheLastResponseOfAStepCounts) {
  AddStep("a", {std::string(kNeedsA), R"({
      "requirements": {"resources": {"a": {"apiVersion": "v1", "kind": "A"}}},
      "results": [{"severity": "SEVERITY_NORMAL", "message": "late"}],
      "conditions": [{"type": "Late"}], "meta": {"ttl": "5s"}})"});
  const PipelineOutcome outcome = Run();
  ASSERT_TRUE(outcome.status.ok());
  ASSERT_EQ(outcome.results.size(), 1U);
  EXPECT_EQ(outcome.results[0].result.message(), "late");
  ASSERT_EQ(outcome.conditions.size(), 1U);
  EXPECT_EQ(outcome.conditions[0].type(), "Late");
  EXPECT_EQ(outcome.ttl, absl::Seconds(5));
  ExpectJson(outcome.desired, "{}");
  EXPECT_FALSE(outcome.context.has_value());
}

TEST_F(PipelineTest, ResultsAndConditionsAreInTheOrderOfSteps) {
  AddStep("a", {R"({
      "results": [{"severity": "SEVERITY_WARNING", "message": "1"},
                  {"message": "2", "reason": "R",
                   "target": "TARGET_COMPOSITE_AND_CLAIM"}],
      "conditions": [{"type": "B"}, {"type": "A"}]})"});
  AddStep("b", {R"({
      "results": [{"severity": "SEVERITY_NORMAL", "message": "3"}],
      "conditions": [{"type": "B", "status": "STATUS_CONDITION_TRUE"}]})"});
  const PipelineOutcome outcome = Run();
  ASSERT_TRUE(outcome.status.ok());
  ASSERT_EQ(outcome.results.size(), 3U);
  EXPECT_EQ(outcome.results[0].step, "a");
  EXPECT_EQ(outcome.results[1].step, "a");
  ExpectJson(outcome.results[1].result,
             R"({"message": "2", "reason": "R",
                 "target": "TARGET_COMPOSITE_AND_CLAIM"})");
  EXPECT_EQ(outcome.results[2].step, "b");
  EXPECT_EQ(outcome.results[2].result.message(), "3");
  ASSERT_EQ(outcome.conditions.size(), 3U);
  EXPECT_EQ(outcome.conditions[0].type(), "B");
  EXPECT_EQ(outcome.conditions[1].type(), "A");
  EXPECT_EQ(outcome.conditions[2].status(), fn::STATUS_CONDITION_TRUE);
}

TEST_F(PipelineTest, AFatalResultEndsThePipelineAtOnce) {
  AddStep("a", {R"({"results": [{"message": "1"}],
                    "conditions": [{"type": "A"}]})"});
  AddStep("b \"x\"", {R"({
      "desired": {"resources": {"x": {}}}, "context": {"k": 1},
      "requirements": {"resources": {"r": {"kind": "Z"}}},
      "results": [{"severity": "SEVERITY_NORMAL", "message": "2"},
                  {"severity": "SEVERITY_FATAL", "message": "no \"way\""},
                  {"severity": "SEVERITY_FATAL", "message": "3"}],
      "conditions": [{"type": "B"}]})"});
  AddStep("c", {"{}"});
  const PipelineOutcome outcome = Run();
  EXPECT_EQ(Calls(), "a1 b \"x\"1");
  EXPECT_TRUE(outcome.fatal);
  EXPECT_EQ(outcome.status.message(),
            R"(pipeline step "b \"x\"" returned a fatal result: no "way")");
  ASSERT_EQ(outcome.results.size(), 2U);
  EXPECT_EQ(outcome.results[0].result.message(), "1");
  EXPECT_EQ(outcome.results[1].result.message(), "2");
  // Conditions are read before the results.
  ASSERT_EQ(outcome.conditions.size(), 2U);
  EXPECT_EQ(outcome.conditions[1].type(), "B");
  ExpectJson(outcome.desired, "{}");
  EXPECT_FALSE(outcome.context.has_value());
}

TEST_F(PipelineTest, AFatalResultEndsTheLoop) {
  AddStep("a", {std::string(kNeedsA),
                R"({"requirements": {"resources": {"r": {"kind": "Z"}}},
                    "results": [{"severity": "SEVERITY_FATAL",
                                 "message": "no"}]})"});
  const PipelineOutcome outcome = Run();
  EXPECT_EQ(Calls(), "a1 a2");
  EXPECT_TRUE(outcome.fatal);
  EXPECT_THAT(outcome.results, IsEmpty());
  EXPECT_THAT(outcome.conditions, IsEmpty());
}

TEST_F(PipelineTest, TheTtlIsTheSmallestOverZero) {
  const auto ttl = [&](const std::vector<std::string>& ttls) {
    composition_.steps.clear();
    for (size_t i = 0; i < ttls.size(); ++i) {
      AddStep(absl::StrCat("s", i),
              {absl::StrCat("{\"meta\": ", ttls[i], "}")});
    }
    return Run().ttl;
  };
  EXPECT_EQ(ttl({}), absl::ZeroDuration());
  EXPECT_EQ(ttl({"{}", R"({"ttl": "0s"})"}), absl::ZeroDuration());
  EXPECT_EQ(ttl({R"({"ttl": "60s"})", R"({"ttl": "10.5s"})", R"({"ttl": "0s"})",
                 "{}", R"({"ttl": "11s"})"}),
            absl::Milliseconds(10500));
  EXPECT_EQ(ttl({R"({"ttl": "-5s"})", R"({"ttl": "0.000000001s"})"}),
            absl::Nanoseconds(1));
}

TEST_F(PipelineTest, ACallThatFailsEndsThePipeline) {
  AddStep("a", {R"({"results": [{"message": "1"}]})"});
  AddStep("b");
  AddStep("c", {"{}"});
  functions_.Set("f-b", [](const RunFunctionRequest&) {
    client::CallResult result;
    result.status =
        absl::InternalError("rpc error: code = Internal desc = boom");
    return result;
  });
  const PipelineOutcome outcome = Run();
  EXPECT_EQ(Calls(), "a1 b1");
  EXPECT_EQ(outcome.status,
            absl::InternalError(R"(cannot run Composition pipeline step "b": )"
                                "rpc error: code = Internal desc = boom"));
  EXPECT_FALSE(outcome.fatal);
}

// --- Deadlines and reports --------------------------------------------------

TEST_F(PipelineTest, CallsHaveTheDeadlineOfPipelineAndStep) {
  const absl::Time start = clock_.Now();
  const auto deadlines = [&] {
    std::vector<absl::Duration> after;
    Run();
    for (size_t i = asked_.size() - 3; i < asked_.size(); ++i) {
      after.push_back(asked_[i].deadline - start);
    }
    clock_.Set(start);
    return after;
  };
  // Two calls of a, one of b, each taking ten seconds.
  AddStep("a");
  AddStep("b");
  for (const char* name : {"f-a", "f-b"}) {
    const bool requires_some = name == std::string("f-a");
    functions_.Set(name, [&, requires_some](const RunFunctionRequest&) {
      clock_.Advance(absl::Seconds(10));
      client::CallResult result;
      if (requires_some) {
        result.response = FromJson<RunFunctionResponse>(kNeedsA);
      }
      return result;
    });
  }
  const absl::Duration none = absl::InfiniteDuration();
  EXPECT_THAT(deadlines(), ElementsAre(none, none, none));
  input_.deadline = start + absl::Seconds(60);
  const absl::Duration minute = absl::Seconds(60);
  EXPECT_THAT(deadlines(), ElementsAre(minute, minute, minute));
  // The timeout is for all calls of a step together.
  input_.step_timeout = absl::Seconds(25);
  EXPECT_THAT(deadlines(), ElementsAre(absl::Seconds(25), absl::Seconds(25),
                                       absl::Seconds(45)));
  input_.deadline = start + absl::Seconds(30);
  EXPECT_THAT(deadlines(), ElementsAre(absl::Seconds(25), absl::Seconds(25),
                                       absl::Seconds(30)));
}

TEST_F(PipelineTest, FetchedSchemasHaveTheDeadlineOfTheirStep) {
  input_.deadline = clock_.Now() + absl::Seconds(60);
  AddStep("a", {R"({"requirements": {"schemas": {"s": {"kind": "A"}}}})"});
  Run();
  input_.step_timeout = absl::Seconds(25);
  Run();
  EXPECT_THAT(schemas_->deadlines_,
              ElementsAre(clock_.Now() + absl::Seconds(60),
                          clock_.Now() + absl::Seconds(25)));
}

TEST_F(PipelineTest, EveryCallIsReported) {
  AddStep("a");
  AddStep("b");
  functions_.Set("f-a", [&](const RunFunctionRequest&) {
    clock_.Advance(absl::Milliseconds(20));
    client::CallResult result;
    result.response = FromJson<RunFunctionResponse>(kNeedsA);
    result.cache_status = "hit";
    return result;
  });
  functions_.Set("f-b", [&](const RunFunctionRequest&) {
    clock_.Advance(absl::Milliseconds(7));
    client::CallResult result;
    result.status = absl::UnavailableError("down");
    return result;
  });
  const absl::Time start = clock_.Now();
  Run();
  ASSERT_EQ(Calls(), "a1 a2 b1");
  EXPECT_EQ(reports_[0].function, "f-a");
  EXPECT_EQ(reports_[0].step_index, 0);
  EXPECT_EQ(reports_[0].started, start);
  EXPECT_EQ(reports_[0].took, absl::Milliseconds(20));
  EXPECT_EQ(reports_[0].cache_status, "hit");
  ExpectJson(reports_[0].response, kNeedsA);
  EXPECT_EQ(reports_[1].started, start + absl::Milliseconds(20));
  EXPECT_EQ(reports_[1].tag, asked_[1].request.meta().tag());
  EXPECT_EQ(reports_[2].step_index, 1);
  EXPECT_EQ(reports_[2].function, "f-b");
  EXPECT_EQ(reports_[2].took, absl::Milliseconds(7));
  EXPECT_EQ(reports_[2].status, absl::UnavailableError("down"));
}

TEST_F(PipelineTest, StepsOfOneNameAndFunctionAreStepsOfTheirOwn) {
  AddStep("a", {R"({"context": {"n": 1}})"});
  AddStep("a");
  ASSERT_TRUE(Run().status.ok());
  EXPECT_EQ(Calls(), "a1 a1");
  ExpectRequest(1, R"(, "context": {"n": 1})");
}

}  // namespace
}  // namespace fncache::runner::engine
