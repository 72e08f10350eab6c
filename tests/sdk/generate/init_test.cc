// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/init.h"

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/temp_dir.h"
#include "tests/sdk/generate/compiler.h"
#include "text/kubernetes_yaml.h"

namespace fncache::sdk {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;
using testing::WriteFile;
using text::Json;
using Files = std::map<std::string, std::string>;

Files Made(const InitOptions& options) {
  auto files = MakeProject(options);
  EXPECT_TRUE(files.ok()) << files.status();
  return files.ok() ? *files : Files();
}

std::string ErrorOf(const InitOptions& options) {
  return std::string(MakeProject(options).status().message());
}

TEST(InitTest, AProjectHasItsFiles) {
  const Files files = Made({"/x/hello", "", ""});
  for (const char* const path :
       {".dockerignore", ".gitignore", "CMakeLists.txt", "Dockerfile",
        "README.md", "example/composition.yaml", "example/definition.yaml",
        "example/functions.yaml", "example/xr.yaml", "fn.cc", "fn_test.cc",
        "package/crossplane.yaml", "package/input.yaml"}) {
    EXPECT_EQ(files.count(path), 1u) << path;
  }
  for (const auto& [path, text] : files) {
    EXPECT_THAT(text, Not(::testing::ContainsRegex("@[A-Z_]+@"))) << path;
  }
  EXPECT_EQ(files.at("package/crossplane.yaml"),
            R"(apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-hello
spec:
  capabilities: [composition]
)");
  EXPECT_THAT(files.at("Dockerfile"), HasSubstr("\nUSER 2000:2000\n"));
}

TEST(InitTest, TheNameIsGivenOrTheFolders) {
  const auto name = [](const std::string& folder, const std::string& given) {
    const Files files = Made({folder, given, ""});
    return files.empty()
               ? ""
               : *text::ParseKubernetesYaml(files.at("package/crossplane.yaml"))
                      .value()["metadata"]["name"]
                      .get_ptr<const std::string*>();
  };
  EXPECT_EQ(name("/x/storage", ""), "function-storage");
  EXPECT_EQ(name("/x/function-storage/", ""), "function-storage");
  EXPECT_EQ(name("/x/y", "function-storage"), "function-storage");
  const std::string longest = "function-" + std::string(54, 'a');
  EXPECT_EQ(name("/x/y", longest), longest);
  // `test` is a target of CMake's own, `models` one of the template.
  for (const char* const wrong :
       {"A", "a_b", "-a", "a-", "a b", "9", "a.b", "test", "models", "function",
        "function-", "function--a", "function-A", "function-a-"}) {
    EXPECT_EQ(ErrorOf({"/x", wrong, ""}),
              absl::StrCat("--name: ", wrong,
                           "; accepted: function-NAME, at most 63 of a-z, 0-9 "
                           "and -"));
  }
  EXPECT_THAT(ErrorOf({"/x", longest + "a", ""}), HasSubstr("--name"));
  EXPECT_THAT(ErrorOf({"/x/My Folder", "", ""}),
              HasSubstr("give a name with --name"));
}

// Names of C++ that the template has, or that no function may have.
TEST(InitTest, TheFunctionHasANameOfItsOwn) {
  EXPECT_THAT(Made({"/x", "function-storage-bucket", ""}).at("fn.cc"),
              HasSubstr("void StorageBucket(fn::Context& ctx)"));
  EXPECT_THAT(Made({"/x", "function-input", ""}).at("fn.cc"),
              HasSubstr("void FunctionInput(fn::Context& ctx)"));
  EXPECT_THAT(Made({"/x", "function-9lives", ""}).at("fn.cc"),
              HasSubstr("void Function9lives(fn::Context& ctx)"));
}

TEST(InitTest, AnXrdIsTakenOver) {
  const std::string xrd = FNCACHE_SOURCE_DIR "/tests/data/crds/xrd-v1.yaml";
  const Files files = Made({"/x/db", "", xrd});
  EXPECT_EQ(files.at("example/definition.yaml"), testing::ReadFile(xrd));
  EXPECT_THAT(files.at("fn.cc"),
              HasSubstr("#include "
                        "\"model/org/example/traps/v1alpha1/xdatabase.h\""));
  EXPECT_THAT(files.at("example/composition.yaml"),
              HasSubstr("kind: XDatabase\n"));
  // Fields that the schema requires.
  EXPECT_EQ(files.at("example/xr.yaml"),
            "apiVersion: traps.example.org/v1alpha1\nkind: XDatabase\n"
            "metadata:\n  name: example\nspec:\n  parameters: {}\n");
}

TEST(InitTest, AnXrdThatIsWrongIsReported) {
  const TempDir dir;
  const std::string file = dir.File("f.yaml");
  EXPECT_THAT(ErrorOf({"/x/y", "", file}), HasSubstr("No such file"));
  WriteFile(file, "a: [\n");
  EXPECT_EQ(ErrorOf({"/x/y", "", file}),
            absl::StrCat(file, ":1: did not find expected node content"));
  WriteFile(file, "kind: ConfigMap\n");
  EXPECT_EQ(ErrorOf({"/x/y", "", file}),
            absl::StrCat(file,
                         ": has no CompositeResourceDefinition (v1, v2) "
                         "with a version that is served"));
}

TEST(InitTest, AFolderThatIsNotEmptyStaysAsItIs) {
  const TempDir dir;
  WriteFile(dir.File("mine"), "x");
  EXPECT_EQ(Init({dir.path(), "function-a", ""}).message(),
            absl::StrCat(dir.path(), ": is not empty: nothing is written"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()),
                          std::filesystem::directory_iterator()),
            1);
  std::filesystem::remove(dir.File("mine"));
  EXPECT_TRUE(Init({dir.path(), "function-a", ""}).ok());
  EXPECT_TRUE(Init({dir.File("new/folder"), "", ""}).ok());
  EXPECT_TRUE(std::filesystem::exists(dir.File("new/folder/fn.cc")));
  WriteFile(dir.File("file"), "x");
  EXPECT_FALSE(Init({dir.File("file"), "", ""}).ok());
}

}  // namespace
}  // namespace fncache::sdk
