// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composite_defaults.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "text/object.h"

namespace fncache::runner::engine {
namespace {

using ::testing::HasSubstr;

text::Json Parse(const std::string& text) {
  text::Json json =
      text::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

class ApplyDefaultsTest : public ::testing::Test {
 protected:
  // `schema` is that of ex.org/v1; `more` further fields of the definition's
  // spec.
  static text::Json DefinitionWith(const std::string& schema,
                                   const std::string& more = "") {
    return Parse(absl::StrCat(
        R"({"spec": {"group": "ex.org", )", more,
        R"("versions": [{"name": "v1", "schema": {"openAPIV3Schema": )", schema,
        "}}]}}"));
  }

  // The composite {apiVersion: ex.org/v1, FIELDS} with defaults, without its
  // apiVersion.
  static text::Json Defaulted(const text::Json& definition,
                              const std::string& fields) {
    text::Json composite = Parse(fields);
    composite["apiVersion"] = "ex.org/v1";
    const absl::Status status = ApplyDefaults(definition, &composite);
    EXPECT_TRUE(status.ok()) << status;
    composite.erase("apiVersion");
    return composite;
  }

  // `properties` of spec.
  static text::Json SpecWith(const std::string& properties,
                             const std::string& spec) {
    return Defaulted(
        DefinitionWith(R"({"properties": {"spec": {"properties": )" +
                       properties + "}}}"),
        R"({"spec": )" + spec + "}")["spec"];
  }
};

TEST_F(ApplyDefaultsTest, AbsentPropertiesGetTheirDefaults) {
  EXPECT_EQ(SpecWith(R"({"size": {"default": 3}, "zone": {"default": "eu"},
                         "tags": {"default": ["a"]}, "on": {"default": false},
                         "none": {"type": "string"}})",
                     R"({"zone": "us", "other": 1})"),
            Parse(R"({"size": 3, "zone": "us", "tags": ["a"], "on": false,
                      "other": 1})"));
}

TEST_F(ApplyDefaultsTest, WhatIsThereStaysWhateverItIs) {
  EXPECT_EQ(SpecWith(R"({"a": {"type": "integer", "default": 3},
                         "b": {"type": "object", "default": {"x": 1},
                               "properties": {"y": {"default": 2}}}})",
                     R"({"a": "text", "b": []})"),
            Parse(R"({"a": "text", "b": []})"));
}

TEST_F(ApplyDefaultsTest, NullTakesTheDefaultUnlessNullable) {
  EXPECT_EQ(
      SpecWith(R"({"a": {"default": 1}, "b": {"default": 1, "nullable": true},
                   "c": {"default": 1, "nullable": false}, "d": {}})",
               R"({"a": null, "b": null, "c": null, "d": null})"),
      Parse(R"({"a": 1, "b": null, "c": 1, "d": null})"));
}

TEST_F(ApplyDefaultsTest, ADefaultOfNullIsNone) {
  EXPECT_EQ(SpecWith(R"({"a": {"default": null, "nullable": true}})", "{}"),
            Parse("{}"));
}

TEST_F(ApplyDefaultsTest, DefaultsAreFilledInWithinMaps) {
  const char* properties = R"({"a": {"properties": {"b": {"properties": {
      "c": {"default": 1}}}}}})";
  EXPECT_EQ(SpecWith(properties, "{}"), Parse("{}"));
  EXPECT_EQ(SpecWith(properties, R"({"a": {}})"), Parse(R"({"a": {}})"));
  EXPECT_EQ(SpecWith(properties, R"({"a": {"b": {}}})"),
            Parse(R"({"a": {"b": {"c": 1}}})"));
}

TEST_F(ApplyDefaultsTest, DefaultsAreFilledInWithinDefaults) {
  EXPECT_EQ(SpecWith(R"({"a": {"default": {}, "properties": {
                          "b": {"default": {"x": 0}, "properties": {
                            "c": {"default": 1}}}}}})",
                     "{}"),
            Parse(R"({"a": {"b": {"x": 0, "c": 1}}})"));
}

TEST_F(ApplyDefaultsTest, DefaultsAreFilledInWithinItems) {
  EXPECT_EQ(
      SpecWith(R"({"l": {"items": {"properties": {"a": {"default": 1}}}}})",
               R"({"l": [{}, {"a": 2}, 7, null, [{}]]})"),
      Parse(R"({"l": [{"a": 1}, {"a": 2}, 7, null, [{}]]})"));
}

TEST_F(ApplyDefaultsTest, ANullItemTakesTheItemsDefault) {
  EXPECT_EQ(SpecWith(R"({"l": {"items": {"default": {"b": 1}, "properties": {
                          "a": {"default": 1}}}},
                         "n": {"items": {"default": 1, "nullable": true}}})",
                     R"({"l": [null, {}], "n": [null]})"),
            Parse(R"({"l": [{"a": 1, "b": 1}, {"a": 1}], "n": [null]})"));
}

TEST_F(ApplyDefaultsTest, AdditionalPropertiesAreForKeysWithoutAProperty) {
  EXPECT_EQ(SpecWith(R"({"m": {"properties": {"known": {}},
                               "additionalProperties": {"default": {"d": 0},
                                 "properties": {"a": {"default": 1}}}}})",
                     R"({"m": {"known": {}, "x": {}, "y": null, "z": 1}})"),
            Parse(R"({"m": {"known": {}, "x": {"a": 1},
                            "y": {"d": 0, "a": 1}, "z": 1}})"));
}

TEST_F(ApplyDefaultsTest, AdditionalPropertiesMayBeABoolean) {
  EXPECT_EQ(SpecWith(R"({"m": {"additionalProperties": true}})",
                     R"({"m": {"x": null}})"),
            Parse(R"({"m": {"x": null}})"));
}

TEST_F(ApplyDefaultsTest, NothingIsPrunedOrValidated) {
  EXPECT_EQ(SpecWith(R"({"a": {"type": "integer", "minimum": 5}})",
                     R"({"a": "x", "unknown": {"b": null}})"),
            Parse(R"({"a": "x", "unknown": {"b": null}})"));
}

TEST_F(ApplyDefaultsTest, WholeNumbersStayExact) {
  EXPECT_EQ(
      SpecWith(R"({"a": {"default": 9007199254740993}})", "{}")["a"].dump(),
      "9007199254740993");
}

TEST_F(ApplyDefaultsTest, DefaultsOfSpecAndStatusThemselvesAreLost) {
  const text::Json definition = DefinitionWith(R"({"properties": {
      "spec": {"default": {"a": 1}, "additionalProperties": {"default": 2}},
      "status": {"default": {"b": 1}}, "other": {"default": 3}},
      "default": {"x": 1}, "additionalProperties": {"default": 4}})");
  EXPECT_EQ(Defaulted(definition, "{}"), Parse("{}"));
  EXPECT_EQ(Defaulted(definition, R"({"spec": {"n": null}, "m": null})"),
            Parse(R"({"spec": {"n": null}, "m": null})"));
}

TEST_F(ApplyDefaultsTest, StatusIsDefaultedOnlyWhereItIs) {
  const text::Json definition = DefinitionWith(
      R"({"properties": {"status": {"properties": {"a": {"default": 1}}}}})");
  EXPECT_EQ(Defaulted(definition, "{}"), Parse("{}"));
  EXPECT_EQ(Defaulted(definition, R"({"status": null})"),
            Parse(R"({"status": null})"));
  EXPECT_EQ(Defaulted(definition, R"({"status": {}})"),
            Parse(R"({"status": {"a": 1}})"));
}

// Schemas that the runner itself adds replace a definition's own.
TEST_F(ApplyDefaultsTest, FieldsOfTheRunnerHaveItsSchema) {
  const char* schema = R"({"properties": {
      "spec": {"properties": {"crossplane": {"default": {"x": 1}},
                              "claimRef": {"default": {"y": 1}}}},
      "status": {"properties": {"conditions": {"default": []},
                                "claimConditionTypes": {"default": []}}}}})";
  EXPECT_EQ(Defaulted(DefinitionWith(schema), R"({"spec": {}, "status": {}})"),
            Parse(R"({"spec": {"crossplane": {"x": 1}}, "status": {}})"));
  EXPECT_EQ(Defaulted(DefinitionWith(schema, R"("scope": "Cluster", )"),
                      R"({"spec": {}, "status": {}})"),
            Parse(R"({"spec": {"claimRef": {"y": 1}},
                      "status": {"claimConditionTypes": []}})"));
}

TEST_F(ApplyDefaultsTest, TheUpdatePolicyOfTheDefinitionIsADefault) {
  const std::string policy = R"("defaultCompositionUpdatePolicy": "Manual", )";
  EXPECT_EQ(Defaulted(DefinitionWith("{}", policy), R"({"spec": {}})"),
            Parse(R"({"spec": {"compositionUpdatePolicy": "Manual"}})"));
  const text::Json modern =
      DefinitionWith("{}", policy + R"("scope": "Namespaced", )");
  EXPECT_EQ(Defaulted(modern, R"({"spec": {}})"), Parse(R"({"spec": {}})"));
  EXPECT_EQ(
      Defaulted(modern, R"({"spec": {"crossplane": {}}})"),
      Parse(
          R"({"spec": {"crossplane": {"compositionUpdatePolicy": "Manual"}}})"));
  // An API server would make it Automatic; the command line does not.
  EXPECT_EQ(Defaulted(DefinitionWith("{}"), R"({"spec": {}})"),
            Parse(R"({"spec": {}})"));
}

TEST_F(ApplyDefaultsTest, TheCompositesVersionIsTaken) {
  const text::Json definition =
      Parse(R"({"spec": {"group": "ex.org", "versions": [
      {"name": "v1alpha1", "schema": {"openAPIV3Schema": {"properties": {
          "spec": {"properties": {"a": {"default": 1}}}}}}},
      {"name": "v1", "schema": {"openAPIV3Schema": {"properties": {
          "spec": {"properties": {"a": {"default": 2}}}}}}}]}})");
  EXPECT_EQ(Defaulted(definition, R"({"spec": {}})"),
            Parse(R"({"spec": {"a": 2}})"));
}

TEST_F(ApplyDefaultsTest, AVersionThatTheDefinitionLacksIsAnError) {
  for (const char* api_version : {"ex.org/v2", "other.org/v1", "v1"}) {
    text::Json composite = Parse(R"({"metadata": {"name": "a"}, "spec": {}})");
    composite["apiVersion"] = api_version;
    const absl::Status status =
        ApplyDefaults(DefinitionWith(R"({"properties": {"spec": {"properties": {
            "a": {"default": 1}}}}})"),
                      &composite);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              absl::StrCat("the specified API version '", api_version,
                           "' does not exist in the XRD"));
    EXPECT_EQ(composite["spec"], Parse("{}"));
  }
}

TEST_F(ApplyDefaultsTest, EveryVersionNeedsASchema) {
  for (const char* version :
       {R"({"name": "v2"})", R"({"name": "v2", "schema": null})",
        R"({"name": "v2", "schema": {"openAPIV3Schema": null}})"}) {
    text::Json definition = DefinitionWith("{}");
    definition["spec"]["versions"].push_back(Parse(version));
    text::Json composite = Parse(R"({"apiVersion": "ex.org/v1"})");
    EXPECT_THAT(std::string(ApplyDefaults(definition, &composite).message()),
                HasSubstr("spec.versions[1].schema.openAPIV3Schema"));
  }
}

// Each level doubles the values.
TEST_F(ApplyDefaultsTest, DefaultsThatMultiplyWithoutEndAreAnError) {
  std::string level = "{}";
  for (int i = 0; i < 40; ++i) {
    level = absl::StrCat(R"({"default": {"a": null, "b": null},
                             "additionalProperties": )",
                         level, "}");
  }
  text::Json composite = Parse(R"({"apiVersion": "ex.org/v1", "spec": {}})");
  const absl::Status status = ApplyDefaults(
      DefinitionWith(absl::StrCat(
          R"({"properties": {"spec": {"properties": {"a": )", level, "}}}}")),
      &composite);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("defaults come to over"));
}

TEST_F(ApplyDefaultsTest, ADefinitionOfAnyFormDoesNoHarm) {
  for (const char* definition :
       {"null", "[]", "{}", R"({"spec": []})", R"({"spec": {"versions": 1}})",
        R"({"spec": {"versions": {}}})", R"({"spec": {"versions": [null]}})"}) {
    text::Json composite = Parse(R"({"apiVersion": "ex.org/v1"})");
    EXPECT_FALSE(ApplyDefaults(Parse(definition), &composite).ok());
  }
  for (const char* schema :
       {R"({"properties": []})", R"({"properties": {"spec": 7}})",
        R"({"properties": {"spec": {"properties": [1]}}})",
        R"({"properties": {"spec": {"properties": {"a": 1, "b": null}}}})",
        R"({"properties": {"spec": {"properties": {"a": {"items": [{}],
            "properties": 1, "nullable": "yes", "additionalProperties": 3}}}}})"}) {
    EXPECT_EQ(Defaulted(DefinitionWith(schema),
                        R"({"spec": {"a": [{}], "b": {"c": 1}}})"),
              Parse(R"({"spec": {"a": [{}], "b": {"c": 1}}})"))
        << schema;
  }
}

}  // namespace
}  // namespace fncache::runner::engine
