// SPDX-License-Identifier: Apache-2.0
// The functions of examples/sdk, rendered until nothing changes any more. Each
// call observes what the call before rendered, with what a provider writes into
// it. tests/data/examples has the inputs and the documents of each call.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/temp_dir.h"
#include "tests/integration/example_function.h"
#include "tests/integration/internal_render.h"
#include "tests/integration/process.h"
#include "text/json.h"
#include "text/kubernetes_yaml.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;
using crossplane::render::v1alpha1::RenderResponse;
using text::FromStruct;
using text::Json;
using Documents = std::vector<Json>;

Documents Parse(const std::string& yaml) {
  Documents documents;
  const auto all = text::SplitYamlDocuments(yaml);
  EXPECT_TRUE(all.ok()) << all.status();
  for (const std::string& one : *all) {
    documents.push_back(*text::ParseKubernetesYaml(one));
  }
  return documents;
}

// The name that a function gave the resource; "" for other documents.
std::string NameOf(const Json& document) {
  const Json* const metadata = text::Find(document, {"metadata"});
  if (metadata == nullptr || !metadata->contains("annotations")) return "";
  return (*metadata)["annotations"].value(
      "crossplane.io/composition-resource-name", "");
}

// For comparisons: the order of resources and results is not the functions'.
std::string Text(Documents documents) {
  std::sort(documents.begin() + 1, documents.end());
  return absl::StrJoin(documents, "\n", [](std::string* out, const Json& one) {
    out->append(one.dump(2));
  });
}

// Crossplane's own command; "" where there is none.
std::string CrossplaneCommand() {
  const char* const named = std::getenv("CROSSPLANE_CLI");
  if (named != nullptr) return named;
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : std::vector<std::string>(absl::StrSplit(
           path == nullptr ? "" : path, ':', absl::SkipEmpty()))) {
    const std::string file = folder + "/crossplane";
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

class SdkExampleTest : public ::testing::TestWithParam<const char*> {
 protected:
  SdkExampleTest()
      : recorded_(fs::path(FNCACHE_SOURCE_DIR) / "tests/data/examples" /
                  GetParam()) {
    fs::copy(recorded_, dir_.path(), fs::copy_options::recursive);
    std::string functions;
    const Json composition = LoadFile(recorded_ / "composition.yaml");
    for (const Json& step : composition["spec"]["pipeline"]) {
      const std::string name = step["functionRef"]["name"];
      auto& function = functions_[name];
      function = std::make_unique<ExampleFunction>(
          std::string(absl::StripPrefix(name, "function-")));
      absl::StrAppend(&functions,
                      "---\napiVersion: pkg.crossplane.io/v1\nkind: Function\n",
                      "metadata:\n  name: ", name, "\n  annotations:\n",
                      "    render.crossplane.io/runtime: Development\n",
                      "    render.crossplane.io/runtime-development-target: ",
                      function->address(), "\n");
    }
    WriteFile(dir_.File("functions.yaml"), functions);
  }

  // Calls `render` as often as there are recorded documents.
  void ExpectRecorded(const std::function<Documents()>& render) {
    std::set<std::string> before;
    int call = 1;
    for (;; ++call) {
      const fs::path file = recorded_ / absl::StrCat("call-", call, ".yaml");
      if (!fs::exists(file)) break;
      SCOPED_TRACE(file.string());
      const Documents documents = render();
      if (!skip_.empty()) return;
      ASSERT_FALSE(documents.empty());
      EXPECT_EQ(Text(documents), Text(Parse(ReadAll(file))));
      // No resource of the call before is left out.
      std::set<std::string> names;
      for (const Json& one : documents) names.insert(NameOf(one));
      EXPECT_TRUE(std::includes(names.begin(), names.end(), before.begin(),
                                before.end()));
      before = std::move(names);
      Observe(documents, call);
    }
    EXPECT_GT(call, 1) << "no documents in " << recorded_;
  }

  // `program` with the arguments of `crossplane render`.
  Documents Command(const std::string& program,
                    const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"render"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(),
                     {dir_.File("xr.yaml"), dir_.File("composition.yaml"),
                      dir_.File("functions.yaml"), "--include-full-xr",
                      "--include-function-results"});
    for (const auto& [flag, file] :
         {std::pair("--observed-resources", "observed.yaml"),
          std::pair("--required-resources", "required.yaml"),
          std::pair("--function-credentials", "credentials.yaml"),
          std::pair("--required-schemas", "schemas")}) {
      if (!fs::exists(dir_.File(file))) continue;
      arguments.insert(arguments.end(), {flag, dir_.File(file)});
    }
    Process process(arguments, {}, program);
    const int code = process.Wait();
    const std::string error = process.Stderr();
    if (code != 0 &&
        absl::StrContains(absl::AsciiStrToLower(error), "docker")) {
      skip_ = absl::StrCat(program, " cannot start its engine in Docker");
    } else {
      EXPECT_EQ(code, 0) << error;
    }
    return Parse(process.Stdout());
  }

  // `fncache internal render` of the same files.
  Documents Engine() {
    const Ended ended = InternalRender(
        CaseRequest(dir_.path(), [this](const std::string& name) {
          return functions_.at(name)->address();
        }));
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    RenderResponse response;
    EXPECT_TRUE(response.ParseFromString(ended.out));
    Documents documents = {LoadFile(dir_.File("xr.yaml"))};
    text::MergeInto(&documents[0],
                    FromStruct(response.composite().composite_resource()));
    for (const auto& resource : response.composite().composed_resources()) {
      documents.push_back(FromStruct(resource));
    }
    for (Json& one : documents) FixTimes(&one);
    for (const auto& event : response.composite().events()) {
      documents.push_back({{"apiVersion", "render.crossplane.io/v1beta1"},
                           {"kind", "Result"},
                           {"severity", event.type()},
                           {"reason", event.reason()},
                           {"message", event.message()}});
    }
    return documents;
  }

  void ExpectRecordedOfCrossplane(const std::vector<std::string>& flags) {
    const std::string command = CrossplaneCommand();
    if (command.empty()) {
      skip_ = "no crossplane in $PATH, and $CROSSPLANE_CLI names none";
    } else {
      ExpectRecorded([&] { return Command(command, flags); });
    }
  }

  std::string skip_;  // why nothing was compared

 private:
  // The files of the next call.
  void Observe(const Documents& documents, int call) {
    WriteFile(dir_.File("xr.yaml"), documents[0].dump());
    std::map<std::string, Json> provided;
    const std::string own = absl::StrCat("provider-", call, ".yaml");
    const fs::path file =
        recorded_ / (fs::exists(recorded_ / own) ? own : "provider.yaml");
    if (fs::exists(file)) {
      for (const Json& one : Parse(ReadAll(file))) provided[NameOf(one)] = one;
    }
    std::string observed;
    for (Json one : documents) {
      const std::string name = NameOf(one);
      if (name.empty()) continue;
      if (provided.count(name) > 0) text::MergeInto(&one, provided[name]);
      absl::StrAppend(&observed, "---\n", one.dump(), "\n");
    }
    if (!observed.empty()) WriteFile(dir_.File("observed.yaml"), observed);
  }

  const fs::path recorded_;
  const TempDir dir_;
  std::map<std::string, std::unique_ptr<ExampleFunction>> functions_;
};

TEST_P(SdkExampleTest, RenderGivesTheRecordedDocuments) {
  ExpectRecorded([this] { return Command(FNCACHE_BINARY); });
}

TEST_P(SdkExampleTest, InternalRenderGivesTheRecordedDocuments) {
  ExpectRecorded([this] { return Engine(); });
}

// Its engine is the one that $CROSSPLANE names, else its own.
TEST_P(SdkExampleTest, CrossplaneGivesTheRecordedDocuments) {
  const char* const engine = std::getenv("CROSSPLANE");
  ExpectRecordedOfCrossplane(
      engine == nullptr
          ? std::vector<std::string>()
          : std::vector<std::string>{"--crossplane-binary", engine});
  if (!skip_.empty()) GTEST_SKIP() << skip_;
}

TEST_P(SdkExampleTest, CrossplaneWithThisEngineGivesTheRecordedDocuments) {
  ExpectRecordedOfCrossplane(
      {"--crossplane-binary", fs::absolute(FNCACHE_BINARY).string()});
  if (!skip_.empty()) GTEST_SKIP() << skip_;
}

INSTANTIATE_TEST_SUITE_P(Examples, SdkExampleTest,
                         ::testing::Values("hello", "network", "shared",
                                           "checked", "storage"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace fncache::testing
