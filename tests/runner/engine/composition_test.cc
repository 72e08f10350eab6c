// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composition.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
namespace {

using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

Struct Object(const std::string& json) {
  Struct object;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &object).ok())
      << json;
  return object;
}

Composition Parse(const std::string& json) {
  const auto composition = ParseComposition(Object(json));
  EXPECT_TRUE(composition.ok()) << composition.status();
  return composition.value_or(Composition());
}

std::string ErrorOf(const std::string& json) {
  const auto composition = ParseComposition(Object(json));
  if (composition.ok()) return "";
  EXPECT_EQ(composition.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(composition.status().message());
}

PipelineStep ParseStep(const std::string& json) {
  const Composition composition =
      Parse(R"({"spec": {"pipeline": [)" + json + "]}}");
  return composition.steps.size() == 1 ? composition.steps[0] : PipelineStep();
}

TEST(CompositionTest, AllFieldsOfACompositionAreRead) {
  const Composition composition = Parse(R"({
    "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
    "metadata": {"name": "shop", "labels": {"tier": "gold", "zone": "eu"}},
    "spec": {
      "compositeTypeRef": {"apiVersion": "ex.org/v1", "kind": "XShop"},
      "mode": "Pipeline", "writeConnectionSecretsToNamespace": "vault",
      "pipeline": [{"step": "one", "functionRef": {"name": "f"}},
                   {"step": "two", "functionRef": {"name": "g"}}]}})");
  EXPECT_EQ(composition.name, "shop");
  EXPECT_THAT(
      composition.labels,
      Optional(UnorderedElementsAre(Pair("tier", "gold"), Pair("zone", "eu"))));
  EXPECT_FALSE(composition.annotations.has_value());
  EXPECT_EQ(composition.composite_api_version, "ex.org/v1");
  EXPECT_EQ(composition.composite_kind, "XShop");
  EXPECT_EQ(composition.mode, "Pipeline");
  EXPECT_EQ(composition.connection_secrets_namespace, "vault");
  ASSERT_THAT(composition.steps, SizeIs(2));
  EXPECT_EQ(composition.steps[0].name, "one");
  EXPECT_EQ(composition.steps[0].function, "f");
  EXPECT_EQ(composition.steps[1].name, "two");
  EXPECT_EQ(composition.steps[1].function, "g");
}

TEST(CompositionTest, WhatIsAbsentOrNullIsEmpty) {
  for (const char* json : {"{}", R"({"metadata": null, "spec": null})",
                           R"({"metadata": {"name": null, "labels": null},
            "spec": {"compositeTypeRef": null, "mode": null,
                     "writeConnectionSecretsToNamespace": null,
                     "pipeline": null}})"}) {
    const Composition composition = Parse(json);
    EXPECT_EQ(composition.name, "");
    EXPECT_FALSE(composition.labels.has_value());
    EXPECT_EQ(composition.composite_api_version, "");
    EXPECT_EQ(composition.composite_kind, "");
    EXPECT_EQ(composition.mode, "");
    EXPECT_FALSE(composition.connection_secrets_namespace.has_value());
    EXPECT_THAT(composition.steps, IsEmpty());
  }
}

TEST(CompositionTest, AStepMayBeNullOrEmpty) {
  const Composition composition =
      Parse(R"({"spec": {"pipeline": [null, {}, {"functionRef": null}]}})");
  ASSERT_THAT(composition.steps, SizeIs(3));
  for (const PipelineStep& step : composition.steps) {
    EXPECT_EQ(step.name, "");
    EXPECT_EQ(step.function, "");
    EXPECT_FALSE(step.input.has_value());
    EXPECT_THAT(step.credentials, IsEmpty());
    EXPECT_THAT(step.required_resources, IsEmpty());
    EXPECT_THAT(step.required_schemas, IsEmpty());
    EXPECT_FALSE(step.requirements.has_value());
  }
}

TEST(CompositionTest, WhatIsEmptyIsNotAbsent) {
  const Composition composition = Parse(R"({
      "metadata": {"labels": {}, "annotations": {}},
      "spec": {"writeConnectionSecretsToNamespace": "",
               "pipeline": [{"requirements": {}}]}})");
  EXPECT_THAT(composition.labels, Optional(IsEmpty()));
  EXPECT_THAT(composition.annotations, Optional(IsEmpty()));
  EXPECT_THAT(composition.connection_secrets_namespace, Optional(IsEmpty()));
  ASSERT_THAT(composition.steps, SizeIs(1));
  EXPECT_TRUE(composition.steps[0].requirements.has_value());
}

TEST(CompositionTest, StepNamesMayRepeat) {
  const Composition composition =
      Parse(R"({"spec": {"pipeline": [{"step": "s"}, {"step": "s"}]}})");
  EXPECT_THAT(composition.steps, SizeIs(2));
}

TEST(CompositionTest, FieldsThatNoCompositionHasAreIgnored) {
  EXPECT_EQ(ErrorOf(R"({"extra": [1], "metadata": {"odd": {}},
      "spec": {"resources": 7, "pipeline": [{"step": "s", "extra": {}}]}})"),
            "");
}

TEST(CompositionTest, InputIsKeptAsWritten) {
  const PipelineStep step =
      ParseStep(R"({"input": {"a": null, "b": {}, "c": [1, "x"]}})");
  ASSERT_TRUE(step.input.has_value());
  EXPECT_TRUE(text::Equal(
      *step.input, Object(R"({"v": {"a": null, "b": {}, "c": [1, "x"]}})")
                       .fields()
                       .at("v")));
}

// An error only once the step runs.
TEST(CompositionTest, InputMayBeNoObject) {
  EXPECT_EQ(ParseStep(R"({"input": "text"})").input->string_value(), "text");
}

TEST(CompositionTest, EmptyInputIsNotAbsentInput) {
  EXPECT_TRUE(ParseStep(R"({"input": {}})").input.has_value());
  EXPECT_FALSE(ParseStep(R"({"input": null})").input.has_value());
  EXPECT_FALSE(ParseStep("{}").input.has_value());
}

TEST(CompositionTest, CredentialsAreRead) {
  const PipelineStep step = ParseStep(R"({"credentials": [
      {"name": "a", "source": "Secret",
       "secretRef": {"namespace": "ns", "name": "n"}},
      {"name": "b", "source": "None"},
      {"name": "c", "source": "Secret", "secretRef": {}},
      {"name": "d", "source": "Secret", "secretRef": null}]})");
  ASSERT_THAT(step.credentials, SizeIs(4));
  EXPECT_EQ(step.credentials[0].name, "a");
  EXPECT_EQ(step.credentials[0].source, "Secret");
  ASSERT_TRUE(step.credentials[0].secret_ref.has_value());
  EXPECT_EQ(step.credentials[0].secret_ref->secret_namespace, "ns");
  EXPECT_EQ(step.credentials[0].secret_ref->name, "n");
  EXPECT_EQ(step.credentials[1].source, "None");
  EXPECT_FALSE(step.credentials[1].secret_ref.has_value());
  ASSERT_TRUE(step.credentials[2].secret_ref.has_value());
  EXPECT_EQ(step.credentials[2].secret_ref->name, "");
  EXPECT_FALSE(step.credentials[3].secret_ref.has_value());
}

TEST(CompositionTest, RequiredResourcesAreReadInOrder) {
  const PipelineStep step =
      ParseStep(R"({"requirements": {"requiredResources": [
      {"requirementName": "z", "apiVersion": "v1", "kind": "ConfigMap",
       "namespace": "ns", "name": "n"},
      {"requirementName": "a", "apiVersion": "v1", "kind": "ConfigMap",
       "matchLabels": {"x": "y"}}]}})");
  ASSERT_THAT(step.required_resources, SizeIs(2));
  EXPECT_EQ(step.required_resources[0].first, "z");
  const auto& by_name = step.required_resources[0].second;
  EXPECT_EQ(by_name.api_version(), "v1");
  EXPECT_EQ(by_name.kind(), "ConfigMap");
  EXPECT_EQ(by_name.namespace_(), "ns");
  EXPECT_EQ(by_name.match_name(), "n");
  EXPECT_EQ(step.required_resources[1].first, "a");
  const auto& by_labels = step.required_resources[1].second;
  EXPECT_FALSE(by_labels.has_namespace_());
  ASSERT_TRUE(by_labels.has_match_labels());
  ASSERT_THAT(by_labels.match_labels().labels(), SizeIs(1));
  EXPECT_EQ(by_labels.match_labels().labels().at("x"), "y");
}

TEST(CompositionTest, NameBeatsMatchLabelsEvenIfItIsEmpty) {
  for (const char* name : {"n", ""}) {
    const PipelineStep step = ParseStep(
        R"({"requirements": {"requiredResources": [{"matchLabels": {"x": "y"},
            "name": ")" +
        std::string(name) + R"("}]}})");
    ASSERT_THAT(step.required_resources, SizeIs(1));
    ASSERT_TRUE(step.required_resources[0].second.has_match_name());
    EXPECT_EQ(step.required_resources[0].second.match_name(), name);
  }
}

TEST(CompositionTest, NeitherNameNorLabelsMatchesAll) {
  const PipelineStep step =
      ParseStep(R"({"requirements": {"requiredResources": [
          {"name": null, "matchLabels": null, "namespace": ""}, null]}})");
  ASSERT_THAT(step.required_resources, SizeIs(2));
  const auto& selector = step.required_resources[0].second;
  EXPECT_FALSE(selector.has_match_name());
  EXPECT_FALSE(selector.has_match_labels());
  EXPECT_TRUE(selector.has_namespace_());
  EXPECT_FALSE(step.required_resources[1].second.has_namespace_());
}

// It selects the same, but the engine reports it.
TEST(CompositionTest, EmptyMatchLabelsStay) {
  const PipelineStep step = ParseStep(
      R"({"requirements": {"requiredResources": [{"matchLabels": {}}]}})");
  ASSERT_THAT(step.required_resources, SizeIs(1));
  EXPECT_TRUE(step.required_resources[0].second.has_match_labels());
}

TEST(CompositionTest, RequiredSchemasAreRead) {
  const PipelineStep step = ParseStep(R"({"requirements": {"requiredSchemas": [
      {"requirementName": "s", "apiVersion": "apps/v1", "kind": "Deployment"}]}})");
  ASSERT_THAT(step.required_schemas, SizeIs(1));
  EXPECT_EQ(step.required_schemas[0].first, "s");
  EXPECT_EQ(step.required_schemas[0].second.api_version(), "apps/v1");
  EXPECT_EQ(step.required_schemas[0].second.kind(), "Deployment");
}

// As the reference's YAML reader, which knows that these fields are text.
TEST(CompositionTest, AFieldOfTheWrongTypeIsNamed) {
  const struct {
    const char* json;
    const char* error;
  } cases[] = {
      {R"({"metadata": []})", "metadata: must be a map, is a list"},
      {R"({"metadata": {"name": {}}})",
       "metadata.name: must be text, is a map"},
      {R"({"metadata": {"labels": "x"}})",
       "metadata.labels: must be a map, is text"},
      {R"({"metadata": {"labels": {"x": []}}})",
       "metadata.labels.x: must be text, is a list"},
      {R"({"spec": 1})", "spec: must be a map, is a number"},
      {R"({"spec": {"compositeTypeRef": "XShop"}})",
       "spec.compositeTypeRef: must be a map, is text"},
      {R"({"spec": {"mode": []}})", "spec.mode: must be text, is a list"},
      {R"({"spec": {"pipeline": {}}})",
       "spec.pipeline: must be a list, is a map"},
      {R"({"spec": {"pipeline": [{}, true]}})",
       "spec.pipeline[1]: must be a map, is a boolean"},
      {R"({"spec": {"pipeline": [{}, {}, {"functionRef": {"name": {}}}]}})",
       "spec.pipeline[2].functionRef.name: must be text, is a map"},
      {R"({"spec": {"pipeline": [{"functionRef": "f"}]}})",
       "spec.pipeline[0].functionRef: must be a map, is text"},
      {R"({"spec": {"pipeline": [{"credentials": [{"secretRef": []}]}]}})",
       "spec.pipeline[0].credentials[0].secretRef: must be a map, is a list"},
      {R"({"spec": {"pipeline": [{"requirements":
          {"requiredResources": [{}, {"matchLabels": {"a": {}}}]}}]}})",
       "spec.pipeline[0].requirements.requiredResources[1].matchLabels.a: must "
       "be text, is a map"},
      {R"({"spec": {"pipeline": [{"requirements":
          {"requiredSchemas": [{"kind": []}]}}]}})",
       "spec.pipeline[0].requirements.requiredSchemas[0].kind: must be text, "
       "is a list"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(ErrorOf(test.json), test.error);
  }
}

absl::Status CheckSpec(const std::string& spec) {
  return CheckFieldsOfSpec(Object(R"({"spec": )" + spec + "}"));
}

TEST(CheckFieldsOfSpecTest, AWholeSpecIsFine) {
  EXPECT_TRUE(CheckSpec(R"({"compositeTypeRef": {}, "mode": "Pipeline",
      "pipeline": [], "modes": 1})")
                  .ok());
  EXPECT_TRUE(CheckFieldsOfSpec(Struct()).ok());
}

TEST(CheckFieldsOfSpecTest, AFieldThatAlmostIsOneIsNamedWithThatOne) {
  EXPECT_EQ(CheckSpec(R"({"compositeTypeRef": {}, "mode": "Pipeline",
      "pipelines": []})"),
            absl::InvalidArgumentError(
                "spec.pipelines: a Composition has no such field; did you mean "
                "pipeline?"));
  EXPECT_EQ(CheckSpec(R"({"compositeTypeRef": {}, "Mode": "Pipeline",
      "pipeline": []})"),
            absl::InvalidArgumentError(
                "spec.Mode: a Composition has no such field; did you mean "
                "mode?"));
}

TEST(CheckFieldsOfSpecTest, WithoutAPipelineItSaysWhatThereIs) {
  for (const char* const spec :
       {R"({"mode": "Pipeline", "steps.all": [], "pipeline": null})",
        R"({"steps.all": [], "pipeline": null, "mode": "Pipeline"})"}) {
    EXPECT_EQ(CheckSpec(spec),
              absl::InvalidArgumentError(
                  "spec.pipeline: is missing, and nothing would be composed "
                  "without its steps; spec has \"steps.all\", mode, pipeline"));
  }
  // The mode is what is wrong then, and is said elsewhere.
  EXPECT_TRUE(CheckSpec(R"({"mode": "Resources"})").ok());
}

TEST(CompositionTest, TheFirstWrongFieldIsNamed) {
  EXPECT_EQ(ErrorOf(R"({"metadata": {"name": []}, "spec": []})"),
            "metadata.name: must be text, is a list");
}

}  // namespace
}  // namespace fncache::runner::engine
