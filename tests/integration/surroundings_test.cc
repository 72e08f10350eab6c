// SPDX-License-Identifier: Apache-2.0
// A process whose surroundings are not as they should be: a full disk behind
// standard output, standard streams that are closed, too few threads.
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

using Arguments = std::vector<std::string>;

// The binary, run by a shell that has redirected it.
struct Redirected {
  Redirected(const Arguments& arguments, const std::string& redirection)
      : process({"-c",
                 absl::StrCat("exec \"$0\" ", absl::StrJoin(arguments, " "),
                              " ", redirection),
                 FNCACHE_BINARY},
                {}, "sh") {}
  Process process;
};

TEST(SurroundingsTest, OutputThatCannotBeWrittenIsAnError) {
  const Arguments kAll[] = {
      {"--help"},
      {"--version"},
      {"help"},
      {"help", "serve"},
      {"help", "--man", "render"},
      {"help", "--help"},
      {"version"},
      {"version", "--help"},
      {"completion", "bash"},
      {"completion", "zsh"},
      {"completion", "fish"},
      {"completion", "--help"},
      {"serve", "--help"},
      {"serve", "--insecure", "--upstream=h:1", "--check"},
      {"function", "--help"},
      {"demo", "--help"},
      {"render", "--help"},
      {"internal", "--help"}};
  for (const Arguments& arguments : kAll) {
    const std::string shown = absl::StrJoin(arguments, " ");
    Redirected full(arguments, ">/dev/full");
    EXPECT_EQ(full.process.Wait(), 1) << shown;
    EXPECT_THAT(full.process.Stderr(),
                MatchesRegex("fncache[^\n]*: cannot write to standard output: "
                             "No space left on device\n"))
        << shown;
    Redirected closed(arguments, ">&-");
    EXPECT_EQ(closed.process.Wait(), 1) << shown;
    EXPECT_THAT(closed.process.Stderr(),
                AnyOf(HasSubstr("it is closed\n"), HasSubstr("no stdout\n")))
        << shown;
  }
}

// No file, socket or database of the daemon's gets the number of a descriptor
// that is closed at the start.
TEST(SurroundingsTest, StandardStreamsThatAreClosedAreFilled) {
#if defined(FNCACHE_ASAN) || defined(FNCACHE_TSAN)
  GTEST_SKIP() << "sanitizers open descriptors of their own";
#endif
  const TempDir dir;
  Redirected closed({"serve", "--insecure", "--upstream=h:1",
                     "--listen=127.0.0.1:0", "--admin=127.0.0.1:0",
                     "--generation=none", "--cache-dir=" + dir.path() + "/c"},
                    "<&- >&-");
  ASSERT_TRUE(closed.process.WaitForStderr("listening on", 2));
  const std::string fds = absl::StrCat("/proc/", closed.process.pid(), "/fd");
  for (const char* fd : {"/0", "/1"}) {
    EXPECT_EQ(std::filesystem::read_symlink(fds + fd), "/dev/null") << fd;
  }
  closed.process.Signal(SIGTERM);
  EXPECT_EQ(closed.process.Wait(), 0);
}

#ifdef FEW_THREADS_LIBRARY

// With every number of threads: one line and exit code 1, or it works.
void ExpectOneLineOrWork(const Arguments& arguments, int threads, bool serves) {
  Process process(
      arguments,
      {{"FEW_THREADS", absl::StrCat(threads)},
       {"LD_PRELOAD", std::filesystem::absolute(FEW_THREADS_LIBRARY)}});
  if (serves && process.WaitForStderr("listening on")) process.Signal(SIGTERM);
  const int code = process.Wait();
  const std::string shown =
      absl::StrCat(arguments[0], " with ", threads, " threads");
  EXPECT_THAT(code, AnyOf(Eq(0), Eq(1))) << shown << process.Stderr();
  if (code == 1) {
    EXPECT_THAT(process.Stderr(),
                MatchesRegex("(fncache [a-z]+|crossplane: error): cannot make "
                             "the [0-9]+ threads that may be needed, only "
                             "[0-9]+;[^\n]*\n"))
        << shown;
    EXPECT_THAT(process.Stdout(), IsEmpty()) << shown;
  }
}

TEST(SurroundingsTest, TooFewThreadsEndInOneLine) {
  const TempDir dir;
  for (int threads = 0; threads < 160; threads += 13) {
    ExpectOneLineOrWork({"serve", "--insecure", "--upstream=h:1",
                         "--listen=127.0.0.1:0", "--admin=127.0.0.1:0",
                         "--generation=none", "--cache-dir=" + dir.path()},
                        threads, /*serves=*/true);
  }
  for (int threads = 0; threads < 50; threads += 7) {
    ExpectOneLineOrWork({"function", "--insecure", "--listen=127.0.0.1:0"},
                        threads, /*serves=*/true);
  }
  for (int threads = 0; threads < 10; threads += 3) {
    ExpectOneLineOrWork({"demo"}, threads, /*serves=*/false);
    ExpectOneLineOrWork({"internal", "render"}, threads, /*serves=*/false);
    ExpectOneLineOrWork({"render", "/dev/null", "/dev/null"}, threads,
                        /*serves=*/false);
  }
}

#endif  // FEW_THREADS_LIBRARY

}  // namespace
}  // namespace fncache::testing
