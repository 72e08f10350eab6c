// SPDX-License-Identifier: Apache-2.0
#include "runner/render/expect.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"

namespace fncache::runner::render {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::WriteFile;

// As PrintDocuments has it.
constexpr char kRendered[] = "---\nkind: A\nspec:\n  x: 1\n---\nkind: B\n";

class ExpectTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }
  std::string Text(const std::string& name) const {
    std::ifstream file(File(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Expectations::Comparison Compare(bool update,
                                   const std::string& documents = kRendered) {
    Expectations expectations(folder_, update);
    EXPECT_TRUE(expectations.Add("xrs/a.yaml", documents).ok());
    const auto comparison = expectations.Compare();
    EXPECT_TRUE(comparison.ok()) << comparison.status();
    return comparison.ok() ? *comparison : Expectations::Comparison();
  }

  const testing::TempDir dir_;
  const std::string folder_ = dir_.path() + "/expected";
};

TEST_F(ExpectTest, UpdateWritesWhatIsMissingAndItIsThenAsExpected) {
  const auto updated = Compare(/*update=*/true);
  EXPECT_TRUE(updated.as_expected);
  EXPECT_THAT(updated.report, HasSubstr("wrote " + File("a.yaml")));
  EXPECT_EQ(Text("a.yaml"), kRendered);
  const auto compared = Compare(/*update=*/false);
  EXPECT_TRUE(compared.as_expected);
  EXPECT_EQ(compared.differences, "");
  EXPECT_EQ(compared.report, "fncache render: 1 of 1 files as expected\n");
}

TEST_F(ExpectTest, DocumentsAreComparedAndNotTheirStyle) {
  std::filesystem::create_directory(folder_);
  const std::string styled =
      "# kept\nspec: {\"x\": 1}\nkind: 'A'\n---\n# nothing\n---\nkind: B\n";
  WriteFile(File("a.yaml"), styled);
  EXPECT_TRUE(Compare(/*update=*/false).as_expected);
  EXPECT_TRUE(Compare(/*update=*/true).as_expected);
  EXPECT_EQ(Text("a.yaml"), styled);
}

TEST_F(ExpectTest, WhatDiffersIsShownAsADiff) {
  std::filesystem::create_directory(folder_);
  WriteFile(File("a.yaml"), "kind: A\nspec: {x: 2}\n---\nkind: B\n");
  const auto compared = Compare(/*update=*/false);
  EXPECT_FALSE(compared.as_expected);
  EXPECT_EQ(compared.differences,
            absl::StrCat("--- ", File("a.yaml"),
                         "\n+++ xrs/a.yaml\n@@ -1,6 +1,6 @@\n ---\n kind: A\n "
                         "spec:\n-  x: 2\n+  x: 1\n ---\n kind: B\n"));
  EXPECT_TRUE(Compare(/*update=*/true).as_expected);
  EXPECT_EQ(Text("a.yaml"), kRendered);
}

TEST_F(ExpectTest, FilesThatNothingIsRenderedForAreNotAsExpected) {
  Compare(/*update=*/true);
  WriteFile(File("gone.yml"), "kind: C\n");
  WriteFile(File("README.md"), "no YAML");
  for (const bool update : {false, true}) {
    const auto compared = Compare(update);
    EXPECT_FALSE(compared.as_expected);
    EXPECT_THAT(compared.report,
                AllOf(HasSubstr("gone.yml: no file of --all has this name"),
                      Not(HasSubstr("README"))));
  }
  EXPECT_EQ(Text("gone.yml"), "kind: C\n");
}

TEST_F(ExpectTest, WhatCouldNotBeRenderedIsNeitherComparedNorWritten) {
  Expectations expectations(folder_, /*update=*/true);
  ASSERT_TRUE(expectations.Add("a.yaml", kRendered).ok());
  ASSERT_TRUE(expectations.Skip("a.yaml").ok());
  const auto comparison = expectations.Compare();
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_FALSE(comparison->as_expected);
  EXPECT_EQ(Text("a.yaml"), "");
}

TEST_F(ExpectTest, WhatCannotBeReadIsNamed) {
  Expectations expectations(folder_, /*update=*/false);
  ASSERT_TRUE(expectations.Add("xrs/a.yaml", kRendered).ok());
  EXPECT_THAT(std::string(expectations.Compare().status().message()),
              HasSubstr("--expect: " + folder_ + ": "));
  std::filesystem::create_directory(folder_);
  WriteFile(File("a.yaml"), "kind: [\n");
  EXPECT_THAT(std::string(expectations.Compare().status().message()),
              HasSubstr("--expect: " + File("a.yaml") + ": "));
  EXPECT_THAT(std::string(expectations.Add("more/a.yaml", "").message()),
              HasSubstr("xrs/a.yaml and more/a.yaml have one name"));
}

}  // namespace
}  // namespace fncache::runner::render
