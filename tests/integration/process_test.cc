// SPDX-License-Identifier: Apache-2.0
// Tests of the tests' own Process: what it keeps from daemons of the machine.
#include "tests/integration/process.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"

namespace fncache::testing {
namespace {

using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Every command that starts something with its defaults, and how many addresses
// it then has.
TEST(ProcessTest, NothingThatATestStartsTakesADefaultAddress) {
  const TempDir dir;
  WriteFile(dir.File("f.yaml"), "insecure: true\nupstream: 127.0.0.1:1\n");
  const struct {
    std::vector<std::string> arguments;
    std::string program;
    size_t addresses;
  } kCases[] = {
      {{"serve", "--insecure", "--upstream", "127.0.0.1:1"}, FNCACHE_BINARY, 2},
      {{"serve", "--config", dir.File("f.yaml")}, FNCACHE_BINARY, 2},
      {{"-c", "exec \"$0\" serve --insecure --upstream 127.0.0.1:1",
        FNCACHE_BINARY},
       "/bin/sh",
       2},
      {{"function", "--insecure"}, FNCACHE_BINARY, 1}};
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.arguments[1]);
    Process process(test.arguments, {}, test.program);
    ASSERT_TRUE(process.WaitForStderr("listening on ",
                                      static_cast<int>(test.addresses)));
    const std::vector<std::string> addresses = process.Listening();
    EXPECT_THAT(addresses, SizeIs(test.addresses));
    for (const std::string& address : addresses) {
      EXPECT_THAT(address, Not(AnyOf(EndsWith(":9901"), EndsWith(":9443"))));
    }
    EXPECT_THAT(process.Stderr(), Not(HasSubstr("/run/fncache/")));
  }
}

TEST(ProcessTest, AnAddressThatATestNamesStays) {
  const TempDir dir;
  const std::string file = dir.File("f.yaml");
  WriteFile(file,
            "insecure: true\nupstream: 127.0.0.1:1\nadmin: ''\n"
            "listen: \"127.0.0.1:0\"\nadmin_socket: \"" +
                dir.File("sock") + "\"\n");
  Process none({"serve", "--config", file});
  ASSERT_TRUE(
      none.WaitForStderr("serving fncache admin on " + dir.File("sock")));
  EXPECT_THAT(none.Stderr(), Not(HasSubstr("(admin:")));
  Process variable({"serve", "--insecure", "--upstream", "127.0.0.1:1"},
                   {{"FNCACHE_ADMIN", ""}, {"FNCACHE_LISTEN", "127.0.0.1:0"}});
  ASSERT_TRUE(variable.WaitForStderr("listening on "));
  EXPECT_THAT(variable.Stderr(), Not(HasSubstr("(admin:")));
}

}  // namespace
}  // namespace fncache::testing
