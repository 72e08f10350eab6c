// SPDX-License-Identifier: Apache-2.0
// `fncache demo` as `make demo` runs it.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
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

TEST(DemoHeavyTest, WhatItClaimsHoldsAndItsReportIsLeft) {
  const TempDir dir;
  const std::string out = dir.path() + "/made/demo";
  // The files of an earlier demo are replaced.
  fs::create_directories(out + "/trace");
  std::ofstream(out + "/trace/old") << "x";
  std::ofstream(out + "/report.html") << "x";
  Process demo({"demo", "--out", out});
  // It takes 50 s alone. ctest gives a test 300 s.
  EXPECT_EQ(demo.Wait(absl::Seconds(290)), 0) << demo.Stderr();
  EXPECT_EQ(demo.Stderr(), "");
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
