// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_writer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/test_data.h"
#include "text/kubernetes_yaml.h"

namespace fncache::text {
namespace {

namespace fs = std::filesystem;

std::string Printed(absl::string_view json) {
  const absl::StatusOr<Json> parsed = ParseJson(json);
  EXPECT_TRUE(parsed.ok()) << parsed.status() << " in " << json;
  return parsed.ok() ? ToYaml(*parsed) : "";
}

TEST(DocumentTest, ListsStandAtTheColumnOfTheirParent) {
  EXPECT_EQ(Printed(R"({"b": [1, {"c": [2], "d": {}}, [3, [4]]], "a": []})"),
            "a: []\n"
            "b:\n"
            "- 1\n"
            "- c:\n"
            "  - 2\n"
            "  d: {}\n"
            "- - 3\n"
            "  - - 4\n");
}

TEST(DocumentTest, ADocumentMayBeAnything) {
  EXPECT_EQ(Printed("null"), "null\n");
  EXPECT_EQ(Printed("{}"), "{}\n");
  EXPECT_EQ(Printed("[]"), "[]\n");
  EXPECT_EQ(Printed("\"x\""), "x\n");
  EXPECT_EQ(Printed("3"), "3\n");
}

TEST(DocumentTest, KeysAreSortedByRunsOfDigits) {
  EXPECT_EQ(Printed(R"({"a10": 1, "a2": 2, "B": 3, "_": 4, "": 5})"),
            "\"\": 5\n_: 4\nB: 3\na2: 2\na10: 1\n");
}

TEST(DocumentTest, TextThatMeansSomethingElseIsQuoted) {
  EXPECT_EQ(Printed(R"(["yes", "n", "1e3", "2024-01-01", "", "~", "null",
                        "010", "1_000", ".inf", "1:30", "0x1", "true"])"),
            "- \"yes\"\n- \"n\"\n- \"1e3\"\n- \"2024-01-01\"\n- \"\"\n- \"~\"\n"
            "- \"null\"\n- \"010\"\n- \"1_000\"\n- \".inf\"\n- \"1:30\"\n"
            "- \"0x1\"\n- \"true\"\n");
  EXPECT_EQ(Printed(R"({"y": 1, "12": 2})"), "\"12\": 2\n\"y\": 1\n");
  EXPECT_EQ(Printed(R"(["yesno", "1.2.3", "2024-13-01", "<<", "v1"])"),
            "- yesno\n- 1.2.3\n- 2024-13-01\n- <<\n- v1\n");
}

TEST(DocumentTest, TextThatCannotBePlainIsInSingleQuotes) {
  EXPECT_EQ(Printed(R"(["a: b", "- a", "#a", "a #b", "*a", "&a", "!a", "@a",
                        "`a", "%a", "'a", "\"a", "{a", "[a", "a:", " a", "a ",
                        "|", ">", ",", "? a", "---"])"),
            "- 'a: b'\n- '- a'\n- '#a'\n- 'a #b'\n- '*a'\n- '&a'\n- '!a'\n"
            "- '@a'\n- '`a'\n- '%a'\n- '''a'\n- '\"a'\n- '{a'\n- '[a'\n"
            "- 'a:'\n- ' a'\n- 'a '\n- '|'\n- '>'\n- ','\n- '? a'\n- '---'\n");
  EXPECT_EQ(Printed(R"(["a:b", "-a", "a#b", "a'b", "?a", "a, b", "{{a"])"),
            "- a:b\n- -a\n- a#b\n- a'b\n- ?a\n- a, b\n- '{{a'\n");
}

TEST(DocumentTest, TextOfSeveralLinesIsLiteral) {
  EXPECT_EQ(Printed(R"({"a": "x\ny\n", "b": "x\ny", "c": "x\n\n",
                        "d": " x\ny\n"})"),
            "a: |\n  x\n  y\n"
            "b: |-\n  x\n  y\n"
            "c: |+\n  x\n\n"
            "d: |2\n   x\n  y\n");
  EXPECT_EQ(Printed(R"({"a": ["x\ny"]})"), "a:\n- |-\n  x\n  y\n");
  // Where a literal cannot be: blanks before the end of a line, and keys.
  EXPECT_EQ(Printed(R"(["x \ny", "x\n\ty", "\n"])"),
            "- \"x \\ny\"\n- \"x\\n\\ty\"\n- |2+\n\n");
  EXPECT_EQ(Printed(R"({"x\ny": 1})"), "? |-\n  x\n  y\n: 1\n");
}

TEST(DocumentTest, ALiteralAtTheEndHasNoMarkBehindIt) {
  EXPECT_EQ(Printed(R"({"a": "x\n\n"})"), "a: |+\n  x\n\n");
  EXPECT_EQ(Printed(R"("x\n\n")"), "|+\n  x\n\n");
}

TEST(DocumentTest, LongPlainTextIsFolded) {
  const std::string words =
      "one two three four five six seven eight nine ten eleven twelve thirteen "
      "fourteen fifteen";
  EXPECT_EQ(ToYaml(Json{{"key", words}}),
            "key: one two three four five six seven eight nine ten eleven "
            "twelve thirteen fourteen\n  fifteen\n");
  const std::string word(100, 'x');
  EXPECT_EQ(ToYaml(Json{{"key", word}}), "key: " + word + "\n");
  EXPECT_EQ(ToYaml(Json{{"key", "a: " + words}}),
            "key: 'a: one two three four five six seven eight nine ten eleven "
            "twelve thirteen fourteen\n  fifteen'\n");
}

TEST(DocumentTest, LongKeysAreWrittenAsSuch) {
  const std::string key(129, 'k');
  EXPECT_EQ(ToYaml(Json{{key, 1}}), "? " + key + "\n: 1\n");
  EXPECT_EQ(ToYaml(Json{{key.substr(1), 1}}), key.substr(1) + ": 1\n");
}

TEST(DocumentTest, OtherCharacters) {
  EXPECT_EQ(Printed(R"(["\t", "\r", "\u0000", "\u001b", "a\tb", "\\"])"),
            "- \"\\t\"\n- \"\\r\"\n- \"\\0\"\n- \"\\e\"\n- \"a\\tb\"\n- \\\n");
  // Printable: all of the first plane. Beyond: not to libyaml.
  EXPECT_EQ(Printed("[\"\xC3\xA9\", \"\xE4\xB8\xAD\", \"\xF0\x9F\x98\x80\"]"),
            "- \xC3\xA9\n- \xE4\xB8\xAD\n- \"\\U0001F600\"\n");
  EXPECT_EQ(ToYaml(Json("a\xff")), "a\xEF\xBF\xBD\n");
}

TEST(DocumentTest, NumbersHaveTheirShortestDigits) {
  EXPECT_EQ(ToYaml(Json{123456789012345678.0, 3.0, 1e20, 1234567.5, 1e-05,
                        123456.5, 1.8446744073709552e19, -0.0, 1e21, 0.75}),
            "- 123456789012345680\n- 3\n- 1e+20\n- 1.2345675e+06\n- 1e-05\n"
            "- 123456.5\n- 1.8446744073709552e+19\n- 0\n- 1e+21\n- 0.75\n");
  EXPECT_EQ(Printed("[9007199254740993, 18446744073709551615, -1]"),
            "- 9007199254740993\n- 18446744073709551615\n- -1\n");
}

TEST(DocumentTest, DeepNestingIsPrinted) {
  Json deep = 1;
  for (int i = 0; i < kMaxJsonDepth; ++i) deep = Json{{"a", std::move(deep)}};
  const absl::StatusOr<Json> again = ParseKubernetesYaml(ToYaml(deep));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, deep);
}

// On a terminal a document shows as what it is, whatever a function answers.
TEST(DocumentTest, NoCharacterThatATerminalObeysIsPrinted) {
  std::vector<std::string> hostile = {
      "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa",
      "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9", "\x7f"};
  for (char c = 1; c < ' '; ++c) hostile.emplace_back(1, c);
  for (int c = 0x80; c < 0xa0; ++c) {
    hostile.push_back({'\xc2', static_cast<char>(c)});
  }
  for (const std::string& one : hostile) {
    for (const char* frame :
         {"$", "a$b", "$\n", "a\n$b\n", "'\"$: #", "\xc3\xa9$"}) {
      const std::string text = absl::StrReplaceAll(frame, {{"$", one}});
      const Json json = {{"key", text}, {text, {text, {{text, 1}}}}};
      const std::string yaml = ToYaml(json);
      const auto back = ParseKubernetesYaml(yaml);
      ASSERT_TRUE(back.ok()) << back.status() << yaml;
      EXPECT_EQ(*back, json) << yaml;
      EXPECT_EQ(Printable(absl::StrReplaceAll(yaml, {{"\n", ""}})),
                absl::StrReplaceAll(yaml, {{"\n", ""}}));
    }
  }
}

// Documents that the reference printed are the same bytes when they are read
// and printed again.
TEST(DocumentTest, DocumentsOfTheReferenceComeOutAsTheyAre) {
  std::vector<fs::path> roots =
      ::fncache::testing::DataFolders({"recorded", "examples"});
  const size_t wanted = 50 * roots.size();
  roots.push_back(::fncache::testing::OwnRecordings());
  size_t seen = 0;
  for (const fs::path& root : roots) {
    for (const auto& file : fs::recursive_directory_iterator(root)) {
      if (file.path().filename() != "want.yaml") continue;
      std::ostringstream text;
      text << std::ifstream(file.path()).rdbuf();
      const auto documents = SplitYamlDocuments(text.str());
      ASSERT_TRUE(documents.ok()) << file << " " << documents.status();
      for (const std::string& document : *documents) {
        const auto json = ParseKubernetesYaml(document);
        ASSERT_TRUE(json.ok()) << file << " " << json.status();
        absl::string_view printed = document;
        absl::ConsumePrefix(&printed, "---\n");  // before the first one
        EXPECT_EQ(ToYaml(*json), printed) << file;
        // A conversion to a Struct and back does not change a byte either.
        EXPECT_EQ(ToYaml(FromStruct(ToStruct(*json))), printed) << file;
        ++seen;
      }
    }
  }
  EXPECT_GE(seen, wanted);
}

}  // namespace
}  // namespace fncache::text
