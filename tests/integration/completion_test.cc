// SPDX-License-Identifier: Apache-2.0
// Completions in real shells, and pages of the manual in the real formatter.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char* const kCommands[] = {"serve",   "demo",      "function", "render",
                                 "probe",   "advise",    "internal", "help",
                                 "version", "completion"};

std::string Fncache(std::vector<std::string> arguments) {
  Process process(std::move(arguments));
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_EQ(process.Stderr(), "");
  return process.Stdout();
}

bool IsInstalled(const std::string& program) {
  Process process({"-c", "command -v " + program}, {}, "sh");
  return process.Wait() == 0;
}

class CompletionTest : public ::testing::Test {
 protected:
  // Runs a script that finds the completions in $1, and returns the lines that
  // it prints, sorted.
  std::vector<std::string> Run(const std::string& shell,
                               const std::string& script,
                               std::vector<std::string> arguments = {}) {
    const std::string path = dir_.path() + "/fncache." + shell;
    std::ofstream(path) << Fncache({"completion", shell});
    arguments.insert(arguments.begin(), {"-c", script});
    if (shell != "fish") arguments.push_back(shell);  // $0
    arguments.insert(
        shell == "fish" ? arguments.begin() + 2 : arguments.begin() + 3, path);
    Process process(arguments, {}, shell);
    EXPECT_EQ(process.Wait(), 0) << process.Stderr();
    EXPECT_EQ(process.Stderr(), "");
    std::vector<std::string> lines =
        absl::StrSplit(process.Stdout(), '\n', absl::SkipEmpty());
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  // Returns what bash offers for the last of `words`; "fncache" is the first.
  std::vector<std::string> Bash(const std::string& words) {
    return Run("bash",
               "cd " + dir_.path() + "; source \"$1\"; COMP_WORDS=(" + words +
                   "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fncache; "
                   "printf '%s\\n' \"${COMPREPLY[@]}\"");
  }

  std::vector<std::string> Fish(const std::string& line) {
    std::vector<std::string> offered;
    for (const std::string& one :
         Run("fish", "cd " + dir_.path() + "; source $argv[1]; complete -C '" +
                         line + "'")) {
      offered.push_back(one.substr(0, one.find('\t')));
    }
    return offered;
  }

  TempDir dir_;
};

TEST_F(CompletionTest, BashOffersCommandsFlagsAndFiles) {
  if (!IsInstalled("bash")) GTEST_SKIP() << "bash is not installed";
  EXPECT_THAT(Bash("fncache ''"),
              AllOf(Contains("serve"), Contains("render"), Contains("help"),
                    Contains("--version")));
  EXPECT_THAT(Bash("fncache ser"), ElementsAre("serve"));
  EXPECT_THAT(Bash("fncache serve --ups"),
              ElementsAre("--upstream", "--upstream-server-name",
                          "--upstream-tls-dir"));
  EXPECT_THAT(Bash("fncache function --ins"), ElementsAre("--insecure"));
  EXPECT_THAT(Bash("fncache demo --"), ElementsAre("--help", "--out"));
  EXPECT_THAT(Bash("fncache render --include-f"),
              ElementsAre("--include-full-xr", "--include-function-results"));
  EXPECT_THAT(Bash("fncache help rend"), ElementsAre("render"));
  EXPECT_THAT(Bash("fncache completion ''"),
              ElementsAre("bash", "fish", "zsh"));
  EXPECT_THAT(Bash("fncache internal ''"), ElementsAre("render"));
  EXPECT_THAT(Bash("fncache nothing --h"), IsEmpty());

  WriteFile(dir_.path() + "/a b.yaml", "");
  EXPECT_THAT(Bash("fncache serve --config a"), ElementsAre("a b.yaml"));
  EXPECT_THAT(Bash("fncache serve --config = a"), ElementsAre("a b.yaml"));
  EXPECT_THAT(Bash("fncache serve --config ="), Contains("a b.yaml"));
  EXPECT_THAT(Bash("fncache render a"), ElementsAre("a b.yaml"));
  // A value that completion cannot know, and no file.
  EXPECT_THAT(Bash("fncache serve --upstream a"), IsEmpty());
  EXPECT_THAT(Bash("fncache serve a"), IsEmpty());
}

TEST_F(CompletionTest, FishOffersCommandsFlagsAndFiles) {
  if (!IsInstalled("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(Fish("fncache ser"), ElementsAre("serve"));
  EXPECT_THAT(Fish("fncache serve --ups"),
              ElementsAre("--upstream", "--upstream-server-name",
                          "--upstream-tls-dir"));
  EXPECT_THAT(Fish("fncache help rend"), ElementsAre("render"));
  WriteFile(dir_.path() + "/a.yaml", "");
  EXPECT_THAT(Fish("fncache serve --config a"), ElementsAre("a.yaml"));
  EXPECT_THAT(Fish("fncache serve --upstream a"), IsEmpty());
  EXPECT_THAT(Fish("fncache render a"), ElementsAre("a.yaml"));
}

// In a terminal of its own, since only an editor of lines completes. The
// function `fncache` prints the completed line.
constexpr char kZsh[] = R"(
zmodload zsh/zpty
fpath=($PWD $fpath)
zpty shell zsh -f -i
zpty -w shell "PS1=; cd $PWD; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -D; stty -echo; fncache() { print -r -- \"ran:\$*\" }; echo rea''dy"
zpty -r shell seen '*ready*'
zpty -w -n shell "$2"$'\t'
zpty -w shell "; echo d''one"
zpty -r shell seen '*done*'
print -r -- "$seen"
)";

TEST_F(CompletionTest, ZshOffersFlags) {
  if (!IsInstalled("zsh")) GTEST_SKIP() << "zsh is not installed";
  WriteFile(dir_.path() + "/_fncache", Fncache({"completion", "zsh"}));
  const auto offered = [this](const std::string& line) {
    Process process(
        {"-f", "-c", "cd " + dir_.path() + "\n" + kZsh, "zsh", "", line},
        {{"TERM", "dumb"}}, "zsh");
    EXPECT_EQ(process.Wait(), 0) << process.Stderr();
    return process.Stdout();
  };
  EXPECT_THAT(offered("fncache serve --insec"),
              HasSubstr("ran:serve --insecure"));
  EXPECT_THAT(offered("fncache compl"), HasSubstr("ran:completion"));
}

TEST_F(CompletionTest, EveryFlagOffersNothingThatIsNotTaken) {
  const std::string script = Fncache({"completion", "bash"});
  for (const absl::string_view line : absl::StrSplit(script, '\n')) {
    if (!absl::StrContains(line, "flags='--config")) continue;
    std::vector<std::string> flags =
        absl::StrSplit(line.substr(line.find('\'') + 1,
                                   line.rfind('\'') - line.find('\'') - 1),
                       ' ');
    EXPECT_GT(flags.size(), 30u);
    for (const std::string& flag : flags) {
      Process process({"serve", flag});
      process.Wait();
      EXPECT_THAT(process.Stderr(), Not(HasSubstr("unknown flag"))) << flag;
    }
    return;
  }
  FAIL() << "no flags of serve:\n" << script;
}

TEST_F(CompletionTest, UnknownShellsAreRefused) {
  Process process({"completion", "tcsh"});
  EXPECT_EQ(process.Wait(), 2);
  EXPECT_EQ(process.Stderr(),
            "fncache completion: unknown shell \"tcsh\"; accepted: bash, zsh, "
            "fish\n");
}

class ManualTest : public CompletionTest {};

TEST_F(ManualTest, EveryPageIsFormattedWithoutWarnings) {
  if (!IsInstalled("groff")) GTEST_SKIP() << "groff is not installed";
  std::vector<std::vector<std::string>> pages = {{"help", "--man"}};
  for (const char* command : kCommands) {
    pages.push_back({"help", "--man", command});
  }
  for (const auto& arguments : pages) {
    const std::string path = dir_.path() + "/page.1";
    std::ofstream(path) << Fncache(arguments);
    Process process({"-man", "-ww", "-Tutf8", "-P-cbou", path}, {}, "groff");
    EXPECT_EQ(process.Wait(), 0);
    EXPECT_EQ(process.Stderr(), "") << arguments.back();
    EXPECT_THAT(
        process.Stdout(),
        AllOf(HasSubstr("NAME"), HasSubstr("SYNOPSIS"), HasSubstr("SEE ALSO")));
  }
}

TEST_F(ManualTest, ThePageOfServeHoldsItsHelp) {
  if (!IsInstalled("groff")) GTEST_SKIP() << "groff is not installed";
  const std::string path = dir_.path() + "/page.1";
  std::ofstream(path) << Fncache({"help", "--man", "serve"});
  Process process({"-man", "-Tascii", "-P-cbou", path}, {}, "groff");
  EXPECT_EQ(process.Wait(), 0);
  const std::string page = process.Stdout();
  for (absl::string_view line :
       absl::StrSplit(Fncache({"serve", "--help"}), '\n')) {
    // Headings and the usage become something else.
    if (!absl::StartsWith(line, "      ") ||
        absl::StrContains(line, "[flags]")) {
      continue;
    }
    EXPECT_THAT(page, HasSubstr(line));
  }
}

}  // namespace
}  // namespace fncache::testing
