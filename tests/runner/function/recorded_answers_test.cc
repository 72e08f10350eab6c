// SPDX-License-Identifier: Apache-2.0
// The responses of `fncache function` are those of before it was a function of
// the SDK: tests/data/templates has digests of what its last version without
// the SDK answered.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/file.h"
#include "common/sha256.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "runner/function/template_function.h"
#include "tests/common/test_data.h"
#include "tests/runner/function/random_template.h"
#include "tests/runner/function/respond.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::function {
namespace {

namespace fs = std::filesystem;
namespace fn = apiextensions::fn::proto::v1;

constexpr int kTemplates = 2000;

// Requirements, fault (of the SDK or the template), or what is rendered.
char KindOf(const fn::RunFunctionRequest& request,
            const fn::RunFunctionResponse& response) {
  for (const auto& result : response.results()) {
    if (result.severity() == fn::SEVERITY_FATAL) return 'F';
  }
  for (const auto& one : response.requirements().resources()) {
    if (request.required_resources().count(one.first) == 0) return 'R';
  }
  return 'O';
}

// A letter and 16 hexadecimal digits: enough to tell responses apart, and few
// enough to be stored.
std::string Digest(const fn::RunFunctionRequest& request) {
  const fn::RunFunctionResponse response =
      Respond(TemplateFunction({}), request);
  return absl::StrCat(
      std::string(1, KindOf(request, response)), " ",
      Sha256Hex(text::DeterministicBytes(response)).substr(0, 16));
}

// By name of the request: a seed, or a file of tests/data/recorded.
std::map<std::string, fn::RunFunctionRequest> Requests() {
  std::map<std::string, fn::RunFunctionRequest> requests;
  for (int seed = 0; seed < kTemplates; ++seed) {
    requests[absl::StrCat(10000 + seed)] = RandomTemplate(seed);
  }
  const fs::path folder = ::fncache::testing::OwnRecordings();
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    const std::string path = file.path().string();
    if (!absl::EndsWith(path, ".req.bin")) continue;
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(
        requests[fs::relative(path, folder).string()].ParseFromIstream(&in))
        << path;
  }
  return requests;
}

// With FNCACHE_TEST_REGENERATE in the environment the file is written: do that
// with an implementation that is known to be right.
TEST(RecordedAnswersTest, TemplatesAnswerAsBefore) {
  const std::string file =
      absl::StrCat(FNCACHE_SOURCE_DIR, "/tests/data/templates/answers.txt");
  const char* const regenerate = std::getenv("FNCACHE_TEST_REGENERATE");
  std::map<std::string, std::string> before;
  if (regenerate == nullptr) {
    const auto text = ReadSmallFile(file, 1 << 20);
    ASSERT_TRUE(text.ok()) << text.status();
    for (const absl::string_view line :
         absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
      before.insert(absl::StrSplit(line, absl::MaxSplits(' ', 1)));
    }
  }
  std::string now;
  std::map<char, int> kinds;
  const auto requests = Requests();
  for (const auto& [name, request] : requests) {
    const std::string digest = Digest(request);
    ++kinds[digest[0]];
    absl::StrAppend(&now, name, " ", digest, "\n");
    if (regenerate == nullptr) {
      EXPECT_EQ(digest, before[name]) << name;
    }
  }
  EXPECT_EQ(before.size(), regenerate == nullptr ? requests.size() : 0);
  // The templates must be worth the comparison.
  EXPECT_GT(kinds['O'], kTemplates / 2);
  EXPECT_GT(kinds['F'], kTemplates / 5);
  EXPECT_GT(kinds['R'], kTemplates / 100);
  if (regenerate != nullptr) std::ofstream(file, std::ios::binary) << now;
}

}  // namespace
}  // namespace fncache::runner::function
