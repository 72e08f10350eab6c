// SPDX-License-Identifier: Apache-2.0
#include "runner/render/inputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runner/render/context_steps.h"
#include "tests/common/temp_dir.h"
#include "tests/runner/messages.h"

namespace fncache::runner::render {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr char kXr[] =
    "apiVersion: ex.org/v1\nkind: XR\nmetadata: {name: a, namespace: n}\n";
constexpr char kComposition[] =
    R"(apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: c}
spec:
  compositeTypeRef: {apiVersion: ex.org/v1, kind: XR}
  mode: Pipeline
  pipeline:
  - step: s
    functionRef: {name: f}
)";

class RenderInputsTest : public ::testing::Test {
 protected:
  RenderInputsTest() {
    flags_.composite = File("xr.yaml", kXr);
    flags_.composition = File("c.yaml", kComposition);
    flags_.targets = {{"f", "h:1"}};
  }

  std::string File(const std::string& name, const std::string& text) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  RenderInputs Load() {
    auto inputs = LoadRenderInputs(flags_);
    EXPECT_TRUE(inputs.ok()) << inputs.status();
    return inputs.ok() ? *std::move(inputs) : RenderInputs();
  }
  std::string Error() {
    return std::string(LoadRenderInputs(flags_).status().message());
  }

  testing::TempDir dir_;
  RenderFlags flags_;
};

TEST_F(RenderInputsTest, LoadsWhatTheFlagsName) {
  flags_.observed = File("o.yaml", "kind: O\n---\nkind: P\n");
  flags_.required = {File("e.yaml", "kind: E\n"), File("e2.yaml", "kind: F\n")};
  flags_.extra = {File("e3.yaml", "kind: G\n")};
  flags_.credentials = File("s.yaml", "metadata: {name: s}\n");
  const RenderInputs inputs = Load();
  ASSERT_EQ(inputs.composites.size(), 1u);
  EXPECT_EQ((*inputs.composites[0].object)["kind"], "XR");
  ASSERT_NE(inputs.composites[0].observed, nullptr);
  EXPECT_EQ(inputs.composites[0].observed->size(), 2u);
  ASSERT_EQ(inputs.required->size(), 3u);
  ExpectJson((*inputs.required)[2], R"({"kind": "G"})");
  EXPECT_EQ(inputs.credentials->size(), 1u);
  EXPECT_EQ(inputs.schemas, nullptr);
  ASSERT_EQ(inputs.functions.size(), 1u);
  EXPECT_EQ(inputs.functions[0].target, "h:1");
  EXPECT_EQ(inputs.composition->steps.size(), 1u);
}

TEST_F(RenderInputsTest, ErrorsSayWhatCouldNotBeLoadedAndWhereOnce) {
  const std::string gone = dir_.path() + "/gone.yaml";
  const struct {
    std::string* path;
    const char* what;
  } kCases[] = {
      {&flags_.composite, "composite resource"},
      {&flags_.composition, "Composition"},
      {&flags_.functions, "functions"},
      {&flags_.definition, "XRD"},
      {&flags_.credentials, "secrets"},
      {&flags_.observed, "observed composed resources"},
      {&flags_.schemas, "required schemas"},
  };
  for (const auto& test : kCases) {
    const std::string before = *test.path;
    *test.path = gone;
    const std::string error = Error();
    EXPECT_THAT(error, StartsWith(absl::StrCat("cannot load ", test.what,
                                               " from \"", gone, "\": ")));
    *test.path = before;
  }
  flags_.required = {gone};
  EXPECT_THAT(Error(), StartsWith("cannot load required resources from"));
  flags_.required.clear();
  flags_.extra = {gone};
  EXPECT_THAT(Error(), StartsWith("cannot load extra resources from"));
}

TEST_F(RenderInputsTest, AMessageOfTheLoaderDoesNotNameTheFileAgain) {
  flags_.composition = File("wrong.yaml",
                            "apiVersion: v1\nkind: Pod\n"
                            "metadata: {name: p}\n");
  EXPECT_EQ(Error(),
            absl::StrCat("cannot load Composition from \"", flags_.composition,
                         "\": not a composition: Pod/p"));
}

TEST_F(RenderInputsTest, ACompositionOfAnotherTypeIsRefused) {
  flags_.composite = File("xr.yaml", "apiVersion: ex.org/v1\nkind: YR\n");
  EXPECT_EQ(Error(),
            "composition's compositeTypeRef.kind (XR) does not match XR's kind "
            "(YR)");
}

TEST_F(RenderInputsTest, WithoutFunctionsTargetsAreNeeded) {
  flags_.targets.clear();
  EXPECT_THAT(Error(), StartsWith("functions argument is required"));
}

TEST_F(RenderInputsTest, OfTwoTargetsForAFunctionTheLastCounts) {
  flags_.targets = {{"f", "first:1"}, {"g", "g:1"}, {"f", "last:1"}};
  std::vector<std::string> targets;
  for (const auto& one : Load().functions) targets.push_back(one.target);
  EXPECT_THAT(targets, UnorderedElementsAre("last:1", "g:1"));
}

TEST_F(RenderInputsTest, ContextValuesWinOverFilesAndAreYaml) {
  flags_.context_files = {{"a", File("a.yaml", "from: file\n")},
                          {"b", File("b.json", "[1, null]")}};
  flags_.context_values = {{"a", "{from: value}"}, {"c", ""}, {"d", "yes"}};
  const RenderInputs inputs = Load();
  ExpectJson(inputs.context,
             R"({"a": {"from": "value"}, "b": [1, null], "c": null,
                 "d": true})");
  ASSERT_EQ(inputs.composition->steps.size(), 2u);
  EXPECT_EQ(inputs.composition->steps[0].name, kSeedStep);
}

TEST_F(RenderInputsTest, ContextMayComeFromAPipe) {
  const std::string pipe = dir_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "[1, 2]\n"; });
  flags_.context_files = {{"a", pipe}};
  const RenderInputs inputs = Load();
  writer.join();
  ExpectJson(inputs.context, R"({"a": [1, 2]})");
}

TEST_F(RenderInputsTest, ContextThatCannotBeReadNamesItsKey) {
  flags_.context_files = {{"k", dir_.path() + "/gone"}};
  EXPECT_THAT(Error(), StartsWith("cannot build context data: cannot read "
                                  "context value for key \"k\": "));
  flags_.context_files.clear();
  flags_.context_values = {{"k", "{"}};
  EXPECT_THAT(Error(), StartsWith("cannot parse context data: cannot unmarshal "
                                  "context value for key \"k\": "));
}

TEST_F(RenderInputsTest, IncludingTheContextAddsTheStepThatReadsIt) {
  flags_.include_context = true;
  const RenderInputs inputs = Load();
  ASSERT_EQ(inputs.composition->steps.size(), 2u);
  EXPECT_EQ(inputs.composition->steps[1].name, kCaptureStep);
}

TEST_F(RenderInputsTest, AllTakesEveryDocumentInTheOrderOfFiles) {
  std::filesystem::create_directory(dir_.path() + "/xrs");
  const auto xr = [](const std::string& name) {
    return absl::StrCat(
        "apiVersion: ex.org/v1\nkind: XR\nmetadata: {name: ", name, "}\n");
  };
  File("xrs/b.yaml", xr("b"));
  File("xrs/a.yml",
       absl::StrCat("# comment\n---\n", xr("a1"), "---\n", xr("a2")));
  File("xrs/notes.txt", "none");
  flags_.composite.clear();
  flags_.all = {dir_.path() + "/xrs", File("last.yaml", xr("z"))};
  const RenderInputs inputs = Load();
  std::vector<std::string> names;
  for (const auto& one : inputs.composites) {
    EXPECT_TRUE(one.status.ok()) << one.status;
    names.push_back((*one.object)["metadata"]["name"]);
  }
  EXPECT_THAT(names, ElementsAre("a1", "a2", "b", "z"));
  EXPECT_THAT(inputs.composites[1].where, HasSubstr("a.yml (document "));
}

TEST_F(RenderInputsTest, OfAllOneThatDoesNotFitLeavesTheOthers) {
  std::filesystem::create_directory(dir_.path() + "/xrs");
  File("xrs/1.yaml", "{");
  File("xrs/2.yaml", "apiVersion: ex.org/v1\nkind: Other\n");
  File("xrs/3.yaml", kXr);
  flags_.composite.clear();
  flags_.all = {dir_.path() + "/xrs"};
  const RenderInputs inputs = Load();
  ASSERT_EQ(inputs.composites.size(), 3u);
  EXPECT_THAT(std::string(inputs.composites[0].status.message()),
              StartsWith("cannot load composite resource from"));
  EXPECT_THAT(std::string(inputs.composites[1].status.message()),
              HasSubstr("does not match XR's kind"));
  EXPECT_TRUE(inputs.composites[2].status.ok());

  flags_.all = {File("comments.yaml", "# none\n")};
  EXPECT_THAT(Error(), HasSubstr("no composite resource"));
}

TEST_F(RenderInputsTest, OfAllAnOperationIsRefused) {
  flags_.composite.clear();
  flags_.all = {
      File("all.yaml", absl::StrCat("apiVersion: ops.crossplane.io/"
                                    "v1alpha1\nkind: Operation\n---\n",
                                    kXr))};
  const RenderInputs inputs = Load();
  ASSERT_EQ(inputs.composites.size(), 2u);
  EXPECT_EQ(inputs.composites[0].status.message(),
            "cannot render operation: not supported, fncache renders composite "
            "resources only");
  EXPECT_TRUE(inputs.composites[1].status.ok());
}

TEST_F(RenderInputsTest, OfAllAFolderThatCannotBeReadIsNamed) {
  const std::string none = dir_.path() + "/none";
  const std::string shut = dir_.path() + "/shut";
  for (const std::string& folder : {none, shut}) {
    std::filesystem::create_directory(folder);
  }
  File("shut/1.yaml", kXr);
  flags_.composite.clear();
  flags_.all = {none, shut, dir_.path() + "/gone", File("xr.yaml", kXr)};
  // A test that runs as root becomes another user, as root can read everything.
  namespace fs = std::filesystem;
  fs::permissions(shut, fs::perms::none);
  fs::permissions(dir_.path(), fs::perms::all);
  const bool all_powerful = geteuid() == 0;
  ASSERT_TRUE(!all_powerful || seteuid(65534) == 0);
  const RenderInputs inputs = Load();
  ASSERT_TRUE(!all_powerful || seteuid(0) == 0);
  fs::permissions(shut, fs::perms::owner_all);
  ASSERT_EQ(inputs.composites.size(), 4u);
  EXPECT_EQ(inputs.composites[0].status.message(),
            absl::StrCat("cannot load composite resource from \"", none,
                         "\": no YAML files found in \"", none,
                         "\" (.yaml or .yml)"));
  EXPECT_EQ(inputs.composites[1].status.message(),
            absl::StrCat("cannot load composite resource from \"", shut,
                         "\": Permission denied"));
  EXPECT_THAT(std::string(inputs.composites[2].status.message()),
              HasSubstr("/gone\": No such file or directory"));
  EXPECT_TRUE(inputs.composites[3].status.ok());
}

TEST_F(RenderInputsTest, OfAllAPipeInAFolderIsNotWaitedFor) {
  std::filesystem::create_directory(dir_.path() + "/xrs");
  File("xrs/1.yaml", kXr);
  ASSERT_EQ(mkfifo((dir_.path() + "/xrs/2.yaml").c_str(), 0600), 0);
  flags_.composite.clear();
  flags_.all = {dir_.path() + "/xrs"};
  const RenderInputs inputs = Load();
  ASSERT_EQ(inputs.composites.size(), 2u);
  EXPECT_TRUE(inputs.composites[0].status.ok());
  EXPECT_THAT(std::string(inputs.composites[1].status.message()),
              HasSubstr("is not a regular file"));
}

TEST_F(RenderInputsTest, OfAllEachGetsTheObservedResourcesOfItsOwn) {
  const auto xr = [](const std::string& name) {
    return absl::StrCat("apiVersion: ex.org/v1\nkind: XR\nmetadata: {name: ",
                        name, ", namespace: n}\n");
  };
  const auto owned = [](const std::string& owner) {
    return absl::StrCat(
        "kind: O\nmetadata: {namespace: n, ownerReferences: [{apiVersion: "
        "ex.org/v1, kind: XR, name: ",
        owner, ", controller: true}]}\n");
  };
  flags_.composite.clear();
  flags_.all = {File("all.yaml", absl::StrCat(xr("a"), "---\n", xr("b")))};
  flags_.observed = File("o.yaml", absl::StrCat(owned("a"), "---\n", owned("b"),
                                                "---\n", owned("b")));
  const RenderInputs inputs = Load();
  ASSERT_EQ(inputs.composites.size(), 2u);
  EXPECT_EQ(inputs.composites[0].observed->size(), 1u);
  EXPECT_EQ(inputs.composites[1].observed->size(), 2u);
}

text::Json Parsed(const std::string& text) {
  text::Json json =
      text::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

TEST(BelongsToTest, GoesByControllerThenLabelThenNothing) {
  const text::Json xr = Parsed(R"({"apiVersion": "ex.org/v1", "kind": "XR",
                             "metadata": {"name": "a"}})");
  const auto belongs = [&xr](const std::string& metadata) {
    return BelongsTo(Parsed(R"({"metadata": )" + metadata + "}"), xr);
  };
  const std::string owner = R"("apiVersion": "ex.org/v1", "kind": "XR")";
  EXPECT_TRUE(belongs(R"({"ownerReferences": [{)" + owner +
                      R"(, "name": "a", "controller": true}]})"));
  EXPECT_FALSE(belongs(R"({"ownerReferences": [{)" + owner +
                       R"(, "name": "b", "controller": true}]})"));
  EXPECT_FALSE(belongs(R"({"ownerReferences": [{"apiVersion": "ex.org/v2",
      "kind": "XR", "name": "a", "controller": true}]})"));
  // Not a controller: the label counts.
  EXPECT_FALSE(belongs(R"({"ownerReferences": [{)" + owner +
                       R"(, "name": "a"}],
                       "labels": {"crossplane.io/composite": "b"}})"));
  EXPECT_TRUE(belongs(R"({"labels": {"crossplane.io/composite": "a"}})"));
  EXPECT_TRUE(belongs("{}"));
}

TEST(BelongsToTest, ANamespacedCompositeHasOnlyWhatIsInItsNamespace) {
  const text::Json xr =
      Parsed(R"({"metadata": {"name": "a", "namespace": "n"}})");
  EXPECT_TRUE(BelongsTo(Parsed(R"({"metadata": {"namespace": "n"}})"), xr));
  EXPECT_FALSE(BelongsTo(Parsed(R"({"metadata": {"namespace": "m"}})"), xr));
  EXPECT_FALSE(BelongsTo(Parsed("{}"), xr));
}

}  // namespace
}  // namespace fncache::runner::render
