// SPDX-License-Identifier: Apache-2.0
// scripts/setup on systems that it is not for: it says so and touches nothing.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The exit code of scripts/setup, and what it said, on a system whose
// os-release file is `release`.
int RunSetup(const std::string& release, std::string* said) {
  Process setup({}, {{"FNCACHE_OS_RELEASE", release}},
                FNCACHE_SOURCE_DIR "/scripts/setup");
  const int code = setup.Wait();
  *said = setup.Stderr();
  return code;
}

TEST(SetupScriptTest, AnotherSystemIsNamedAndNothingIsInstalled) {
  const TempDir folder;
  WriteFile(folder.File("os-release"),
            "PRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\nID=ubuntu\n"
            "ID_LIKE=debian\nVERSION_ID=\"24.04\"\n");
  std::string said;
  EXPECT_EQ(RunSetup(folder.File("os-release"), &said), 1);
  EXPECT_THAT(said, HasSubstr("needs Debian 12 (bookworm), and this is Ubuntu "
                              "24.04.1 LTS\n"));
  EXPECT_THAT(said, Not(HasSubstr("installing")));
}

TEST(SetupScriptTest, AnotherReleaseOfDebianIsNamed) {
  const TempDir folder;
  WriteFile(folder.File("os-release"),
            "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nID=debian\n"
            "VERSION_ID=\"13\"\n");
  std::string said;
  EXPECT_EQ(RunSetup(folder.File("os-release"), &said), 1);
  EXPECT_THAT(said, HasSubstr("this is Debian GNU/Linux 13 (trixie)\n"));
}

TEST(SetupScriptTest, ASystemThatSaysNothingOfItselfIsNamedByItsKernel) {
  const TempDir folder;
  std::string said;
  EXPECT_EQ(RunSetup(folder.File("absent"), &said), 1);
  EXPECT_THAT(said, HasSubstr("this is Linux "));
}

}  // namespace
}  // namespace fncache::testing
