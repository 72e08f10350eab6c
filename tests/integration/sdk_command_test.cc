// SPDX-License-Identifier: Apache-2.0
// `fncache sdk` as a process: its report, its errors and its exit codes.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using ::testing::HasSubstr;

class SdkCommandTest : public ::testing::Test {
 protected:
  struct Ended {
    int code = 0;
    std::string out;
    std::string err;
  };
  static Ended Sdk(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "sdk");
    Process process(arguments);
    const int code = process.Wait();
    return {code, process.Stdout(), process.Stderr()};
  }
  void ExpectError(const std::vector<std::string>& arguments, int code,
                   const std::string& error) {
    const Ended ended = Sdk(arguments);
    EXPECT_EQ(ended.code, code);
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.err, absl::StrCat("fncache sdk", error, "\n"));
  }

  const std::string traps_ = FNCACHE_SOURCE_DIR "/tests/data/crds/";
  TempDir dir_;
};

TEST_F(SdkCommandTest, GenerateWritesHeadersAndReports) {
  const std::string out = dir_.File("out");
  const Ended ended = Sdk({"generate", traps_ + "versions.yaml",
                           traps_ + "xrd-v1.yaml", "--out", out});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, absl::StrCat(out, "/model: 5 headers\n"));
  EXPECT_EQ(ended.err, "");
  EXPECT_TRUE(std::filesystem::exists(
      out + "/model/org/example/traps/v1alpha1/xdatabase.h"));
}

TEST_F(SdkCommandTest, AnInputIsAKindOrAFile) {
  const std::string input = traps_ + "input.yaml";
  for (const std::vector<std::string>& given :
       {std::vector<std::string>{input, "--input", "Input"},
        {traps_ + "types.yaml", "--input", input}}) {
    TempDir out;
    std::vector<std::string> arguments = {"generate", "--out", out.path()};
    arguments.insert(arguments.end(), given.begin(), given.end());
    EXPECT_EQ(Sdk(arguments).code, 0);
    EXPECT_THAT(ReadFile(out.File("model/org/example/fn/template_/v1/input.h")),
                HasSubstr("kSchema[]"));
  }
}

TEST_F(SdkCommandTest, WrongDocumentsAreErrorsWithFileAndLine) {
  const std::string out = dir_.File("out");
  const std::string broken = dir_.File("broken.yaml");
  WriteFile(broken, "a: 1\nb: [\n");
  ExpectError({"generate", broken, "--out", out}, 1,
              absl::StrCat(" generate: ", broken,
                           ":2: did not find expected node content"));
  WriteFile(broken, "a: 1\n");
  ExpectError({"generate", dir_.path(), "--out", out}, 1,
              absl::StrCat(" generate: ", dir_.path(),
                           ": no kind is defined: neither by a CRD (v1) nor by "
                           "an XRD (v1, v2) nor by an OpenAPI v3 document"));
  ExpectError({"generate", dir_.File("none"), "--out", out}, 1,
              absl::StrCat(" generate: ", dir_.File("none"),
                           ": No such file or directory"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(SdkCommandTest, OutputThatCannotBeWrittenIsAnError) {
  const std::string file = dir_.File("file");
  WriteFile(file, "");
  const Ended ended = Sdk({"generate", traps_ + "types.yaml", "--out", file});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("fncache sdk generate: cannot write "));
  ExpectError({"init", file}, 1,
              absl::StrCat(" init: cannot write ", file,
                           "/.dockerignore: Not a directory"));
}

TEST_F(SdkCommandTest, InitWritesAProjectOnce) {
  const std::string folder = dir_.File("function-hello");
  const Ended ended = Sdk({"init", folder});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, absl::StrCat(folder, ": see README.md there\n"));
  ExpectError(
      {"init", folder}, 1,
      absl::StrCat(" init: ", folder, ": is not empty: nothing is written"));
}

TEST_F(SdkCommandTest, FlagsThatDoNotFit) {
  ExpectError({}, 2,
              ": a command is missing; accepted: generate, init; see fncache "
              "sdk --help");
  ExpectError({"genrate"}, 2,
              ": command: \"genrate\" is not accepted; did you mean generate?; "
              "accepted: generate, init; see fncache sdk --help");
  ExpectError({"generate", "--ot", "x"}, 2,
              " generate: unknown flag --ot; did you mean --out?; see fncache "
              "sdk generate --help");
  EXPECT_EQ(Sdk({"generate", "--out", "x"}).code, 2);
  EXPECT_EQ(Sdk({"generate", "x.yaml"}).code, 2);
  EXPECT_EQ(Sdk({"init"}).code, 2);
  EXPECT_EQ(Sdk({"init", "a", "b"}).code, 2);
  // As of a variable that is not set.
  ExpectError({"generate", traps_ + "types.yaml", "--out", ""}, 2,
              " generate: --out: must not be empty; see fncache sdk generate "
              "--help");
  ExpectError({"init", "", "--name", "function-a"}, 2,
              " init: DIR: must not be empty; see fncache sdk init --help");
}

}  // namespace
}  // namespace fncache::testing
