// SPDX-License-Identifier: Apache-2.0
// `fncache demo` as `make demo` runs it.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string Text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The values in the line that begins with `label`.
std::vector<double> Row(const std::string& printed, const std::string& label) {
  std::vector<double> values;
  const size_t at = printed.find("\n" + label);
  if (at == printed.npos) return values;
  const size_t from = at + 1 + label.size();
  const std::string line =
      printed.substr(from, printed.find('\n', from) - from);
  for (const absl::string_view word :
       absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    double value;
    if (absl::SimpleAtod(word, &value)) values.push_back(value);
  }
  return values;
}

TEST(DemoHeavyTest, WhatItClaimsHoldsAndItsReportIsLeft) {
  const TempDir dir;
  const std::string out = dir.path() + "/made/demo";
  // The files of an earlier demo are replaced.
  fs::create_directories(out + "/trace");
  std::ofstream(out + "/trace/old") << "x";
  std::ofstream(out + "/report.html") << "x";
  Process demo({"demo", "--out", out});
  // It takes 60 s alone. ctest gives a test 300 s.
  EXPECT_EQ(demo.Wait(absl::Seconds(290)), 0) << demo.Stderr();
  EXPECT_EQ(demo.Stderr(), "");
  // Heartbeats, without settings and with `tune: on`.
  const std::vector<double> hit_rate = Row(demo.Stdout(), "   hit rate  ");
  ASSERT_EQ(hit_rate.size(), 2u) << demo.Stdout();
  EXPECT_LT(hit_rate[0], 10);
  EXPECT_GT(hit_rate[1], 40);
  const std::vector<double> questions = Row(demo.Stdout(), "   questions  ");
  const std::vector<double> proven =
      Row(demo.Stdout(), "   answers that were proven  ");
  ASSERT_TRUE(questions.size() == 2 && proven.size() == 2) << demo.Stdout();
  EXPECT_EQ(questions[0], 0);
  EXPECT_EQ(proven[0], 0);
  // Ten composites with two steps, and four questions for each proof.
  EXPECT_GE(proven[1], 10);
  EXPECT_GE(questions[1], 4 * proven[1]);
  // It ends with why calls missed and the mask that ended that.
  EXPECT_THAT(
      demo.Stdout(),
      HasSubstr("observed.resources.*.resource.metadata.resourceVersion"));
  EXPECT_THAT(demo.Stdout(), HasSubstr("100.0 %  with these masks\n"));
  EXPECT_THAT(demo.Stdout(), HasSubstr("Everything that was claimed held."));
  const Json without = Json::parse(Text(out + "/without-mask.json"));
  const Json with = Json::parse(Text(out + "/with-mask.json"));
  EXPECT_LT(without.at("hit_rate").get<double>(), 0.2);
  EXPECT_GT(with.at("hit_rate").get<double>(), 0.9);
  EXPECT_THAT(Text(out + "/report.html"), HasSubstr("<!DOCTYPE html>"));
  EXPECT_FALSE(fs::exists(out + "/trace/old"));
}

TEST(DemoTest, AFolderThatCannotBeMadeIsSaid) {
  const TempDir dir;
  std::ofstream(dir.path() + "/file") << "x";
  Process demo({"demo", "--out", dir.path() + "/file/sub"});
  EXPECT_EQ(demo.Wait(), 1);
  EXPECT_EQ(demo.Stderr(),
            absl::StrCat("fncache demo: --out: cannot make ", dir.path(),
                         "/file/sub: Not a directory\n"));
  Process on_file({"demo", "--out", dir.path() + "/file"});
  EXPECT_EQ(on_file.Wait(), 1);
  EXPECT_THAT(on_file.Stderr(), HasSubstr("--out: cannot"));
}

}  // namespace
}  // namespace fncache::testing
