// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/schema_document.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sdk/schema/group_version.h"
#include "tests/common/test_data.h"
#include "text/object.h"

namespace fncache::sdk::schema {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

text::Json Parsed(absl::string_view text) {
  auto json = text::ParseJson(text);
  EXPECT_TRUE(json.ok()) << json.status() << "\n" << text;
  return json.ok() ? *std::move(json) : text::Json();
}

// A document of `components`, each `"NAME": {...}`.
text::Json Document(absl::string_view components) {
  return Parsed(
      absl::StrCat(R"({"openapi": "3.0.0", "components": {"schemas": {)",
                   components, "}}}"));
}

std::string Kind(absl::string_view group, absl::string_view version,
                 absl::string_view kind) {
  return absl::StrCat(R"("x-kubernetes-group-version-kind": [{"group": ")",
                      group, R"(", "version": ")", version, R"(", "kind": ")",
                      kind, R"("}])");
}

FoundSchema FlattenedSchema(text::Json document, absl::string_view api_version,
                            const std::string& kind) {
  const auto group_version = ParseGroupVersion(api_version);
  EXPECT_TRUE(group_version.ok()) << group_version.status();
  return SchemaDocument(std::move(document)).Find(*group_version, kind);
}

// The flattened schema of kind Foo of example.org/v1, which has `fields`,
// without its list of kinds; `others` are more components.
std::string Flattened(absl::string_view fields, absl::string_view others = "") {
  auto found =
      FlattenedSchema(Document(absl::StrCat(
                          R"("Foo": {)", Kind("example.org", "v1", "Foo"), ", ",
                          fields, "}", others.empty() ? "" : ", ", others)),
                      "example.org/v1", "Foo");
  if (!found.ok()) return std::string(found.status().message());
  if (!found->has_value()) return "none";
  (*found)->mutable_fields()->erase("x-kubernetes-group-version-kind");
  return text::FromStruct(**found).dump();
}

std::string Expected(absl::string_view json) { return Parsed(json).dump(); }

TEST(FlattenedSchemaTest, SchemaWithoutReferencesStaysAsItIs) {
  constexpr char kFields[] =
      R"("type": "object", "description": "a foo", "x-unknown": [1, null, {}],
         "properties": {"a": {"type": "string", "default": ""}},
         "additionalProperties": false)";
  EXPECT_EQ(Flattened(kFields), Expected(absl::StrCat("{", kFields, "}")));
}

TEST(FlattenedSchemaTest, ReferenceIsReplacedWholeByItsTarget) {
  EXPECT_EQ(Flattened(R"("properties": {"a": {
                           "$ref": "#/components/schemas/A",
                           "description": "lost", "default": {}}})",
                      R"("A": {"type": "string", "description": "of A"})"),
            Expected(R"({"properties": {"a":
                         {"type": "string", "description": "of A"}}})"));
}

TEST(FlattenedSchemaTest, ReferenceInAllOfReplacesTheWholeToo) {
  EXPECT_EQ(Flattened(R"("properties": {
                     "a": {"default": {}, "description": "lost",
                           "allOf": [{"type": "object"},
                                     {"$ref": "#/components/schemas/A"}]},
                     "b": {"allOf": [{"allOf": [
                           {"$ref": "#/components/schemas/A"}]}]},
                     "c": {"allOf": [{"type": "integer"}]}})",
                      R"("A": {"type": "string"})"),
            Expected(R"({"properties": {"a": {"type": "string"},
                                  "b": {"type": "string"},
                                  "c": {"allOf": [{"type": "integer"}]}}})"));
}

TEST(FlattenedSchemaTest, GoesThroughPropertiesItemsAndAdditionalProperties) {
  EXPECT_EQ(Flattened(R"("properties": {
                     "list": {"items": {"$ref": "#/components/schemas/A"}},
                     "map": {"additionalProperties":
                              {"items": {"$ref": "#/components/schemas/A"}}}})",
                      R"("A": {"properties": {"b": {
                          "$ref": "#/components/schemas/B"}}},
                   "B": {"type": "integer"})"),
            Expected(R"({"properties": {
        "list": {"items": {"properties": {"b": {"type": "integer"}}}},
        "map": {"additionalProperties": {"items":
                 {"properties": {"b": {"type": "integer"}}}}}}})"));
}

TEST(FlattenedSchemaTest, ReferencesElsewhereStay) {
  constexpr char kFields[] =
      R"("anyOf": [{"$ref": "#/components/schemas/A"}],
         "oneOf": [{"$ref": "#/components/schemas/A"}],
         "not": {"$ref": "#/components/schemas/A"},
         "items": [{"$ref": "#/components/schemas/A"}],
         "x-other": {"properties": {"a": {"$ref": "#/components/schemas/A"}}})";
  EXPECT_EQ(Flattened(kFields, R"("A": {"type": "string"})"),
            Expected(absl::StrCat("{", kFields, "}")));
}

TEST(FlattenedSchemaTest, FieldsNamedAsKeywordsAreFields) {
  EXPECT_EQ(Flattened(R"("properties": {
                     "properties": {"$ref": "#/components/schemas/A"},
                     "items": {"$ref": "#/components/schemas/A"},
                     "$ref": {"type": "string"}})",
                      R"("A": {"type": "string"})"),
            Expected(R"({"properties": {"properties": {"type": "string"},
                                  "items": {"type": "string"},
                                  "$ref": {"type": "string"}}})"));
}

TEST(FlattenedSchemaTest, RecursionEndsInAnyObject) {
  EXPECT_EQ(Flattened(R"("properties": {"a": {
                           "$ref": "#/components/schemas/A"}})",
                      R"("A": {"type": "object", "properties": {
                          "left": {"$ref": "#/components/schemas/A"},
                          "right": {"$ref": "#/components/schemas/A"}}})"),
            Expected(R"({"properties": {"a": {"type": "object", "properties": {
                         "left": {"type": "object"},
                         "right": {"type": "object"}}}}})"));
}

TEST(FlattenedSchemaTest, KindThatRefersToItselfEndsToo) {
  EXPECT_EQ(Flattened(R"("properties": {"children": {"items": {
                           "$ref": "#/components/schemas/Foo"}}})"),
            Expected(R"({"properties": {"children": {"items": {
                         "type": "object"}}}})"));
}

TEST(FlattenedSchemaTest, ComponentThatIsAReferenceIsReplaced) {
  for (const char* reference :
       {R"("$ref": "#/components/schemas/A")",
        R"("allOf": [{"$ref": "#/components/schemas/A"}])"}) {
    EXPECT_EQ(Flattened(absl::StrCat(reference, R"(, "description": "lost")"),
                        R"("A": {"type": "object", "properties": {
                                   "a": {"type": "string"}}})"),
              Expected(R"({"type": "object", "properties": {
                           "a": {"type": "string"}}})"));
  }
  EXPECT_EQ(Flattened(R"("$ref": "#/components/schemas/Gone")"),
            "cannot flatten schema references: internal error: cannot resolve "
            "Ref \"#/components/schemas/Gone\": schema not found");
}

TEST(FlattenedSchemaTest, ComponentThatRefersToItselfIsAnyObject) {
  EXPECT_EQ(Flattened(R"("$ref": "#/components/schemas/Foo")"),
            Expected(R"({"type": "object"})"));
  // A reference without its prefix is another one, which is followed once.
  EXPECT_EQ(Flattened(R"("properties": {"a": {"$ref": "Foo"}})"),
            Expected(absl::StrCat(
                R"({"properties": {"a": {)", Kind("example.org", "v1", "Foo"),
                R"(, "properties": {"a": {"type": "object"}}}}})")));
}

TEST(FlattenedSchemaTest, SchemaMetTwiceIsExpandedTwice) {
  EXPECT_EQ(Flattened(R"("properties": {
                           "a": {"$ref": "#/components/schemas/A"},
                           "b": {"items": {"$ref": "#/components/schemas/A"}},
                           "c": {"items": {"$ref": "#/components/schemas/A"}}})",
                      R"("A": {"type": "integer"})"),
            Expected(R"({"properties": {"a": {"type": "integer"},
                         "b": {"items": {"type": "integer"}},
                         "c": {"items": {"type": "integer"}}}})"));
}

TEST(FlattenedSchemaTest, DanglingReferenceIsAnError) {
  EXPECT_EQ(Flattened(R"("properties": {"a": {
                           "$ref": "#/components/schemas/Gone"}})"),
            "cannot flatten schema references: internal error: cannot resolve "
            "Ref \"#/components/schemas/Gone\": schema not found");
}

TEST(FlattenedSchemaTest, DanglingReferenceOfAnotherKindIsNone) {
  EXPECT_EQ(Flattened(R"("type": "object")",
                      R"("A": {"items": {"$ref": "#/components/schemas/Z"}})"),
            Expected(R"({"type": "object"})"));
}

TEST(FlattenedSchemaTest, WhatIsNoSchemaIsKept) {
  EXPECT_EQ(Flattened(R"("properties": {"a": true, "b": null, "c": "text",
                                        "d": {"properties": [1],
                                              "items": 5,
                                              "allOf": {"$ref": "x"},
                                              "$ref": 7}})"),
            Expected(R"({"properties": {"a": true, "b": null, "c": "text",
                                        "d": {"properties": [1],
                                              "items": 5,
                                              "allOf": {"$ref": "x"},
                                              "$ref": 7}}})"));
}

TEST(FlattenedSchemaTest, OnlyAListOfJustThatKindCounts) {
  const text::Json document = Document(absl::StrCat(
      R"("Shared": {"type": "object", "x-kubernetes-group-version-kind": [
           {"group": "a", "version": "v1", "kind": "Options"},
           {"group": "b", "version": "v1", "kind": "Options"}]},
         "Odd": {"x-kubernetes-group-version-kind": "a/v1"},
         "Foo": {)",
      Kind("a", "v1", "Foo"), "}"));
  const auto shared = FlattenedSchema(document, "a/v1", "Options");
  ASSERT_TRUE(shared.ok());
  EXPECT_FALSE(shared->has_value());
  EXPECT_TRUE(FlattenedSchema(document, "a/v1", "Foo")->has_value());
  EXPECT_FALSE(FlattenedSchema(document, "a/v1", "foo")->has_value());
  EXPECT_FALSE(FlattenedSchema(document, "a/v2", "Foo")->has_value());
  EXPECT_FALSE(FlattenedSchema(document, "v1", "Foo")->has_value());
}

TEST(FlattenedSchemaTest, DocumentsThatAreNoneHaveNoKinds) {
  for (const char* text :
       {"{}", "[]", "null", R"({"components": 1})",
        R"({"components": {"schemas": ["a"]}})",
        R"({"components": {"schemas": {"A": null, "B": [], "C": {
           "x-kubernetes-group-version-kind": [7]}}}})"}) {
    const auto found = FlattenedSchema(Parsed(text), "v1", "Foo");
    ASSERT_TRUE(found.ok()) << text;
    EXPECT_FALSE(found->has_value()) << text;
  }
}

// `levels` components, each of which refers twice to the next.
std::string Doubling(int levels) {
  std::string components;
  for (int i = 0; i < levels; ++i) {
    absl::StrAppend(&components, i == 0 ? "" : ", ", R"("D)", i,
                    R"(": {"properties": {"a": {"$ref": "D)", i + 1,
                    R"("}, "b": {"$ref": "D)", i + 1, R"("}}})");
  }
  return absl::StrCat(components, R"(, "D)", levels, R"(": {"type": "x"})");
}

TEST(FlattenedSchemaTest, ExpansionWithoutEndIsAnErrorAndTakesNoMemory) {
  EXPECT_EQ(Flattened(R"("items": {"$ref": "D0"})", Doubling(60)),
            "cannot flatten schema references: flattened, the schema is larger "
            "than 64 MiB");
  // Twelve such levels are still a schema.
  EXPECT_GT(Flattened(R"("items": {"$ref": "D0"})", Doubling(12)).size(),
            size_t{1} << 12);
}

TEST(FlattenedSchemaTest, ReferencesNestedTooDeepAreAnError) {
  std::string chain;
  for (int i = 0; i < 1100; ++i) {
    absl::StrAppend(&chain, R"("D)", i, R"(": {"items": {"$ref": "D)", i + 1,
                    R"("}}, )");
  }
  absl::StrAppend(&chain, R"("D1100": {})");
  EXPECT_EQ(Flattened(R"("items": {"$ref": "D0"})", chain),
            "cannot flatten schema references: flattened, the schema is nested "
            "more than 1000 levels deep");
}

TEST(ParseGroupVersionTest, ReadsAsTheReferenceRunnerDoes) {
  EXPECT_EQ(*ParseGroupVersion("v1"), (GroupVersion{"", "v1"}));
  EXPECT_EQ(*ParseGroupVersion("apps/v1"), (GroupVersion{"apps", "v1"}));
  EXPECT_EQ(*ParseGroupVersion("/v1"), (GroupVersion{"", "v1"}));
  EXPECT_EQ(*ParseGroupVersion("apps/"), (GroupVersion{"apps", ""}));
  EXPECT_EQ(*ParseGroupVersion(""), (GroupVersion{"", ""}));
  EXPECT_EQ(*ParseGroupVersion("/"), (GroupVersion{"", ""}));
  EXPECT_FALSE(ParseGroupVersion("//").ok());
  EXPECT_EQ(ParseGroupVersion("a/b/c").status().message(),
            "cannot parse apiVersion \"a/b/c\": unexpected GroupVersion "
            "string: a/b/c");
}

// Whether a reference is left where flattening goes.
bool HasReference(const text::Json& schema) {
  if (!schema.is_object()) return false;
  if (schema.contains("$ref")) return true;
  for (const char* name : {"items", "additionalProperties"}) {
    if (schema.contains(name) && HasReference(schema[name])) return true;
  }
  if (!schema.contains("properties")) return false;
  for (const text::Json& property : schema["properties"]) {
    if (HasReference(property)) return true;
  }
  return false;
}

TEST(FlattenedSchemaTest, RealDocumentsAreFlattenedWhole) {
  const fs::path data = ::fncache::testing::DataFolder();
  if (!fs::is_directory(data / "openapi")) {
    GTEST_SKIP() << "no " << data / "openapi";
  }
  int kinds = 0;
  for (const auto& file : fs::directory_iterator(data / "openapi")) {
    std::ifstream in(file.path());
    const text::Json document =
        Parsed(std::string(std::istreambuf_iterator<char>(in), {}));
    SchemaDocument schemas(document);
    for (const text::Json& component : document["components"]["schemas"]) {
      const auto list = component.find("x-kubernetes-group-version-kind");
      if (list == component.end() || list->size() != 1) continue;
      const text::Json& gvk = (*list)[0];
      const auto found = schemas.Find(
          {gvk["group"].get<std::string>(), gvk["version"].get<std::string>()},
          gvk["kind"].get<std::string>());
      ASSERT_TRUE(found.ok()) << gvk << found.status();
      ASSERT_TRUE(found->has_value()) << gvk;
      EXPECT_FALSE(HasReference(text::FromStruct(**found))) << gvk;
      ++kinds;
    }
  }
  EXPECT_GT(kinds, 30);
}

}  // namespace
}  // namespace fncache::sdk::schema
