// SPDX-License-Identifier: Apache-2.0
// `fncache render` on real cases: a composite, its Composition and what exists,
// with the requests that the reference runner (Crossplane v2.4) sent to real
// functions, what those answered, and what its command line printed.
//
// `fncache function --recorded` answers a request only if it equals a recorded
// one as a message, so that a case ends as recorded only if all requests do.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_data.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The project's own cases, and the larger folders where they are present.
std::vector<fs::path> Cases() {
  std::vector<fs::path> cases;
  for (const fs::path& folder : {OwnRecordings(), DataFolder() / "recorded",
                                 DataFolder() / "examples"}) {
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (fs::exists(entry.path() / "args")) cases.push_back(entry.path());
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::vector<std::string> Words(const std::string& text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
}

// The names behind every `functionRef` of a Composition, and what `--function`
// would be given: read off its text, so that no parser of ours is trusted here.
std::set<std::string> FunctionsOf(const std::string& composition) {
  std::set<std::string> names;
  const std::vector<std::string> lines = absl::StrSplit(composition, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!absl::StrContains(lines[i], "functionRef:")) continue;
    // In flow style on the line, in block style on the next.
    const std::string text =
        absl::StrCat(lines[i], " ", i + 1 < lines.size() ? lines[i + 1] : "");
    const size_t at = text.find("name:");
    if (at == std::string::npos) continue;
    std::string name = text.substr(at + std::string("name:").size());
    name = name.substr(0, name.find_first_of("}#"));
    absl::StripAsciiWhitespace(&name);
    names.insert(name);
  }
  return names;
}

std::string FunctionsYaml(const std::set<std::string>& names,
                          const std::string& target) {
  std::string yaml;
  for (const std::string& name : names) {
    absl::StrAppend(
        &yaml, "---\napiVersion: pkg.crossplane.io/v1\nkind: Function\n",
        "metadata:\n  name: ", name, "\n  annotations:\n",
        "    render.crossplane.io/runtime: Development\n",
        "    render.crossplane.io/runtime-development-target: ", target, "\n");
  }
  return yaml;
}

std::vector<std::string> Documents(const std::string& yaml) {
  return absl::StrSplit(yaml, "---\n", absl::SkipEmpty());
}

// Results that the reference runner gives in random order.
bool IsUnordered(const std::string& document) {
  return absl::StrContains(document, "\nkind: Result\n") &&
         (absl::StrContains(document, "is not yet ready") ||
          absl::StrContains(document, "NamespaceOverridden"));
}

// `documents` with those Results sorted among their positions.
std::vector<std::string> Normalized(std::vector<std::string> documents) {
  std::vector<std::string> unordered;
  for (const std::string& document : documents) {
    if (IsUnordered(document)) unordered.push_back(document);
  }
  std::sort(unordered.begin(), unordered.end());
  auto next = unordered.begin();
  for (std::string& document : documents) {
    if (IsUnordered(document)) document = *next++;
  }
  return documents;
}

// Returns the text after the last `crossplane: error: `.
std::string LastError(const std::string& text) {
  const std::string kLeader = "crossplane: error: ";
  const size_t at = text.rfind(kLeader);
  return at == std::string::npos ? text : text.substr(at + kLeader.size());
}

class RenderCaseTest : public ::testing::TestWithParam<fs::path> {};

TEST_P(RenderCaseTest, SendsPrintsAndEndsAsTheReferenceRunner) {
  const fs::path folder = GetParam();
  std::vector<std::string> arguments = {
      "function",   "--recorded", (folder / "calls").string(),
      "--insecure", "--listen",   "127.0.0.1:0",
      "--log-calls"};
  for (const char* mask :
       {"observed.composite.resource.status.conditions.*.lastTransitionTime"}) {
    arguments.push_back("--mask");
    arguments.push_back(mask);
  }
  Process function(arguments);
  ASSERT_TRUE(function.WaitForStderr("listening on "));

  TempDir dir;
  const std::string functions = dir.path() + "/functions.yaml";
  std::ofstream(functions) << FunctionsYaml(
      FunctionsOf(ReadAll(folder / "composition.yaml")),
      function.Listening().at(0));

  std::vector<std::string> render = {"render"};
  for (const std::string& word : Words(ReadAll(folder / "args"))) {
    if (word == "functions.yaml") {
      render.push_back(functions);
    } else if (fs::exists(folder / word)) {
      render.push_back((folder / word).string());
    } else {
      render.push_back(word);
    }
  }
  Process process(render);
  const int code = process.Wait();
  const std::string printed = process.Stdout();
  const std::string said = process.Stderr();

  int want_code = -1;
  std::string want_text = ReadAll(folder / "want.rc");
  absl::StripAsciiWhitespace(&want_text);
  ASSERT_TRUE(absl::SimpleAtoi(want_text, &want_code));
  EXPECT_EQ(code, want_code) << said;

  const std::string want_error = ReadAll(folder / "want.err");
  EXPECT_EQ(LastError(said), LastError(want_error));
  EXPECT_EQ(said.empty(), want_error.empty());

  const std::vector<std::string> got = Normalized(Documents(printed));
  const std::vector<std::string> want =
      Normalized(Documents(ReadAll(folder / "want.yaml")));
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    EXPECT_EQ(got[i], want[i]) << "document " << i + 1;
  }
  EXPECT_EQ(got.size(), want.size());

  // Every recorded request was sent, each once, and no other.
  int recorded = 0;
  for (const auto& file : fs::directory_iterator(folder / "calls")) {
    recorded += absl::EndsWith(file.path().string(), ".req.bin") ? 1 : 0;
  }
  function.Signal(SIGTERM);
  EXPECT_EQ(function.Wait(), 0);
  EXPECT_THAT(function.Stderr(),
              HasSubstr(absl::StrCat("calls=", recorded, " answered=", recorded,
                                     " failed=0")));
}

std::string CaseName(const ::testing::TestParamInfo<fs::path>& info) {
  std::string name = absl::StrCat(
      info.param.parent_path().parent_path().parent_path().filename() == "tests"
          ? "own"
          : info.param.parent_path().filename().string(),
      "_", info.param.filename().string());
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, RenderCaseTest, ::testing::ValuesIn(Cases()),
                         CaseName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RenderCaseTest);

}  // namespace
}  // namespace fncache::testing
