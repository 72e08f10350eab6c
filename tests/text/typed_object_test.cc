// SPDX-License-Identifier: Apache-2.0
#include "text/typed_object.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "text/kubernetes_yaml.h"

namespace fncache::text {
namespace {

absl::StatusOr<Json> Read(ObjectType type, absl::string_view yaml) {
  const auto values = ParseYamlValues(yaml);
  EXPECT_TRUE(values.ok()) << values.status();
  return ReadTypedYaml(type, values.value_or(Json()));
}

std::string Object(ObjectType type, absl::string_view yaml) {
  const auto object = Read(type, yaml);
  EXPECT_TRUE(object.ok()) << object.status() << yaml;
  return object.ok() ? object->dump() : "";
}

std::string Problem(ObjectType type, absl::string_view yaml) {
  constexpr absl::string_view kBefore =
      "error unmarshaling JSON: while decoding JSON: ";
  const std::string problem(Read(type, yaml).status().message());
  EXPECT_EQ(problem.substr(0, kBefore.size()), kBefore) << yaml;
  return problem.substr(std::min(problem.size(), kBefore.size()));
}

constexpr ObjectType kComposition = ObjectType::kComposition;
constexpr ObjectType kFunction = ObjectType::kFunction;

std::string Label(const std::string& value) {
  const auto object =
      Read(kComposition, absl::StrCat("metadata: {labels: {a: ", value, "}}"));
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? (*object)["metadata"]["labels"]["a"].get<std::string>()
                     : "";
}

// As Go's strconv writes a float of 32 bits.
TEST(TypedObjectTest, TextTakesNumbersByGosRules) {
  const std::pair<const char*, const char*> kCases[] = {
      {"1", "1"},
      {"010", "8"},
      {"1e6", "1e+06"},
      {"12345e6", "1.2345e+10"},
      {"1234567.0", "1.234567e+06"},
      {"123456.0", "123456"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"-0.0", "-0"},
      {".inf", "+Inf"},
      {"-.inf", "-Inf"},
      {".nan", "NaN"},
      {"0.1234567890123", "0.12345679"},
      {"9007199254740993", "9007199254740993"},
      {"18446744073709551615", "18446744073709551615"},
      {"yes", "true"},
      {"'1e6'", "1e6"},
      {"2024-01-01", "2024-01-01"}};
  for (const auto& [yaml, text] : kCases) EXPECT_EQ(Label(yaml), text) << yaml;
}

TEST(TypedObjectTest, TheResultIsWhatGoWrites) {
  EXPECT_EQ(Object(kComposition, "kind: Composition\nunknown: 1\n"),
            R"({"kind":"Composition","metadata":{},"spec":)"
            R"({"compositeTypeRef":{"apiVersion":"","kind":""}}})");
  EXPECT_EQ(
      Object(ObjectType::kSecret,
             "KIND: x\nmetadata: {name: '', labels: {}, creationTimestamp: "
             "\"2024-01-01T02:00:00.5+02:00\"}\ndata: {a: \"YQ\\n==\"}\n"),
      R"({"data":{"a":"YQ=="},"kind":"x","metadata":)"
      R"({"creationTimestamp":"2024-01-01T00:00:00Z"}})");
  // A step's input is kept as it is, but null is none.
  const auto object = Read(
      kComposition,
      "spec: {pipeline: [{step: 1, input: {a: 1e3, m: null}}, {input: null}]}");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ((*object)["spec"]["pipeline"].dump(),
            R"([{"functionRef":{"name":""},"input":{"a":1000,"m":null},)"
            R"("step":"1"},{"functionRef":{"name":""},"step":""}])");
}

TEST(TypedObjectTest, TheFirstWrongTypeIsNamedInGosWords) {
  EXPECT_EQ(Problem(kComposition, "metadata: {annotations: {a: {b: c}}}"),
            "json: cannot unmarshal object into Go struct field "
            "ObjectMeta.metadata.annotations of type string");
  EXPECT_EQ(Problem(kComposition, "metadata: {finalizers: x}"),
            "json: cannot unmarshal string into Go struct field "
            "ObjectMeta.metadata.finalizers of type []string");
  EXPECT_EQ(Problem(kComposition, "spec: 5"),
            "json: cannot unmarshal number into Go struct field "
            "Composition.spec of type v1.CompositionSpec");
  EXPECT_EQ(Problem(kComposition, "spec: {pipeline: [{step: [a]}]}"),
            "json: cannot unmarshal array into Go struct field "
            "PipelineStep.spec.pipeline.step of type string");
  EXPECT_EQ(Problem(kComposition, "[a]"),
            "json: cannot unmarshal array into Go value of type "
            "v1.Composition");
  EXPECT_EQ(Problem(kFunction, "spec: {revisionHistoryLimit: many}"),
            "json: cannot unmarshal string into Go struct field "
            "FunctionSpec.spec.PackageSpec.revisionHistoryLimit of type "
            "int64");
  EXPECT_EQ(Problem(kFunction, "spec: {revisionHistoryLimit: 0.5}"),
            "json: cannot unmarshal number 0.5 into Go struct field "
            "FunctionSpec.spec.PackageSpec.revisionHistoryLimit of type "
            "int64");
  // Fields of a struct that Go embeds take no numbers for texts.
  EXPECT_EQ(Problem(kFunction, "kind: 5"),
            "json: cannot unmarshal number into Go struct field "
            "Function.TypeMeta.kind of type string");
  EXPECT_EQ(Problem(ObjectType::kDefinition, "spec: {versions: {}}"),
            "json: cannot unmarshal object into Go struct field "
            "CompositeResourceDefinitionSpec.spec.versions of type "
            "[]v1.CompositeResourceDefinitionVersion");
  EXPECT_EQ(Problem(ObjectType::kDefinition, "spec: {scope: []}"),
            "json: cannot unmarshal array into Go struct field "
            "CompositeResourceDefinitionSpec.spec.scope of type "
            "v1.CompositeResourceScope");
}

// It ends the reading, and so comes before what was wrong until then.
TEST(TypedObjectTest, ATimeThatIsNoneIsTheError) {
  const auto problem = [](absl::string_view time) {
    return Problem(kComposition, absl::StrCat("metadata: {annotations: 5, "
                                              "creationTimestamp: ",
                                              time, "}"));
  };
  constexpr char kParsing[] = "parsing time \"";
  constexpr char kAs[] = "\" as \"2006-01-02T15:04:05Z07:00\": cannot parse ";
  EXPECT_EQ(problem("never"),
            absl::StrCat(kParsing, "never", kAs, "\"never\" as \"2006\""));
  EXPECT_EQ(problem("2024-01-01"),
            absl::StrCat(kParsing, "2024-01-01", kAs, "\"\" as \"T\""));
  EXPECT_EQ(
      problem("'2024-01-01T00:00:00'"),
      absl::StrCat(kParsing, "2024-01-01T00:00:00", kAs, "\"\" as \"Z07:00\""));
  EXPECT_EQ(problem("'2024-13-01T00:00:00Z'"),
            "parsing time \"2024-13-01T00:00:00Z\": month out of range");
  EXPECT_EQ(problem("'2024-02-30T00:00:00Z'"),
            "parsing time \"2024-02-30T00:00:00Z\": day out of range");
  EXPECT_EQ(problem("'2024-01-01T00:00:00Zx'"),
            "parsing time \"2024-01-01T00:00:00Zx\": extra text: \"x\"");
  EXPECT_EQ(problem("5"),
            "json: cannot unmarshal number into Go struct field "
            "ObjectMeta.metadata.creationTimestamp of type string");
}

TEST(TypedObjectTest, WhatJsonLacksIsAnErrorWhereItIsNoText) {
  EXPECT_EQ(Read(kComposition, "x: .inf").status().message(),
            "error converting YAML to JSON: json: unsupported value: +Inf");
}

TEST(TypedObjectTest, InJsonANumberIsNoText) {
  const Json json = {{"metadata", {{"name", 1}}}};
  EXPECT_EQ(ReadTypedJson(kComposition, json).status().message(),
            "json: cannot unmarshal number into Go struct field "
            "ObjectMeta.metadata.name of type string");
}

// The engine's CompositionRevision has another hash for `{}` than for none.
TEST(TypedObjectTest, OfJsonWhatIsEmptyStays) {
  constexpr char kYaml[] =
      "metadata: {labels: {}, annotations: null}\n"
      "spec: {pipeline: [{requirements: {requiredResources: []}}]}\n";
  const auto object = ReadTypedJson(kComposition, *ParseYamlValues(kYaml));
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ((*object)["metadata"].dump(), R"({"labels":{}})");
  EXPECT_EQ((*object)["spec"]["pipeline"][0]["requirements"].dump(),
            R"({"requiredResources":[]})");
  EXPECT_EQ(Object(kComposition, kYaml),
            R"({"metadata":{},"spec":)"
            R"({"compositeTypeRef":{"apiVersion":"","kind":""},"pipeline":)"
            R"([{"functionRef":{"name":""},"requirements":{},"step":""}]}})");
}

}  // namespace
}  // namespace fncache::text
