// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/validate.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "fncache/function/value.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sdk/schema/problems.h"
#include "tests/sdk/schema/schema_testing.h"

namespace fncache::sdk::schema {
namespace {

using ::testing::HasSubstr;

TEST(ValidateTest, TypesAreThoseOfJson) {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"true", "a boolean"}, {"5", "a number"}, {"abc", "text"},
      {"{}", "an object"},   {"[]", "a list"},  {"null", "null"}};
  const std::vector<std::pair<std::string, std::string>> types = {
      {"boolean", "a boolean"}, {"number", "a number"},
      {"integer", "a number"},  {"string", "text"},
      {"object", "an object"},  {"array", "a list"}};
  for (const auto& [type, wanted] : types) {
    for (const auto& [value, kind] : kinds) {
      EXPECT_EQ(ProblemsOf(absl::StrCat("{type: ", type, "}"), value),
                wanted == kind
                    ? ""
                    : absl::StrCat("a: must be ", wanted, ", is ", kind));
    }
  }
}

TEST(ValidateTest, IntegersAreWhole) {
  EXPECT_EQ(ProblemsOf("{type: integer}", "1.0"), "");
  EXPECT_EQ(ProblemsOf("{type: integer}", "-3"), "");
  EXPECT_EQ(ProblemsOf("{type: integer}", "1.5"), "a: must be a whole number");
  EXPECT_EQ(ProblemsOf("{type: number}", "1.5"), "");
}

TEST(ValidateTest, NullIsFineWhereItIsNullable) {
  EXPECT_EQ(ProblemsOf("{type: string, nullable: true}", "null"), "");
  EXPECT_EQ(ProblemsOf("{type: string, nullable: false}", "null"),
            "a: must be text, is null");
  EXPECT_EQ(ProblemsOf("{type: string, nullable: true, minLength: 1, "
                       "anyOf: [{type: string}]}",
                       "null"),
            "");
  EXPECT_EQ(ProblemsOf("{type: string, nullable: true, enum: [x]}", "null"),
            "a: must be \"x\"");
  EXPECT_EQ(
      ProblemsOf("{type: string, nullable: true, enum: [x, null]}", "null"),
      "");
  EXPECT_EQ(ProblemsOf("{}", "null"), "");
}

TEST(ValidateTest, IntOrStringIsOneOfThem) {
  for (const char* const schema :
       {"{x-kubernetes-int-or-string: true}",
        "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: "
        "string}]}",
        "{format: int-or-string, type: string}",
        "{format: int-or-string, oneOf: [{type: integer}, {type: string}]}"}) {
    EXPECT_EQ(ProblemsOf(schema, "5"), "") << schema;
    EXPECT_EQ(ProblemsOf(schema, "50%"), "") << schema;
    EXPECT_EQ(ProblemsOf(schema, "true"),
              "a: must be a whole number or text, is a boolean");
    EXPECT_EQ(ProblemsOf(schema, "5.5"),
              "a: must be a whole number or text, is a fraction");
  }
  // A pattern concerns texts, a bound numbers.
  constexpr char kBoth[] =
      "{x-kubernetes-int-or-string: true, pattern: '^[0-9]+%$', maximum: 9}";
  EXPECT_EQ(ProblemsOf(kBoth, "5"), "");
  EXPECT_EQ(ProblemsOf(kBoth, "50%"), "");
  EXPECT_EQ(ProblemsOf(kBoth, "50"), "a: must be at most 9");
  EXPECT_EQ(ProblemsOf(kBoth, "x"), "a: must match the pattern ^[0-9]+%$");
  EXPECT_EQ(
      ProblemsOf("{x-kubernetes-int-or-string: true, nullable: true}", "null"),
      "");
}

TEST(ValidateTest, EnumNamesWhatIsAccepted) {
  EXPECT_EQ(ProblemsOf("{enum: [x, 1, 1.5, true, null]}", "x"), "");
  EXPECT_EQ(ProblemsOf("{enum: [x, 1, 1.5, true, null]}", "1.5"), "");
  EXPECT_EQ(ProblemsOf("{enum: [x, 1, 1.5, true, null]}", "null"), "");
  EXPECT_EQ(ProblemsOf("{enum: [x, 1, 1.5, true, null]}", "k"),
            "a: must be one of \"x\", 1, 1.5, true, null");
  EXPECT_EQ(ProblemsOf("{enum: ['1']}", "1"), "a: must be \"1\"");
  EXPECT_EQ(ProblemsOf("{enum: [1]}", "true"), "a: must be 1");
  EXPECT_EQ(ProblemsOf("{enum: [a, b, c, d, e, f, g, h, i, j, k, l]}", "x"),
            "a: must be one of \"a\", \"b\", \"c\", \"d\", \"e\", \"f\", "
            "\"g\", \"h\", \"i\", \"j\" or 2 more");
}

TEST(ValidateTest, EnumComparesObjectsAndListsWhole) {
  constexpr char kSchema[] = "{enum: [{x: 1, k: [a, {}]}, [1, 2]]}";
  EXPECT_EQ(ProblemsOf(kSchema, "{k: [a, {}], x: 1}"), "");
  EXPECT_EQ(ProblemsOf(kSchema, "[1, 2]"), "");
  for (const char* const other :
       {"{x: 1, k: [a]}", "{x: 1, k: [a, {}], z: 1}", "{x: 1}", "[2, 1]",
        "[1, 2, 3]", "{x: 1, k: [a, {b: 1}]}", "{}"}) {
    EXPECT_EQ(ProblemsOf(kSchema, other), "a: must be one of an object, a list")
        << other;
  }
}

TEST(ValidateTest, NumbersHaveBounds) {
  EXPECT_EQ(ProblemsOf("{minimum: 1, maximum: 5}", "1"), "");
  EXPECT_EQ(ProblemsOf("{minimum: 1, maximum: 5}", "5"), "");
  EXPECT_EQ(ProblemsOf("{minimum: 1, maximum: 5}", "0"),
            "a: must be at least 1");
  EXPECT_EQ(ProblemsOf("{minimum: 1, maximum: 5}", "5.5"),
            "a: must be at most 5");
  EXPECT_EQ(ProblemsOf("{minimum: 0.5}", "0.25"), "a: must be at least 0.5");
  EXPECT_EQ(ProblemsOf("{minimum: 1, exclusiveMinimum: true}", "1"),
            "a: must be more than 1");
  EXPECT_EQ(ProblemsOf("{minimum: 1, exclusiveMinimum: true}", "1.5"), "");
  EXPECT_EQ(ProblemsOf("{maximum: 5, exclusiveMaximum: true}", "5"),
            "a: must be less than 5");
  EXPECT_EQ(ProblemsOf("{maximum: 5, exclusiveMaximum: false}", "5"), "");
  // As in OpenAPI 3.1.
  EXPECT_EQ(ProblemsOf("{exclusiveMinimum: 1, exclusiveMaximum: 5}", "1"),
            "a: must be more than 1");
  EXPECT_EQ(ProblemsOf("{exclusiveMinimum: 1, exclusiveMaximum: 5}", "5"),
            "a: must be less than 5");
  EXPECT_EQ(ProblemsOf("{minimum: 7}", "text"), "");
}

TEST(ValidateTest, NumbersAreMultiples) {
  EXPECT_EQ(ProblemsOf("{multipleOf: 5}", "15"), "");
  EXPECT_EQ(ProblemsOf("{multipleOf: 5}", "0"), "");
  EXPECT_EQ(ProblemsOf("{multipleOf: 5}", "16"), "a: must be a multiple of 5");
  EXPECT_EQ(ProblemsOf("{multipleOf: 0.1}", "0.3"), "");
  EXPECT_EQ(ProblemsOf("{multipleOf: 0.1}", "0.35"),
            "a: must be a multiple of 0.1");
  EXPECT_EQ(ProblemsOf("{multipleOf: 3}", "10000000000"),
            "a: must be a multiple of 3");
  EXPECT_EQ(ProblemsOf("{multipleOf: 0}", "7"), "");
  EXPECT_EQ(ProblemsOf("{multipleOf: -2}", "7"), "");
}

TEST(ValidateTest, IntegersFitTheirFormat) {
  EXPECT_EQ(ProblemsOf("{format: int32}", "2147483647"), "");
  EXPECT_EQ(ProblemsOf("{format: int32}", "-2147483648"), "");
  EXPECT_EQ(ProblemsOf("{format: int32}", "2147483648"), "a: must fit int32");
  EXPECT_EQ(ProblemsOf("{format: int32}", "-2147483649"), "a: must fit int32");
  EXPECT_EQ(ProblemsOf("{format: int64}", "-9223372036854775808"), "");
  EXPECT_EQ(ProblemsOf("{format: int64}", "9223372036854775808"),
            "a: must fit int64");
  EXPECT_EQ(ProblemsOf("{format: float}", "1e300"), "");
}

TEST(ValidateTest, TextsAreAsLongAsTheirCharacters) {
  EXPECT_EQ(ProblemsOf("{minLength: 3, maxLength: 3}", "äöü"), "");
  EXPECT_EQ(ProblemsOf("{maxLength: 1}", "\xF0\x9F\x98\x80"), "");
  EXPECT_EQ(ProblemsOf("{minLength: 3}", "ab"),
            "a: must have at least 3 characters");
  EXPECT_EQ(ProblemsOf("{maxLength: 1}", "ab"),
            "a: must have at most 1 character");
  EXPECT_EQ(ProblemsOf("{minLength: 3}", "5"), "");
}

TEST(ValidateTest, PatternsAreRe2AndMatchAnywhere) {
  EXPECT_EQ(ProblemsOf("{pattern: 'b+'}", "abbc"), "");
  EXPECT_EQ(ProblemsOf("{pattern: '^b+$'}", "abbc"),
            "a: must match the pattern ^b+$");
  EXPECT_EQ(ProblemsOf("{pattern: '^(?i)B+$'}", "bb"), "");
  EXPECT_EQ(ProblemsOf("{pattern: '^.$'}", "ä"), "");
  // RE2 has neither.
  EXPECT_EQ(ProblemsOf("{pattern: '^(?!a)'}", "abc"), "");
  EXPECT_EQ(ProblemsOf("{pattern: '('}", "abc"), "");
  EXPECT_EQ(ProblemsOf("{pattern: '^x$'}", "5"), "");
}

TEST(ValidateTest, TimesAreAsInRfc3339) {
  for (const char* const time :
       {"'2024-02-29T12:30:59Z'", "'2024-05-06T07:08:09.123+02:00'",
        "'2024-05-06t07:08:09z'"}) {
    EXPECT_EQ(ProblemsOf("{type: string, format: date-time}", time), "");
  }
  for (const char* const time :
       {"'2023-02-29T12:30:59Z'", "'2024-05-06'", "''", "yesterday",
        "'2024-05-06T07:08:09'", "'2024-05-06T25:08:09Z'"}) {
    EXPECT_EQ(ProblemsOf("{type: string, format: date-time}", time),
              "a: must be a time as RFC 3339 has it");
  }
  EXPECT_EQ(ProblemsOf("{type: string, format: ipv4}", "x"), "");
}

TEST(ValidateTest, ListsHaveTheirElementsChecked) {
  EXPECT_EQ(ProblemsOf("{items: {type: string}}", "[a, b]"), "");
  EXPECT_EQ(ProblemsOf("{items: {type: string}}", "[a, 1, b, true]"),
            "a[1]: must be text, is a number\n"
            "a[3]: must be text, is a boolean");
  EXPECT_EQ(ProblemsOf("{items: {items: {type: string}}}", "[[], [[]]]"),
            "a[1][0]: must be text, is a list");
  EXPECT_EQ(ProblemsOf("{minItems: 2}", "[1]"),
            "a: must have at least 2 elements");
  EXPECT_EQ(ProblemsOf("{maxItems: 1}", "[1, 2]"),
            "a: must have at most 1 element");
  EXPECT_EQ(ProblemsOf("{minItems: 1, maxItems: 2}", "[1, 2]"), "");
}

TEST(ValidateTest, UniqueElementsDiffer) {
  constexpr char kSchema[] = "{uniqueItems: true}";
  for (const char* const list :
       {"[]", "[1, '1', true, 'true', null, 'null']",
        "[[1, 2], [12], [[1], 2]]", "[{a: 1}, {a: 2}, {b: 1}, {}]",
        "['1:a', {1: a}, [1, a]]"}) {
    EXPECT_EQ(ProblemsOf(kSchema, list), "") << list;
  }
  for (const char* const list :
       {"[1, 2, 1.0]", "[a, b, a]", "[{a: 1, b: 2}, {b: 2, a: 1}]", "[0, -0.0]",
        "[[], []]", "[null, null]"}) {
    EXPECT_EQ(ProblemsOf(kSchema, list), "a: must not have equal elements")
        << list;
  }
  EXPECT_EQ(ProblemsOf("{uniqueItems: false}", "[1, 1]"), "");
}

TEST(ValidateTest, RequiredFieldsArePresent) {
  EXPECT_EQ(ProblemsOf("{required: [x, y.z, x]}", "{w: 1}"),
            "a.\"y.z\": is required\na.x: is required");
  EXPECT_EQ(ProblemsOf("{required: [x]}", "{x: null}"), "");
  EXPECT_EQ(ProblemsOf("{required: [x]}", "text"), "");
  // An optional object may be absent with all of its fields.
  EXPECT_EQ(ProblemsOf("{properties: {b: {required: [x]}}}", "{}"), "");
  // A default is no value: the object does not have it.
  EXPECT_EQ(ProblemsOf("{required: [x], properties: {x: {default: 1}}}", "{}"),
            "a.x: is required");
}

TEST(ValidateTest, ObjectsHaveCountsAndNestedFields) {
  EXPECT_EQ(ProblemsOf("{minProperties: 1}", "{}"),
            "a: must have at least 1 field");
  EXPECT_EQ(ProblemsOf("{maxProperties: 2}", "{a: 1, b: 2, c: 3}"),
            "a: must have at most 2 fields");
  EXPECT_EQ(ProblemsOf("{properties: {b: {properties: {c: {type: number}}}}}",
                       "{b: {c: text}}"),
            "a.b.c: must be a number, is text");
  EXPECT_EQ(ProblemsOf("{additionalProperties: {type: number}, properties: "
                       "{x: {type: string}}}",
                       "{x: a, k: 1, 'z.z': b}"),
            "a.\"z.z\": must be a number, is text");
}

TEST(ValidateTest, AdditionalFieldsCanBeForbidden) {
  EXPECT_EQ(ProblemsOf("{additionalProperties: false, properties: {x: {}}}",
                       "{x: 1, k: 2, '': 3}"),
            "a.\"\": is not known\na.k: is not known");
  EXPECT_EQ(ProblemsOf("{additionalProperties: false}", "{x: 1}"),
            "a.x: is not known");
}

TEST(ValidateTest, AllFormsApply) {
  EXPECT_EQ(ProblemsOf("{allOf: [{minimum: 1}, {maximum: 3}]}", "2"), "");
  EXPECT_EQ(ProblemsOf("{allOf: [{minimum: 1}, {maximum: 3}]}", "5"),
            "a: must be at most 3");
  EXPECT_EQ(ProblemsOf("{allOf: [{properties: {x: {type: string}}}, "
                       "{required: [k]}]}",
                       "{x: 1}"),
            "a.k: is required\na.x: must be text, is a number");
  // Each problem once.
  EXPECT_EQ(ProblemsOf("{minimum: 1, allOf: [{minimum: 1}]}", "0"),
            "a: must be at least 1");
}

TEST(ValidateTest, AnyFormSuffices) {
  constexpr char kSchema[] = "{anyOf: [{required: [x]}, {required: [k]}]}";
  EXPECT_EQ(ProblemsOf(kSchema, "{x: 1}"), "");
  EXPECT_EQ(ProblemsOf(kSchema, "{x: 1, k: 1}"), "");
  EXPECT_EQ(ProblemsOf(kSchema, "{}"),
            "a: has none of the accepted forms (anyOf)");
}

TEST(ValidateTest, JustOneFormIsAccepted) {
  constexpr char kSchema[] = "{oneOf: [{required: [x]}, {required: [k]}]}";
  EXPECT_EQ(ProblemsOf(kSchema, "{x: 1}"), "");
  EXPECT_EQ(ProblemsOf(kSchema, "{x: 1, k: 1}"),
            "a: has more than one of the accepted forms (oneOf)");
  EXPECT_EQ(ProblemsOf(kSchema, "{}"),
            "a: has none of the accepted forms (oneOf)");
}

TEST(ValidateTest, AFormCanBeForbidden) {
  EXPECT_EQ(ProblemsOf("{not: {required: [x]}}", "{k: 1}"), "");
  EXPECT_EQ(ProblemsOf("{not: {required: [x]}}", "{x: 1}"),
            "a: has a form that is not accepted");
  EXPECT_EQ(ProblemsOf("{not: {not: {type: string}}}", "1"),
            "a: has a form that is not accepted");
  EXPECT_EQ(ProblemsOf("{not: {}}", "1"), "a: has a form that is not accepted");
}

// Within `not` and `oneOf`, "no problem" must not be taken for "matches".
TEST(ValidateTest, FormsThatCannotBeJudgedAreNoProblem) {
  const std::vector<std::pair<const char*, const char*>> forms = {
      {"{$ref: x}", "text"},
      {"{pattern: '(?!a)'}", "text"},
      {"{pattern: 5}", "text"},
      {"{type: any}", "text"},
      {"{type: [string]}", "text"},
      {"{format: ipv4}", "text"},
      {"{minLength: x}", "text"},
      {"7", "text"},
      {"[]", "text"},
      {"{required: [5]}", "{x: 1}"},
      {"{items: []}", "[1]"},
      {"{allOf: x}", "text"},
      {"{allOf: [x]}", "text"},
      {"{additionalProperties: x}", "{x: 1}"},
      {"{not: {$ref: x}}", "text"},
      {"{enum: x}", "text"},
      {"{anyOf: [{$ref: x}, {type: number}]}", "text"},
      {"{oneOf: [{$ref: x}]}", "text"}};
  for (const auto& [form, value] : forms) {
    for (const char* const around :
         {"{not: $0}", "{oneOf: [$0]}", "{oneOf: [{}, $0]}", "{anyOf: [$0]}",
          "{not: {allOf: [$0]}}", "$0"}) {
      const std::string schema = absl::Substitute(around, form);
      EXPECT_EQ(ProblemsOf(schema, value), "") << schema;
    }
  }
  // A form that is certainly broken decides nevertheless.
  EXPECT_EQ(ProblemsOf("{anyOf: [{$ref: x}, {}]}", "1"), "");
  EXPECT_EQ(ProblemsOf("{anyOf: [{pattern: '(', maxLength: 1}]}", "text"),
            "a: has none of the accepted forms (anyOf)");
  EXPECT_EQ(ProblemsOf("{oneOf: [{}, {}, {$ref: x}]}", "1"),
            "a: has more than one of the accepted forms (oneOf)");
}

TEST(ValidateTest, BrokenSchemasAllowAll) {
  constexpr char kObject[] =
      "{type: 1, properties: {a: {}}, items: [1, {a: b}], required: x, m: "
      "null, "
      "e: '', f: 1e300, g: [[[]]]}";
  for (const char* const schema : {"",
                                   "{}",
                                   "[]",
                                   "text",
                                   "5",
                                   "null",
                                   "true",
                                   "{$ref: '#'}",

                                   "{properties: 5}",
                                   "{properties: []}",
                                   "{type: {}}",
                                   "{type: ''}",
                                   "{required: {}}",
                                   "{required: type}",
                                   "{enum: {}}",
                                   "{allOf: {}, anyOf: {}, oneOf: {}, not: []}",
                                   "{allOf: [], oneOf: 1, anyOf: null}",
                                   "{allOf: [1, null, x, []]}",
                                   "{minProperties: x, maxProperties: {}}",
                                   "{minProperties: -1}",
                                   "{patternProperties: {'(': {}}}",
                                   "{additionalProperties: 5}",
                                   "{nullable: x}",
                                   "{x-kubernetes-int-or-string: x}",
                                   "{x-kubernetes-embedded-resource: 1}",
                                   "{definitions: {a: {}}}"}) {
    EXPECT_EQ(Found(function::Yaml(schema), function::Yaml(kObject)), "")
        << schema;
  }
}

TEST(ValidateTest, BrokenKeywordsAllowAllValues) {
  for (const char* const keyword : {"type",
                                    "format",
                                    "nullable",
                                    "enum",
                                    "minimum",
                                    "maximum",
                                    "exclusiveMinimum",
                                    "exclusiveMaximum",
                                    "multipleOf",
                                    "minLength",
                                    "maxLength",
                                    "pattern",
                                    "minItems",
                                    "maxItems",
                                    "uniqueItems",
                                    "items",
                                    "minProperties",
                                    "maxProperties",
                                    "required",
                                    "properties",
                                    "additionalProperties",
                                    "allOf",
                                    "anyOf",
                                    "oneOf",
                                    "not",
                                    "$ref"}) {
    for (const char* const broken : {"{}", "[]", "''", "null"}) {
      const std::string schema = absl::StrCat("{", keyword, ": ", broken, "}");
      if (schema == "{not: {}}") continue;  // accepts nothing
      for (const char* const value :
           {"1", "-1.5", "text", "''", "true", "{x: 1}", "{}", "[1, 1]"}) {
        if (schema == "{properties: {}}" &&
            absl::string_view(value) == "{x: 1}") {
          continue;
        }
        EXPECT_EQ(ProblemsOf(schema, value), "") << schema << " " << value;
      }
    }
  }
}

TEST(ValidateTest, EmptyListsOfFormsAcceptAll) {
  EXPECT_EQ(ProblemsOf("{allOf: []}", "1"), "");
  EXPECT_EQ(ProblemsOf("{anyOf: []}", "1"), "");
  EXPECT_EQ(ProblemsOf("{oneOf: []}", "1"), "");
  EXPECT_EQ(ProblemsOf("{enum: []}", "1"), "");
}

TEST(ValidateTest, DeepSchemasAndObjectsEnd) {
  std::string schema = "{type: string}";
  std::string object = "1";
  for (int i = 0; i < 160; ++i) {
    schema = absl::StrCat("{\"properties\":{\"a\":", schema, "}}");
    object = absl::StrCat("{\"a\":", object, "}");
  }
  EXPECT_THAT(Found(function::Yaml(schema), function::Yaml(object)),
              HasSubstr("a.a.a: must be text, is a number"));
  schema = "{type: string}";
  for (int i = 0; i < 160; ++i) {
    schema = absl::StrCat("{",
                          i % 3 == 0   ? "not: "
                          : i % 3 == 1 ? "anyOf: ["
                                       : "allOf: [",
                          schema, i % 3 == 0 ? "}" : "]}");
  }
  Found(function::Yaml(schema), function::Yaml("{a: 1}"));
}

TEST(ValidateTest, WorkThatMultipliesEnds) {
  std::string many = "[";
  for (int i = 0; i < 4000; ++i) absl::StrAppend(&many, "x", i, ",");
  many += "x]";
  EXPECT_THAT(ProblemsOf(absl::StrCat("{items: {enum: ", many, "}}"), "[k]"),
              HasSubstr("or 3991 more"));
  // 16 million comparisons: what is beyond the limit counts as right.
  std::string others = "[";
  for (int i = 0; i < 4000; ++i) absl::StrAppend(&others, "x3999,");
  others += "k]";
  EXPECT_EQ(ProblemsOf(absl::StrCat("{items: {enum: ", many, "}}"), others),
            "");
}

TEST(ValidateTest, ProblemsAreBounded) {
  std::string list = "[";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&list, i, ",");
  list += "1]";
  const auto schema =
      function::Yaml("{properties: {a: {items: {type: string}}}}");
  const auto object = function::Yaml(absl::StrCat("{a: ", list, "}"));
  EXPECT_EQ(Validate(schema.ref().get(), object.ref().get()).size(),
            kMaxProblems);
}

TEST(ValidateTest, TextsHaveNoValueOfTheObject) {
  constexpr char kSecret[] = "s3cret";
  for (const char* const schema :
       {"{type: number}", "{enum: [x]}", "{pattern: '^x$'}", "{maxLength: 1}",
        "{minLength: 100}", "{format: date-time}", "{anyOf: [{maxLength: 1}]}",
        "{oneOf: [{}, {}]}", "{not: {}}",
        "{x-kubernetes-int-or-string: true, maxLength: 1}"}) {
    const std::string found = ProblemsOf(schema, kSecret);
    EXPECT_NE(found, "") << schema;
    EXPECT_EQ(found.find(kSecret), std::string::npos) << found;
  }
}

TEST(ValidateTest, LongPatternsAndConstantsAreCut) {
  const std::string pattern(1000, 'p');
  EXPECT_LT(ProblemsOf(absl::StrCat("{pattern: ", pattern, "}"), "x").size(),
            200u);
  EXPECT_LT(ProblemsOf(absl::StrCat("{enum: [", pattern, "]}"), "x").size(),
            200u);
}

TEST(ValidateTest, PathsAreBelowTheObjectThatIsChecked) {
  const auto schema =
      function::Yaml("{properties: {a: {}, b: {type: string}}}");
  const auto object = function::Yaml("{a: {x.y: [{b: 1}]}, b: 2}");
  EXPECT_EQ(Found(schema, object["a"]["x.y"][0]),
            "b: must be text, is a number");
  EXPECT_EQ(Found(schema, object), "b: must be text, is a number");
  EXPECT_EQ(
      Found(function::Yaml("{items: {type: string}}"), object["a"]["x.y"]),
      "[0]: must be text, is an object");
  EXPECT_EQ(Found(function::Yaml("{type: string}"), object["a"]),
            ": must be text, is an object");
}

TEST(ValidateTest, AnAbsentObjectLacksWhatIsRequired) {
  EXPECT_EQ(Found(function::Yaml("{required: [spec], type: object}"),
                  function::Value()),
            "spec: is required");
  EXPECT_EQ(Found(function::Yaml("{type: object}"), function::Value()), "");
}

}  // namespace
}  // namespace fncache::sdk::schema
