// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/engine.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runner/engine/conditions.h"
#include "runner/engine/metadata.h"
#include "tests/runner/fake_functions.h"
#include "tests/runner/messages.h"
#include "text/object.h"

namespace fncache::runner::engine {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

Struct Object(absl::string_view json) { return FromJson<Struct>(json); }

EngineInput::Objects Objects(const std::vector<std::string>& jsons) {
  auto objects = std::make_shared<std::vector<Struct>>();
  for (const std::string& json : jsons) objects->push_back(Object(json));
  return objects;
}

constexpr char kLegacyDefinition[] =
    R"({"apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositeResourceDefinition",
        "spec": {"group": "ex.org", "names": {"kind": "XR"}}})";

class EngineTest : public testing::Test {
 protected:
  EngineTest() {
    composition_.name = "c";
    composition_.composite_api_version = "ex.org/v1";
    composition_.composite_kind = "XR";
    PipelineStep step;
    step.name = "s";
    step.function = "f";
    composition_.steps = {step};
    input_.composite = Object(
        R"({"apiVersion": "ex.org/v1", "kind": "XR",
            "metadata": {"name": "a", "uid": "u"}, "spec": {"size": 1}})");
  }

  // Renders; the function `f` answers with `response`.
  EngineOutcome Rendered(const std::string& response = "{}") {
    functions_ = std::make_unique<FakeFunctions>();
    functions_->Answer("f", {response});
    input_.composition = std::make_shared<const Composition>(composition_);
    EngineOutcome outcome;
    int calls = 0;
    Render(input_, EngineOptions(), functions_.get(), &clock_, nullptr,
           [&](EngineOutcome done) {
             outcome = std::move(done);
             ++calls;
           });
    EXPECT_EQ(calls, 1);
    return outcome;
  }

  // Returns what the first call observed.
  const apiextensions::fn::proto::v1::State Observed() {
    const auto asked = functions_->asked();
    EXPECT_EQ(asked.size(), 1);
    return asked.empty() ? apiextensions::fn::proto::v1::State()
                         : asked[0].request.observed();
  }

  static std::vector<std::string> Events(const EngineOutcome& outcome) {
    std::vector<std::string> lines;
    for (const auto& event : outcome.output.events()) {
      lines.push_back(absl::StrCat(event.type(), " ", event.reason(), " ",
                                   event.message()));
    }
    return lines;
  }

  SimulatedClock clock_{absl::FromUnixSeconds(1700000000)};
  Composition composition_;
  EngineInput input_;
  std::unique_ptr<FakeFunctions> functions_;
};

constexpr char kSelected[] =
    "Normal SelectComposition Successfully selected composition: c";

TEST_F(EngineTest, AStepObservesThePreparedComposite) {
  const EngineOutcome outcome = Rendered();
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  ExpectJson(Observed().composite().resource(), R"({
      "apiVersion": "ex.org/v1", "kind": "XR",
      "metadata": {"name": "a", "uid": "u", "resourceVersion": "999",
                   "labels": {"crossplane.io/composite": "a"}},
      "spec": {"size": 1, "crossplane": {"compositionRef": {"name": "c"}}},
      "status": {"conditions": [
          {"type": "Responsive", "status": "True",
           "reason": "WatchCircuitClosed",
           "lastTransitionTime": "2023-11-14T22:13:20Z"}]}})");
}

TEST_F(EngineTest, ObservedResourcesAreReferredToAndSent) {
  input_.observed = Objects({R"({"apiVersion": "v1", "kind": "K",
      "metadata": {"name": "k", "annotations":
        {"crossplane.io/composition-resource-name": "r"}}})"});
  ASSERT_TRUE(Rendered().status.ok());
  EXPECT_EQ(Observed().resources().count("r"), 1);
  ExpectJson(
      *text::FindMap(Observed().composite().resource(), {"spec", "crossplane"}),
      R"({"compositionRef": {"name": "c"}, "resourceRefs":
                 [{"apiVersion": "v1", "kind": "K", "name": "k"}]})");
}

TEST_F(EngineTest, ADefinitionMakesTheCompositeLegacy) {
  input_.definition = std::make_shared<Struct>(Object(kLegacyDefinition));
  const EngineOutcome outcome = Rendered();
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  ExpectJson(*text::FindMap(Observed().composite().resource(), {"spec"}),
             R"({"size": 1, "compositionRef": {"name": "c"}})");
  ExpectJson(*text::FindMap(outcome.output.composite_resource(), {"spec"}),
             R"({"resourceRefs": []})");
}

TEST_F(EngineTest, RequiredResourcesReplaceObservedOnesAndTheComposite) {
  const char* const observed = R"({"apiVersion": "v1", "kind": "K",
      "metadata": {"name": "k", "annotations":
        {"crossplane.io/composition-resource-name": "r"}}})";
  input_.observed = Objects({observed});
  input_.required = Objects(
      {R"({"apiVersion": "v1", "kind": "K", "spec": {"replaced": true},
           "metadata": {"name": "k", "annotations":
           {"crossplane.io/composition-resource-name": "r"}}})",
       R"({"apiVersion": "ex.org/v1", "kind": "XR", "metadata": {"name": "a"},
           "spec": {"size": 2, "crossplane": {"resourceRefs":
           [{"apiVersion": "v1", "kind": "K", "name": "k"}]}}})"});
  ASSERT_TRUE(Rendered().status.ok());
  const auto state = Observed();
  EXPECT_EQ(text::Find(state.composite().resource(), {"spec", "size"})
                ->number_value(),
            2);
  EXPECT_EQ(UidOf(state.composite().resource()), "");
  ASSERT_EQ(state.resources().count("r"), 1);
  EXPECT_NE(
      text::Find(state.resources().at("r").resource(), {"spec", "replaced"}),
      nullptr);
}

TEST_F(EngineTest, StepsCanRequireTheCompositeObservedResourcesAndSecrets) {
  input_.observed = Objects({R"({"apiVersion": "v1", "kind": "K",
      "metadata": {"name": "k", "annotations":
        {"crossplane.io/composition-resource-name": "r"}}})"});
  input_.credentials =
      Objects({R"({"metadata": {"name": "s", "namespace": "n"}, "data": {}})"});
  const EngineOutcome outcome = Rendered(R"({"requirements": {"resources": {
      "k": {"apiVersion": "v1", "kind": "K", "matchName": "k"},
      "s": {"apiVersion": "v1", "kind": "Secret", "matchName": "s",
            "namespace": "n"},
      "x": {"apiVersion": "ex.org/v1", "kind": "XR", "matchName": "a"}}}})");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  const auto asked = functions_->asked();
  ASSERT_EQ(asked.size(), 2);
  for (const char* const name : {"k", "s", "x"}) {
    ASSERT_EQ(asked[1].request.required_resources().count(name), 1);
    EXPECT_EQ(asked[1].request.required_resources().at(name).items_size(), 1)
        << name;
  }
}

TEST_F(EngineTest, FetchesArePutOutAsSelectorsInJson) {
  const EngineOutcome outcome = Rendered(R"({"requirements": {
      "extraResources": {
        "e": {"apiVersion": "v1", "kind": "K", "matchLabels": {}}},
      "resources": {
        "r": {"apiVersion": "v1", "kind": "L", "namespace": "n",
              "matchLabels": {"labels": {"a": "b"}}}},
      "schemas": {"s": {"apiVersion": "apps/v1", "kind": "Deployment"}}}})");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  ASSERT_GE(outcome.output.required_resources_size(), 2);
  ExpectJson(outcome.output.required_resources(0),
             R"({"apiVersion": "v1", "kind": "K", "matchLabels": {}})");
  ExpectJson(outcome.output.required_resources(1),
             R"({"apiVersion": "v1", "kind": "L", "namespace": "n",
                 "matchLabels": {"labels": {"a": "b"}}})");
  ASSERT_GE(outcome.output.required_schemas_size(), 1);
  ExpectJson(outcome.output.required_schemas(0),
             R"({"apiVersion": "apps/v1", "kind": "Deployment"})");
}

TEST_F(EngineTest, ASelectorByNameIsPutOutWithItsName) {
  const EngineOutcome outcome = Rendered(R"({"requirements": {"resources": {
      "k": {"apiVersion": "v1", "kind": "K", "matchName": "k"}}}})");
  ASSERT_GE(outcome.output.required_resources_size(), 1);
  ExpectJson(outcome.output.required_resources(0),
             R"({"apiVersion": "v1", "kind": "K", "matchName": "k"})");
}

TEST_F(EngineTest, EventsComeInTheRunnersOrder) {
  SetMetadataText(&input_.composite, "namespace", "n");
  AddAnnotations(&input_.composite,
                 {{"crossplane.io/reconcile-requested-at", "t"}});
  const EngineOutcome outcome = Rendered(R"({
      "results": [{"severity": "SEVERITY_WARNING", "message": "m"}],
      "desired": {"resources": {
        "b": {"resource": {"metadata": {"namespace": "x"}}},
        "a": {"resource": {}},
        "c": {"resource": {}, "ready": "READY_TRUE"}}}})");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(
      Events(outcome),
      ElementsAre(
          "Normal ReconcileRequestHandled Handling reconcile request",
          kSelected, "Warning ComposeResources Pipeline step \"s\": m",
          "Warning NamespaceOverridden cannot create composed resource \"b\" "
          "in namespace \"x\", using XR namespace \"n\" instead",
          "Normal ComposeResources Composed resource \"a\" is not yet ready",
          "Normal ComposeResources Composed resource \"b\" is not yet ready"));
  EXPECT_EQ(outcome.output.composed_resources_size(), 3);
  EXPECT_EQ(ConditionsOf(outcome.output.composite_resource()).back().message,
            "Unready resources: a, b");
}

TEST_F(EngineTest, NotReadyIsToldWhateverTheCompositeIs) {
  const EngineOutcome outcome = Rendered(R"({"desired": {
      "composite": {"ready": "READY_TRUE"},
      "resources": {"a": {"resource": {}}}}})");
  EXPECT_EQ(Events(outcome).back(),
            "Normal ComposeResources Composed resource \"a\" is not yet ready");
  EXPECT_EQ(ConditionsOf(outcome.output.composite_resource()).back().reason,
            "Available");
}

TEST_F(EngineTest, WhatIsNotDesiredAnyMoreIsDeleted) {
  input_.observed = Objects({R"({"apiVersion": "v1", "kind": "K",
      "metadata": {"name": "k", "labels": {"crossplane.io/composite": "a"},
        "annotations": {"crossplane.io/composition-resource-name": "r"},
        "ownerReferences": [{"uid": "u", "controller": true}]}})"});
  const EngineOutcome outcome = Rendered();
  ASSERT_EQ(outcome.output.deleted_resources_size(), 1);
  EXPECT_EQ(NameOf(outcome.output.deleted_resources(0)), "k");
  EXPECT_EQ(outcome.output.composed_resources_size(), 0);
  EXPECT_THAT(Events(outcome), ElementsAre(kSelected));
}

TEST_F(EngineTest, TtlIsThePipelines) {
  EXPECT_EQ(Rendered(R"({"meta": {"ttl": "90s"}})").ttl, absl::Seconds(90));
  EXPECT_EQ(Rendered().ttl, absl::ZeroDuration());
}

TEST_F(EngineTest, APausedCompositeIsPutOutWithoutACall) {
  AddAnnotations(&input_.composite, {{"crossplane.io/paused", "true"}});
  const EngineOutcome outcome = Rendered();
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_TRUE(functions_->asked().empty());
  EXPECT_THAT(Events(outcome),
              ElementsAre("Normal ReconciliationPaused Reconciliation is "
                          "paused via the pause annotation"));
  const Struct& composite = outcome.output.composite_resource();
  EXPECT_EQ(UidOf(composite), "u");
  ExpectJson(*text::FindMap(composite, {"spec"}), R"({"size": 1})");
  EXPECT_EQ(ConditionsOf(composite).back().reason, "ReconcilePaused");
}

TEST_F(EngineTest, ADeletedCompositeIsPutOutWithoutACall) {
  SetMetadataText(&input_.composite, "deletionTimestamp",
                  "2024-01-01T00:00:00Z");
  const EngineOutcome outcome = Rendered();
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_TRUE(functions_->asked().empty());
  EXPECT_TRUE(Events(outcome).empty());
  EXPECT_EQ(ConditionsOf(outcome.output.composite_resource()).back().reason,
            "ReconcileSuccess");
}

TEST_F(EngineTest, AnotherTypeThanTheCompositionsIsAnError) {
  composition_.composite_kind = "Other";
  EXPECT_THAT(
      std::string(Rendered().status.message()),
      StartsWith("cannot render composite resource: composition's "
                 "compositeTypeRef.kind (Other) does not match XR's kind "
                 "(XR)"));
  composition_.composite_kind = "XR";
  composition_.composite_api_version = "ex.org/v2";
  EXPECT_THAT(
      std::string(Rendered().status.message()),
      StartsWith("cannot render composite resource: composition's "
                 "compositeTypeRef.apiVersion (ex.org/v2) does not match "
                 "XR's apiVersion (ex.org/v1)"));
  composition_.composite_kind = "Other";
  EXPECT_THAT(std::string(Rendered().status.message()),
              StartsWith("cannot render composite resource: composition's "
                         "compositeTypeRef.apiVersion"));
  EXPECT_TRUE(functions_->asked().empty());
}

TEST_F(EngineTest, AnotherDefinitionThanTheCompositesIsAnError) {
  input_.composite = Object(R"({"apiVersion": "ex.org/v1", "kind": "Other"})");
  composition_.composite_kind = "Other";
  input_.definition = std::make_shared<Struct>(Object(kLegacyDefinition));
  const EngineOutcome outcome = Rendered();
  EXPECT_THAT(std::string(outcome.status.message()),
              StartsWith("cannot render composite resource: "));
  EXPECT_TRUE(functions_->asked().empty());
}

TEST_F(EngineTest, InvalidObservedResourcesAreAnErrorBeforeAnyCall) {
  input_.observed = Objects({R"({"kind": "K", "metadata": {"name": "k",
      "ownerReferences": [{"uid": "other", "controller": true}]}})"});
  EXPECT_EQ(Rendered().status.message(),
            "cannot render composite resource: invalid observed resources: "
            "observed resource k has a controller ref but is not controlled "
            "by the XR");
  EXPECT_TRUE(functions_->asked().empty());
}

TEST_F(EngineTest, AnObservedResourceWithoutNameIsAnErrorOfComposing) {
  input_.observed = Objects({R"({"kind": "K", "metadata": {"name": "k"}})"});
  EXPECT_EQ(Rendered().status.message(),
            "cannot render composite resource: reconcile failed: cannot "
            "compose resources: cannot get existing composed resources: "
            "encountered composed resource without required "
            "\"crossplane.io/composition-resource-name\" annotation");
  EXPECT_TRUE(functions_->asked().empty());
}

TEST_F(EngineTest, AFailedCallIsAnErrorOfComposingWithoutOutput) {
  composition_.steps[0].credentials = {
      {"c", "Secret", StepCredentials::SecretRef{"n", "missing"}}};
  const EngineOutcome outcome = Rendered();
  EXPECT_THAT(std::string(outcome.status.message()),
              StartsWith("cannot render composite resource: reconcile failed: "
                         "cannot compose resources: cannot get Composition "
                         "pipeline step \"s\" credential \"c\" from Secret: "));
  EXPECT_FALSE(outcome.fatal);
  EXPECT_FALSE(outcome.output.has_composite_resource());
}

TEST_F(EngineTest, AnInvalidNameIsAnErrorOfComposing) {
  const EngineOutcome outcome = Rendered(R"({"desired": {"resources":
      {"r": {"resource": {"metadata": {"name": "N"}}}}}})");
  EXPECT_EQ(outcome.status.message(),
            "cannot render composite resource: reconcile failed: cannot "
            "compose resources: cannot apply composed resource \"r\" because "
            "it has an invalid name \"N\". Must be a valid RFC 1123 subdomain "
            "name.");
}

constexpr char kFatal[] = R"({
    "results": [
      {"severity": "SEVERITY_NORMAL", "message": "before",
       "target": "TARGET_COMPOSITE_AND_CLAIM"},
      {"severity": "SEVERITY_FATAL", "message": "boom"},
      {"severity": "SEVERITY_NORMAL", "message": "after"}],
    "conditions": [{"type": "Mine", "status": "STATUS_CONDITION_TRUE",
                    "reason": "R"}],
    "desired": {"resources": {"r": {"resource": {"kind": "K"}}}}})";

TEST_F(EngineTest, AFatalResultGivesAPartialOutput) {
  const EngineOutcome outcome = Rendered(kFatal);
  EXPECT_TRUE(outcome.fatal);
  EXPECT_EQ(outcome.status.message(),
            "cannot render composite resource: cannot compose resources: "
            "pipeline step \"s\" returned a fatal result: boom");
  EXPECT_EQ(outcome.output.composed_resources_size(), 0);
  EXPECT_THAT(
      Events(outcome),
      ElementsAre(
          kSelected,
          "Warning ComposeResources cannot compose resources: pipeline step "
          "\"s\" returned a fatal result: boom",
          "Normal ComposeResources Pipeline step \"s\": before"));
  const Struct& composite = outcome.output.composite_resource();
  EXPECT_EQ(UidOf(composite), "u");
  ExpectJson(*text::FindMap(composite, {"spec"}),
             R"({"size": 1, "crossplane": {"compositionRef": {"name": "c"}}})");
  const std::vector<Condition> conditions = ConditionsOf(composite);
  ASSERT_EQ(conditions.size(), 3);
  EXPECT_EQ(conditions[1].type, "Synced");
  EXPECT_EQ(conditions[1].reason, "ReconcileError");
  EXPECT_EQ(conditions[1].message,
            "cannot compose resources: pipeline step \"s\" returned a fatal "
            "result: boom");
  EXPECT_EQ(conditions[2].type, "Mine");
}

TEST_F(EngineTest, AFatalResultsOutputLacksCompositionRefIfThePrefixWasThere) {
  AddLabels(&input_.composite, {{kCompositeLabel, "a"}});
  const EngineOutcome outcome = Rendered(kFatal);
  ExpectJson(*text::FindMap(outcome.output.composite_resource(), {"spec"}),
             R"({"size": 1})");
  EXPECT_EQ(ConditionsOf(outcome.output.composite_resource()).size(), 3);
}

TEST_F(EngineTest, AFatalResultTellsTheClaimToo) {
  input_.definition = std::make_shared<Struct>(Object(kLegacyDefinition));
  *text::Ensure(&input_.composite, {"spec", "claimRef"})
       ->mutable_struct_value() =
      Object(R"({"apiVersion": "ex.org/v1", "kind": "Claim", "namespace": "n",
                 "name": "k"})");
  input_.required = Objects({R"({"apiVersion": "ex.org/v1", "kind": "Claim",
      "metadata": {"namespace": "n", "name": "k"}})"});
  EXPECT_THAT(
      Events(Rendered(kFatal)),
      ElementsAre(kSelected, StartsWith("Warning ComposeResources cannot"),
                  "Normal ComposeResources Pipeline step \"s\": before",
                  "Normal ComposeResources before"));
}

TEST_F(EngineTest, AFatalResultKeepsWhatWasFetched) {
  composition_.steps[0].required_resources = {
      {"k", FromJson<apiextensions::fn::proto::v1::ResourceSelector>(
                R"({"apiVersion": "v1", "kind": "K", "matchName": "k"})")}};
  const EngineOutcome fatal = Rendered(kFatal);
  EXPECT_TRUE(fatal.fatal);
  EXPECT_EQ(fatal.output.required_resources_size(), 1);
}

}  // namespace
}  // namespace fncache::runner::engine
