// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/documents.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/temp_dir.h"

namespace fncache::sdk {
namespace {

using ::testing::ElementsAre;

std::string ErrorOf(absl::string_view text) {
  const auto documents = ReadDocuments(text, "f.yaml");
  return documents.ok() ? "" : std::string(documents.status().message());
}

TEST(DocumentsTest, BrokenYamlIsReportedWithItsLine) {
  EXPECT_EQ(ErrorOf("a: 1\nb: [1, 2\nc: 3\n"),
            "f.yaml:3: did not find expected ',' or ']'");
  EXPECT_EQ(ErrorOf("a: 1\n  b: 2\n"),
            "f.yaml:2: mapping values are not allowed in this context");
  EXPECT_EQ(ErrorOf("a: {b: 1\n"),
            "f.yaml:1: did not find expected ',' or '}'");
  EXPECT_EQ(ErrorOf("a: \"never closed\n\n"),
            "f.yaml:2: found unexpected end of stream");
  EXPECT_EQ(ErrorOf("a: *none\n"),
            "f.yaml:1: unknown anchor 'none' referenced");
  EXPECT_EQ(ErrorOf("{\"a\": 1,\n \"b\": }"), "");  // YAML: null
}

TEST(DocumentsTest, JsonMayEscapeWhatYamlDoesNot) {
  const auto documents =
      ReadDocuments("{\"a\": \"\\ud83d\\ude00\"}\n", "f.json");
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ((*documents->at(0).json)["a"], "\U0001F600");
  EXPECT_EQ(ErrorOf("{\"a\": \"\\ud83d\"}"),
            "f.yaml:1: found invalid Unicode character escape code");
}

TEST(DocumentsTest, LinesCountFromTheFilesStart) {
  EXPECT_EQ(ErrorOf("a: 1\n---\nb: 1\n---\n# one\n\nc: [\n"),
            "f.yaml:7: did not find expected node content");
  EXPECT_EQ(ErrorOf("---\na: 1\n--- \n---\nb: {\n"),
            "f.yaml:5: did not find expected node content");
  EXPECT_EQ(ErrorOf("a: 1\r\n---\r\nb: {\r\n"),
            "f.yaml:3: did not find expected node content");
  EXPECT_EQ(ErrorOf("a: 1\n\n--- b: 2\n"),
            "f.yaml:3: invalid Yaml document separator: b: 2");
}

TEST(DocumentsTest, AnErrorNamesTheLineOfItsValue) {
  const auto documents = ReadDocuments(
      "a: 1\n---\nspec:\n  versions:\n  - name: v1\n  - name: v2\n"
      "    schema: &s\n      x: 1\n  - {name: v3, schema: *s}\n",
      "f.yaml");
  ASSERT_TRUE(documents.ok());
  ASSERT_EQ(documents->size(), 2u);
  const auto line = [&](const DocumentPath& path) {
    return std::string(ErrorAt(documents->at(1), path, "why").message());
  };
  EXPECT_EQ(line({}), "f.yaml:3: why");
  EXPECT_EQ(line({"spec", "versions", "1"}), "f.yaml:6: why");
  EXPECT_EQ(line({"spec", "versions", "1", "schema", "x"}), "f.yaml:8: why");
  EXPECT_EQ(line({"spec", "versions", "2", "schema", "x"}), "f.yaml:8: why");
  // The innermost value around one that is absent.
  EXPECT_EQ(line({"spec", "versions", "1", "none", "x"}), "f.yaml:6: why");
  EXPECT_EQ(line({"none"}), "f.yaml:3: why");
}

TEST(DocumentsTest, EmptyTextsAndCommentsAreNoErrors) {
  for (const char* const text : {"", "\n", "# a\n", "---\n---\n", "null\n"}) {
    EXPECT_EQ(ErrorOf(text), "") << text;
  }
}

TEST(DocumentsTest, AFolderIsReadWithAllBelowIt) {
  const testing::TempDir dir;
  std::filesystem::create_directories(dir.File("b/c"));
  std::filesystem::create_directories(dir.File(".git"));
  for (const char* const name : {"z.yaml", "a.yml", "b/c/x.json", "b/readme.md",
                                 ".hidden.yaml", ".git/x.yaml"}) {
    testing::WriteFile(dir.File(name), "");
  }
  const auto files = FilesAt(dir.path());
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(*files, ElementsAre(dir.File("a.yml"), dir.File("b/c/x.json"),
                                  dir.File("z.yaml")));
  EXPECT_THAT(*FilesAt(dir.File("b/readme.md")),
              ElementsAre(dir.File("b/readme.md")));
}

}  // namespace
}  // namespace fncache::sdk
