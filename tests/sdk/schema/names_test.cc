// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/names.h"

#include "fncache/function/value.h"
#include "gtest/gtest.h"
#include "tests/sdk/schema/schema_testing.h"

namespace fncache::sdk::schema {
namespace {

using function::Yaml;

TEST(NamesTest, FieldsThatTheSchemaDoesNotListAreNotKnown) {
  const auto schema = Yaml(R"(
      properties:
        spec:
          properties:
            size: {type: number}
            zones: {items: {properties: {name: {}}}})");
  EXPECT_EQ(Found(schema, Yaml("{spec: {size: 1, zones: [{name: a}]}}")), "");
  EXPECT_EQ(
      Found(schema, Yaml("{spec: {siez: 1, 'a.b': 1, zones: [{}, {nmae: a}]}, "
                         "spce: {}}")),
      "spce: is not known\n"
      "spec.\"a.b\": is not known\n"
      "spec.siez: is not known\n"
      "spec.zones[1].nmae: is not known");
}

TEST(NamesTest, ObjectsWithoutListedFieldsAreFree) {
  EXPECT_EQ(ProblemsOf("{type: object}", "{x: {k: 1}}"), "");
  EXPECT_EQ(ProblemsOf("{}", "{x: {k: 1}}"), "");
  EXPECT_EQ(ProblemsOf("{type: object, properties: {}}", "{x: 1}"),
            "a.x: is not known");
}

TEST(NamesTest, PreservedFieldsAreFree) {
  constexpr char kSchema[] =
      "{x-kubernetes-preserve-unknown-fields: true, properties: {b: "
      "{properties: {c: {}}}, free: {type: object}}}";
  EXPECT_EQ(ProblemsOf(kSchema, "{x: {k: 1}, b: {c: 1}, free: {z: 1}}"), "");
  // Listed again, as Kubernetes prunes it.
  EXPECT_EQ(ProblemsOf(kSchema, "{b: {d: 1}}"), "a.b.d: is not known");
  EXPECT_EQ(ProblemsOf("{x-kubernetes-preserve-unknown-fields: false, "
                       "properties: {b: {}}}",
                       "{x: 1}"),
            "a.x: is not known");
}

TEST(NamesTest, AdditionalFieldsAreFree) {
  EXPECT_EQ(ProblemsOf("{additionalProperties: {type: string}}", "{x: text}"),
            "");
  EXPECT_EQ(
      ProblemsOf("{additionalProperties: true, properties: {b: {}}}", "{x: 1}"),
      "");
  EXPECT_EQ(
      ProblemsOf("{patternProperties: {x: {}}, properties: {b: {}}}", "{x: 1}"),
      "");
  EXPECT_EQ(ProblemsOf("{additionalProperties: {properties: {b: {}}}}",
                       "{x: {c: 1}}"),
            "a.x.c: is not known");
}

TEST(NamesTest, FormsAddWhatTheyKnow) {
  constexpr char kSchema[] =
      "{properties: {x: {properties: {p: {}}}}, allOf: [{properties: {k: {}}}, "
      "{anyOf: [{properties: {x: {properties: {q: {}}}}}]}], oneOf: "
      "[{properties: {z: {type: number}}}, {required: [zz]}], not: {required: "
      "[m], properties: {m: {enum: [1]}}}}";
  EXPECT_EQ(ProblemsOf(kSchema, "{x: {p: 1, q: 1}, k: 1, z: 1}"), "");
  EXPECT_EQ(ProblemsOf(kSchema, "{x: {r: 1}, z: 1, m: 2}"),
            "a.m: is not known\na.x.r: is not known");
  EXPECT_EQ(ProblemsOf("{properties: {x: {}}, anyOf: [{$ref: y}]}", "{z: 1}"),
            "");
}

TEST(NamesTest, EachResourceHasMetadata) {
  // As a CRD and as an XRD describe it.
  for (const char* const metadata :
       {"{type: object}", "{properties: {name: {maxLength: 3}}}"}) {
    const auto schema =
        Yaml(absl::StrCat("{properties: {metadata: ", metadata, "}}"));
    EXPECT_EQ(
        Found(schema, Yaml("{apiVersion: v1, kind: A, metadata: {name: abc, "
                           "labels: {a: b}, annotations: {c: d}}}")),
        "");
  }
  const auto schema =
      Yaml("{properties: {metadata: {properties: {name: {}}}}}");
  EXPECT_EQ(Found(schema, Yaml("{metadata: {lables: {}}, metdata: {}}")),
            "metadata.lables: is not known\nmetdata: is not known");
  EXPECT_EQ(Found(Yaml("{properties: {spec: {}}}"),
                  Yaml("{apiVersion: v1, kind: A, metadata: {x: 1}}")),
            "");
}

TEST(NamesTest, EmbeddedResourcesAreResources) {
  constexpr char kSchema[] =
      "{x-kubernetes-embedded-resource: true, properties: {spec: {properties: "
      "{}}}}";
  EXPECT_EQ(ProblemsOf(kSchema,
                       "{apiVersion: v1, kind: A, metadata: {name: "
                       "a, labels: {}}, spec: {}}"),
            "");
  EXPECT_EQ(ProblemsOf(kSchema, "{kinds: A, spec: {kind: A}}"),
            "a.kinds: is not known\na.spec.kind: is not known");
}

}  // namespace
}  // namespace fncache::sdk::schema
