// SPDX-License-Identifier: Apache-2.0
#include "text/kubernetes_yaml.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace fncache::text {
namespace {

using ::testing::HasSubstr;

// As JSON text; maps are ordered by their keys' bytes.
std::string Parsed(absl::string_view text) {
  const absl::StatusOr<Json> json = ParseKubernetesYaml(text);
  EXPECT_TRUE(json.ok()) << json.status() << " in " << text;
  return json.ok() ? json->dump() : "";
}

std::string Problem(absl::string_view text) {
  const absl::StatusOr<Json> json = ParseKubernetesYaml(text);
  EXPECT_EQ(json.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(json.status().message());
}

TEST(KubernetesYamlTest, NothingIsNull) {
  EXPECT_EQ(Parsed(""), "null");
  EXPECT_EQ(Parsed(absl::string_view()), "null") << "a null pointer";
  EXPECT_EQ(Parsed("\n\n"), "null");
  EXPECT_EQ(Parsed("# only a comment\n"), "null");
  EXPECT_EQ(Parsed("---\n"), "null");
}

TEST(KubernetesYamlTest, OnlyTheFirstDocumentIsRead) {
  EXPECT_EQ(Parsed("a: 1\n---\nb: [2\n"), R"({"a":1})");
  EXPECT_EQ(Parsed("---\n---\nb: 2\n"), "null");
}

TEST(KubernetesYamlTest, JsonIsYaml) {
  EXPECT_EQ(Parsed(R"({"a": [1, 2.5, "x", null, true], "b":{"c":"\u00e9"}})"),
            "{\"a\":[1,2.5,\"x\",null,true],\"b\":{\"c\":\"\xC3\xA9\"}}");
}

TEST(KubernetesYamlTest, ScalarsAreThoseOfYaml11) {
  EXPECT_EQ(Parsed("[yes, on, y, n, off, 010, 1_000, 0x10, 0o10, 0b11]"),
            "[true,true,true,false,false,8,1000,16,8,3]");
  EXPECT_EQ(Parsed("[2024-01-01, 2024-01-01T00:00:00Z, 1:30, 1e400]"),
            R"(["2024-01-01","2024-01-01T00:00:00Z","1:30","1e400"])");
  EXPECT_EQ(Parsed("[~, null, '', \"~\", 'yes', \"010\"]"),
            R"([null,null,"","~","yes","010"])");
  EXPECT_EQ(Parsed("a:\nb: |\n  yes\nc: >-\n  1\n"),
            R"({"a":null,"b":"yes\n","c":"1"})");
}

TEST(KubernetesYamlTest, NumbersAreThoseOfUnstructuredObjects) {
  EXPECT_EQ(Parsed("[3.0, 1e3, -0.0, 9007199254740993, 1e20]"),
            "[3,1000,0,9007199254740993,1e+20]");
  const Json beyond = *ParseKubernetesYaml("18446744073709551615");
  EXPECT_TRUE(beyond.is_number_float());
  EXPECT_EQ(beyond.get<double>(), 18446744073709551616.0);
  EXPECT_TRUE(ParseKubernetesYaml("9223372036854775808")->is_number_float());
  EXPECT_TRUE(ParseKubernetesYaml("9.3e18")->is_number_float());
}

TEST(KubernetesYamlTest, InfinityAndNanAreErrors) {
  EXPECT_EQ(Problem("a: 1\nb: .inf\n"), "json: unsupported value: +Inf");
  EXPECT_EQ(Problem("[-.Inf]"), "json: unsupported value: -Inf");
  EXPECT_EQ(Problem(".NAN"), "json: unsupported value: NaN");
}

TEST(KubernetesYamlTest, KeysAreTextOfWhatTheyMean) {
  EXPECT_EQ(Parsed("n: 1"), R"({"false":1})");
  EXPECT_EQ(Parsed("yes: 1"), R"({"true":1})");
  EXPECT_EQ(Parsed("0x10: 1"), R"({"16":1})");
  EXPECT_EQ(Parsed("1.50: 1"), R"({"1.5":1})");
  EXPECT_EQ(Parsed("1e10: 1"), R"({"1e+10":1})");
  EXPECT_EQ(Parsed("0.1: 1"), R"({"0.1":1})");
  EXPECT_EQ(Parsed(".inf: 1"), R"({".inf":1})");
  EXPECT_EQ(Parsed("2024-01-01: 1"), R"({"2024-01-01":1})");
  EXPECT_EQ(Parsed("'n': 1"), R"({"n":1})");
  EXPECT_EQ(Parsed("&k key: 1\nb: {*k : 2}"), R"({"b":{"key":2},"key":1})");
}

TEST(KubernetesYamlTest, KeysThatJsonCannotHaveAreErrors) {
  EXPECT_EQ(Problem("a: 1\n~: 1"), "unsupported map key: null");
  EXPECT_EQ(Problem("? [a]\n: b"), "yaml: invalid map key: a list or a map");
  EXPECT_EQ(Problem("? {a: b}\n: b"), "yaml: invalid map key: a list or a map");
  EXPECT_EQ(Problem("18446744073709551615: 1"),
            "unsupported map key of type: uint64, key: 18446744073709551615");
}

TEST(KubernetesYamlTest, TheLastOfEqualKeysWins) {
  EXPECT_EQ(Parsed("a: {x: 1}\nb: 2\na: [3]"), R"({"a":[3],"b":2})");
  EXPECT_EQ(Parsed("yes: 1\ntrue: 2"), R"({"true":2})");
}

TEST(KubernetesYamlTest, TagsDecide) {
  EXPECT_EQ(Parsed("[!!str 12, !!int '0x10', !!float 3, !!bool on, !!null '']"),
            R"(["12",16,3,true,null])");
  EXPECT_EQ(Parsed("[!!str , !!str ~, !mine 12, !!binary aGk=]"),
            R"(["","~","12","hi"])");
  EXPECT_EQ(Parsed("[!<tag:yaml.org,2002:int> 0b11, !!timestamp 2024-01-01]"),
            R"([3,"2024-01-01"])");
  EXPECT_EQ(Parsed("a: !!binary |\n  aGVs\n  bG8=\n"), R"({"a":"hello"})");
  EXPECT_EQ(Parsed("!!binary /w=="), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(Problem("a: !!int x"), "yaml: cannot decode !!str `x` as a !!int");
  EXPECT_EQ(Problem("a: !!binary a b"),
            "yaml: !!binary value contains invalid base64 data");
}

TEST(KubernetesYamlTest, AliasesAreCopies) {
  EXPECT_EQ(Parsed("a: &x {k: [1]}\nb: *x\nc: &x 5\nd: [*x, *x]"),
            R"({"a":{"k":[1]},"b":{"k":[1]},"c":5,"d":[5,5]})");
  EXPECT_EQ(Problem("a: 1\nb: *nowhere"),
            "yaml: unknown anchor 'nowhere' referenced");
}

TEST(KubernetesYamlTest, AliasesThatContainThemselvesAreErrors) {
  EXPECT_EQ(Problem("a: &x\n  b: *x"),
            "yaml: anchor 'x' value contains itself");
  EXPECT_EQ(Problem("&x [*x]"), "yaml: anchor 'x' value contains itself");
  EXPECT_EQ(Problem("&x\n<<: *x"), "yaml: anchor 'x' value contains itself");
}

TEST(KubernetesYamlTest, MergeKeys) {
  EXPECT_EQ(Parsed("base: &x {a: 1, b: 2}\nuse:\n  <<: *x\n  b: 3"),
            R"({"base":{"a":1,"b":2},"use":{"a":1,"b":3}})");
  EXPECT_EQ(Parsed("<<: {a: 1}\nb: 2"), R"({"a":1,"b":2})");
  // The first map of a list wins. A merge overrides entries before it.
  EXPECT_EQ(Parsed("<<: [{a: 1}, {a: 2, b: 3}]"), R"({"a":1,"b":3})");
  EXPECT_EQ(Parsed("a: 1\n<<: {a: 2}"), R"({"a":2})");
  EXPECT_EQ(Parsed("!!merge <<: {a: 2}"), R"({"a":2})");
  EXPECT_EQ(Parsed("'<<': {a: 2}"), R"({"<<":{"a":2}})");
  EXPECT_EQ(Parsed("a: <<"), R"({"a":"<<"})");
  EXPECT_EQ(Problem("a: 1\n<<: 1"),
            "yaml: map merge requires map or sequence of maps as the value");
  EXPECT_EQ(Problem("<<: [{a: 1}, 2]"),
            "yaml: map merge requires map or sequence of maps as the value");
  EXPECT_EQ(Problem("a: &x 1\n<<: *x"),
            "yaml: map merge requires map or sequence of maps as the value");
}

// The scanner's lines are counted from 1 and the grammar's from 0.
TEST(KubernetesYamlTest, FaultsNameTheLineThatTheReferenceNames) {
  EXPECT_EQ(Problem("a: 1\nb: c: d\n"),
            "yaml: line 2: mapping values are not allowed in this context");
  EXPECT_EQ(Problem("a: 1\n\tb: 2\n"),
            "yaml: line 2: found a tab character that violates indentation");
  EXPECT_EQ(Problem("a: [1"), "yaml: line 1: did not find expected ',' or ']'");
  EXPECT_EQ(Problem("[a}"), "yaml: did not find expected ',' or ']'");
  EXPECT_EQ(Problem("a: 1\nb: \x7f\n"),
            "yaml: control characters are not allowed");
  EXPECT_EQ(Problem("a: 1\n\nb: \xff\n"), "yaml: invalid leading UTF-8 octet");
}

// Where today's libyaml and the reference disagree.
TEST(KubernetesYamlTest, TheDialectIsTheReferences) {
  EXPECT_EQ(Problem("a: 1\nb: [x?y, z]\n"),
            "yaml: line 1: did not find expected ',' or ']'");
  EXPECT_EQ(Problem("a: 1\nb: {c: http://x/y?z=1}\n"),
            "yaml: line 1: did not find expected ',' or '}'");
  EXPECT_EQ(Parsed("a: x?y\nb: ['x?y', ? c]"),
            R"({"a":"x?y","b":["x?y",{"c":null}]})");
  EXPECT_EQ(Parsed("{a:, b: c:d}"), R"({"a:":null,"b":"c:d"})");
  EXPECT_EQ(Problem("\"a\\/b\""), "yaml: found unknown escape character");
  EXPECT_EQ(Parsed("%YAML 1.1\n---\na"), "\"a\"");
  EXPECT_EQ(Problem("%YAML 1.2\n---\na"),
            "yaml: found incompatible YAML document");
  EXPECT_EQ(Problem("%FOO\n---\na"), "yaml: found unknown directive name");
  EXPECT_EQ(Parsed("%TAG !y! tag:yaml.org,2002:\n---\n!y!str 1"), "\"1\"");
}

TEST(KubernetesYamlTest, ByteOrderMarks) {
  EXPECT_EQ(Parsed("\xef\xbb\xbf"
                   "a: 1"),
            R"({"a":1})");
  EXPECT_EQ(Parsed("\xef\xbb\xbf\xef\xbb\xbf- 1"), "[1]");
  EXPECT_EQ(Parsed("a: 1\n\xef\xbb\xbf"
                   "b: 2"),
            "{\"a\":1,\"\xef\xbb\xbf"
            "b\":2}");
  EXPECT_EQ(Parsed(absl::string_view("\xff\xfe"
                                     "a\0:\0 \0"
                                     "1\0",
                                     10)),
            R"({"a":1})");
  EXPECT_EQ(Parsed(absl::string_view("\xfe\xff\0a", 4)), "\"a\"");
  EXPECT_EQ(Problem("\xff\xfe"
                    "a"),
            "yaml: incomplete UTF-16 character");
}

TEST(KubernetesYamlTest, NestingIsBounded) {
  const auto nested = [](int depth) {
    return absl::StrCat(std::string(depth, '['), std::string(depth, ']'));
  };
  EXPECT_TRUE(ParseKubernetesYaml(nested(kMaxJsonDepth)).ok());
  EXPECT_THAT(Problem(nested(kMaxJsonDepth + 1)), HasSubstr("nested"));
  // Aliases nest as well.
  std::string chain = "- &a0 [1]\n";
  for (int i = 1; i <= kMaxJsonDepth; ++i) {
    absl::StrAppend(&chain, "- &a", i, " [*a", i - 1, "]\n");
  }
  EXPECT_FALSE(ParseKubernetesYaml(chain).ok());
}

TEST(KubernetesYamlTest, WhatAliasesMakeIsBounded) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    absl::StrAppend(&laughs, "a", i, ": &a", i, " [");
    for (int j = 0; j < 9; ++j) absl::StrAppend(&laughs, "*a", i - 1, ", ");
    absl::StrAppend(&laughs, "]\n");
  }
  EXPECT_THAT(Problem(laughs), HasSubstr("excessive aliasing"));

  std::string copies = absl::StrCat("- &a ", std::string(1 << 20, 'x'), "\n");
  for (int i = 0; i < 100; ++i) absl::StrAppend(&copies, "- *a\n");
  EXPECT_THAT(Problem(copies), HasSubstr("excessive aliasing"));
}

std::vector<std::string> Split(absl::string_view text) {
  const auto documents = SplitYamlDocuments(text);
  EXPECT_TRUE(documents.ok()) << documents.status();
  return documents.value_or(std::vector<std::string>());
}

using Texts = std::vector<std::string>;

TEST(SplitYamlDocumentsTest, SeparatorsMayHaveBlanksAndComments) {
  EXPECT_EQ(Split("a: 1\n---\nb: 2\n--- \t\nc: 3\n---  # four\nd: 4"),
            (Texts{"a: 1\n", "b: 2\n", "c: 3\n", "d: 4\n"}));
  EXPECT_EQ(Split("a: 1\r\n---\r\nb: 2\r\n"), (Texts{"a: 1\n", "b: 2\n"}));
}

TEST(SplitYamlDocumentsTest, ASeparatorBeforeAnyTextIsPartOfItsDocument) {
  EXPECT_TRUE(Split("").empty());
  EXPECT_EQ(Split("---\na: 1\n---\n"), (Texts{"---\na: 1\n"}));
  EXPECT_EQ(Split("---\n---\na: 1\n"), (Texts{"---\n", "a: 1\n"}));
  EXPECT_EQ(Split("a: 1\n---\n---\nb: 2\n"), (Texts{"a: 1\n", "---\nb: 2\n"}));
}

TEST(SplitYamlDocumentsTest, CommentsAloneAreADocument) {
  EXPECT_EQ(Split("# c\n---\na: 1\n---\n\n"), (Texts{"# c\n", "a: 1\n", "\n"}));
}

TEST(SplitYamlDocumentsTest, OtherTextBesideASeparatorIsAnError) {
  EXPECT_EQ(SplitYamlDocuments("a: 1\n--- b: 2\n").status().message(),
            "invalid Yaml document separator: b: 2");
  EXPECT_FALSE(SplitYamlDocuments("----\n").ok());
  EXPECT_FALSE(SplitYamlDocuments("---a\n").ok());
  // A separator begins its line.
  EXPECT_EQ(Split("a: |\n  ---\n").size(), 1);
}

}  // namespace
}  // namespace fncache::text
