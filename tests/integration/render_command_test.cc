// SPDX-License-Identifier: Apache-2.0
// `fncache render` as people use it: through a cache, with wrong files and dead
// functions, interrupted, watching, many at once. Its output for real cases is
// in render_test.cc.

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"
#include "tests/integration/terminal.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Arguments = std::vector<std::string>;

constexpr char kComposition[] = R"(apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: buckets}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Buckets}
  mode: Pipeline
  pipeline:
  - step: buckets
    functionRef: {name: function-fncache}
    input:
      apiVersion: function.fncache.dev/v1alpha1
      kind: Template
      spec:
        resources:
        - name: bucket
          ready: true
          base:
            apiVersion: s3.example.org/v1
            kind: Bucket
            spec: {region: "${observed.composite.resource.spec.region}"}
        context: {region: "${context.region|none}"}
)";

std::string Xr(const std::string& name, const std::string& region = "eu") {
  return absl::StrCat("apiVersion: example.org/v1\nkind: Buckets\nmetadata: {",
                      "name: ", name, "}\nspec: {region: ", region, "}\n");
}

struct Ended {
  int code;
  std::string out;
  std::string err;
};

class RenderCommandTest : public ::testing::Test {
 protected:
  RenderCommandTest()
      : xr_(File("xr.yaml", Xr("demo"))),
        composition_(File("composition.yaml", kComposition)) {}

  std::string File(const std::string& name, const std::string& text) {
    const std::string path = dir_.path() + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // Starts the function with `more` flags; its address.
  std::string StartFunction(const Arguments& more = {}) {
    Arguments arguments = {"function", "--insecure", "--listen", "127.0.0.1:0",
                           "--log-calls"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    function_ = std::make_unique<Process>(arguments);
    EXPECT_TRUE(function_->WaitForStderr("listening on "));
    return function_->Listening().at(0);
  }

  static std::string Target(const std::string& address) {
    return "--function=function-fncache=" + address;
  }

  static Ended Run(Arguments arguments) {
    arguments.insert(arguments.begin(), "render");
    Process process(arguments);
    Ended ended;
    ended.code = process.Wait();
    ended.out = process.Stdout();
    ended.err = process.Stderr();
    return ended;
  }

  // Renders with a time limit, once the error has `words`: a process that a
  // busy machine delays gets a longer one.
  Ended RenderUntilItSays(const Arguments& flags, const std::string& limit,
                          const std::string& words) {
    Ended ended;
    for (const char* time : {"300ms", "3s", "30s"}) {
      Arguments more = flags;
      more.insert(more.end(), {limit, time});
      ended = Render(more);
      if (absl::StrContains(ended.err, words)) break;
    }
    return ended;
  }

  // Renders the XR and the Composition.
  Ended Render(Arguments more) {
    more.insert(more.begin(), {xr_, composition_});
    return Run(more);
  }

  TempDir dir_;
  const std::string xr_;
  const std::string composition_;
  std::unique_ptr<Process> function_;
};

TEST_F(RenderCommandTest, PrintsDocumentsAndNothingElse) {
  const Ended ended = Render({Target(StartFunction())});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, StartsWith("---\napiVersion: example.org/v1\n"));
  EXPECT_THAT(ended.out, HasSubstr("\nkind: Bucket\n"));
  EXPECT_THAT(ended.out, Not(HasSubstr("kind: Context")));
}

TEST_F(RenderCommandTest, ContextGoesInAndOut) {
  const Ended ended = Render({Target(StartFunction()), "-c", "--context-values",
                              "region=from value;other=1", "--context-files",
                              "region=" + File("region.yaml", "from file")});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out,
              EndsWith("---\napiVersion: render.crossplane.io/v1beta1\n"
                       "fields:\n  other: 1\n  region: from value\n"
                       "kind: Context\n"));
  EXPECT_EQ(ended.err, "");
}

TEST_F(RenderCommandTest, ATraceTellsOfChangesAndOfACacheInFront) {
  const std::string upstream = StartFunction();
  Process cache({"serve", "--insecure", "--listen", "127.0.0.1:0", "--admin",
                 "", "--upstream", upstream,
                 // Stamped with the time of the run.
                 "--mask", "observed.composite.resource.status.conditions"});
  ASSERT_TRUE(cache.WaitForStderr("listening on "));
  const std::string target = Target(cache.Listening().at(0));
  const Ended first = Render({target, "--trace"});
  EXPECT_EQ(first.code, 0);
  EXPECT_THAT(first.err,
              AllOf(HasSubstr("step 1/1 \"buckets\" (function-fncache): "),
                    HasSubstr("cache: fncache; fwd=miss"),
                    HasSubstr("+ desired.resources.bucket (s3.example.org/v1 "
                              "Bucket)"),
                    HasSubstr("+ context.region: \"none\"")));
  const Ended second = Render({target, "--trace"});
  EXPECT_THAT(second.err, HasSubstr("cache: fncache; hit; ttl="));
  EXPECT_EQ(second.out, first.out);
}

// Each call of a trace asks for the hint; the daemon passes it on.
TEST_F(RenderCommandTest, ATraceShowsWhatTheFunctionSaysItDependsOn) {
  const std::string upstream = StartFunction();
  Process cache({"serve", "--insecure", "--listen", "127.0.0.1:0", "--admin",
                 "", "--upstream", upstream});
  ASSERT_TRUE(cache.WaitForStderr("listening on "));
  for (const std::string& target : {upstream, cache.Listening().at(0)}) {
    EXPECT_THAT(Render({Target(target), "--trace"}).err,
                HasSubstr("\n  fncache-depends: reads=(\"observed."));
  }
}

TEST_F(RenderCommandTest, AFunctionThatFailsEndsItWithTheReferencesMessage) {
  const std::string address = StartFunction({"--fail-rate", "1"});
  const Ended ended = Render({Target(address)});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(
      ended.err,
      AllOf(
          StartsWith("crossplane: error: cannot render composite resource: "
                     "crossplane internal render returned error with output: "
                     "crossplane: error: cannot render composite resource: "
                     "reconcile failed: cannot compose resources: cannot run "
                     "Composition pipeline step \"buckets\": rpc error: code = "
                     "Unavailable desc = "),
          EndsWith(absl::StrCat("\nfncache render: step \"buckets\" failed: "
                                "function \"function-fncache\" at ",
                                address,
                                ": Unavailable: this call fails, as "
                                "--fail-rate asks\n"))));
}

TEST_F(RenderCommandTest, AFatalResultEndsItWithTheReferencesMessage) {
  const Ended ended =
      Render({Target(StartFunction({"--fatal", "no\nway"})), "-r"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.out, "");
  const std::string indent(std::string("crossplane: error: ").size(), ' ');
  EXPECT_EQ(ended.err,
            absl::StrCat(
                "crossplane: error: cannot render composite resource: "
                "crossplane internal render: pipeline returned fatal: "
                "crossplane: error: cannot render composite resource: cannot "
                "compose resources: pipeline step \"buckets\" returned a fatal "
                "result: no\n",
                indent, indent, "way\n"));
}

TEST_F(RenderCommandTest, ADeadFunctionIsWaitedForUntilTheTimeout) {
  const Ended ended = RenderUntilItSays({Target("127.0.0.1:1")}, "--timeout",
                                        "connection refused");
  EXPECT_EQ(ended.code, 255);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(
      ended.err,
      EndsWith("\nfncache render: step \"buckets\" failed: function "
               "\"function-fncache\" at 127.0.0.1:1: no connection in time: "
               "connection refused (--timeout is over)\n"));
}

TEST_F(RenderCommandTest, AFunctionThatStartsLateIsWaitedFor) {
  // A port that was free a moment ago.
  const std::string address = StartFunction();
  function_.reset();
  Process render({"render", xr_, composition_, Target(address), "--trace"});
  Process late({"function", "--insecure", "--listen", address});
  EXPECT_EQ(render.Wait(), 0);
  EXPECT_THAT(render.Stdout(), HasSubstr("kind: Bucket"));
}

TEST_F(RenderCommandTest, AStepsTimeoutEndsTheStepOnly) {
  const Ended ended =
      RenderUntilItSays({Target(StartFunction({"--cost", "sleep=1h"}))},
                        "--step-timeout", ": no answer in time");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("DeadlineExceeded"),
                               EndsWith(": no answer in time\n")));
}

TEST_F(RenderCommandTest, AFunctionThatIsNotListedIsNamed) {
  const Ended ended = Render({"--function", "other=127.0.0.1:1"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("unknown function \"function-fncache\" - is it "
                              "listed in the render input?"),
                    HasSubstr("\"function-fncache\" is not listed; listed are: "
                              "other; ")));
}

TEST_F(RenderCommandTest, CtrlCEndsItAtOnceWithoutAnyDocument) {
#ifdef FNCACHE_TSAN
  GTEST_SKIP() << "the thread sanitizer keeps a signal back until whatever the "
                  "main thread waits for is over";
#endif
  // Hangs in its second step, whose function is dead.
  const std::string two =
      File("two.yaml", absl::StrCat(kComposition,
                                    "  - step: dead\n"
                                    "    functionRef: {name: dead}\n"));
  Process render({"render", xr_, two, Target(StartFunction()),
                  "--function=dead=127.0.0.1:1", "--trace"});
  ASSERT_TRUE(render.WaitForStderr("step 1/2"));
  const absl::Time signalled = absl::Now();
  render.Signal(SIGINT);
  EXPECT_EQ(render.Wait(), 130);
  // Its step would wait for a minute.
  EXPECT_LT(absl::Now() - signalled, absl::Seconds(30));
  EXPECT_EQ(render.Stdout(), "");
}

TEST_F(RenderCommandTest, AStdoutThatCannotBeWrittenToIsAnError) {
  const std::string address = StartFunction();
  for (const char* redirect : {">&-", "> /dev/full", "<&- 2>&1 >&-"}) {
    Process shell(
        {"-c", absl::StrCat("exec \"$0\" \"$@\" ", redirect), FNCACHE_BINARY,
         "render", xr_, composition_, Target(address)},
        {}, "/bin/sh");
    EXPECT_EQ(shell.Wait(), 1) << redirect;
    EXPECT_THAT(absl::StrCat(shell.Stdout(), shell.Stderr()),
                StartsWith("crossplane: error: cannot print what was "
                           "rendered: "))
        << redirect;
  }
}

TEST_F(RenderCommandTest, HelpThatCannotBeWrittenIsAnError) {
  Process shell({"-c", "exec \"$0\" render --help > /dev/full", FNCACHE_BINARY},
                {}, "/bin/sh");
  EXPECT_EQ(shell.Wait(), 1);
  EXPECT_EQ(shell.Stderr(),
            "fncache render: cannot write to standard output: No space left on "
            "device\n");
}

TEST_F(RenderCommandTest, AnyFileMayComeThroughAPipe) {
  const std::string target = Target(StartFunction());
  const Ended plain = Render({target});
  ASSERT_EQ(plain.code, 0) << plain.err;
  const std::string functions =
      File("functions.yaml",
           absl::StrCat("apiVersion: pkg.crossplane.io/v1\nkind: Function\n"
                        "metadata:\n  name: function-fncache\n  annotations:\n"
                        "    render.crossplane.io/runtime: Development\n"
                        "    render.crossplane.io/runtime-development-target: ",
                        target.substr(target.rfind('=') + 1), "\n"));
  const std::string region = File("region.json", "none");
  // Each with the text that it is given, and the arguments.
  const std::vector<std::pair<std::string, std::string>> kCases = {
      {xr_, "- \"$2\" \"$4\""},
      {composition_, "\"$1\" - \"$4\""},
      {functions, "\"$1\" \"$2\" -"},
      {region, "\"$1\" \"$2\" \"$4\" --context-files region=-"},
      {region, "\"$1\" \"$2\" \"$4\" --context-files region=/dev/stdin"},
      {xr_, "--all - \"$2\" \"$4\""},
  };
  for (const auto& [text, arguments] : kCases) {
    Process shell({"-c", absl::StrCat("cat \"$3\" | \"$0\" render ", arguments),
                   FNCACHE_BINARY, xr_, composition_, text, functions},
                  {}, "/bin/sh");
    EXPECT_EQ(shell.Wait(), 0) << arguments << shell.Stderr();
    EXPECT_EQ(shell.Stdout(), plain.out) << arguments;
  }
  Process closed({"-c", "exec \"$0\" render - \"$1\" \"$2\" <&-",
                  FNCACHE_BINARY, composition_, functions},
                 {}, "/bin/sh");
  EXPECT_EQ(closed.Wait(), 1);
  EXPECT_THAT(
      closed.Stderr(),
      HasSubstr("cannot load composite resource from \"/dev/stdin\": "));
}

TEST_F(RenderCommandTest, ATraceIsColoredOnATerminal) {
  const std::string target = Target(StartFunction());
  Terminal terminal;
  const auto trace = [&](const std::string& more,
                         const Process::Environment& env) {
    Process shell({"-c",
                   absl::StrCat("exec \"$0\" render \"$1\" \"$2\" \"$3\" "
                                "--trace ",
                                more),
                   FNCACHE_BINARY, xr_, composition_, target, terminal.name()},
                  env, "/bin/sh");
    EXPECT_EQ(shell.Wait(), 0);
    return absl::StrCat(terminal.Read(), shell.Stderr());
  };
  const Process::Environment kTerm = {{"TERM", "xterm"}, {"NO_COLOR", ""}};
  const auto colored = HasSubstr("\033[1mstep 1/1 \"buckets\"");
  const auto plain =
      AllOf(HasSubstr("step 1/1 \"buckets\""), Not(HasSubstr("\033")));
  EXPECT_THAT(trace("2>\"$4\"", kTerm), colored);
  EXPECT_THAT(trace("", kTerm), plain);
  EXPECT_THAT(trace("--color always", kTerm), colored);
  EXPECT_THAT(trace("--color never 2>\"$4\"", kTerm), plain);
  EXPECT_THAT(trace("2>\"$4\"", {{"TERM", "xterm"}, {"NO_COLOR", "1"}}), plain);
  EXPECT_THAT(trace("2>\"$4\"", {{"TERM", "dumb"}, {"NO_COLOR", ""}}), plain);
  EXPECT_THAT(
      trace("--color=always 2>\"$4\"", {{"TERM", "dumb"}, {"NO_COLOR", "1"}}),
      colored);
}

// All that a request and a function decide, in every place where it is printed.
TEST_F(RenderCommandTest, NothingThatATerminalObeysIsPrinted) {
  const std::string kHostile = R"(\e]0t\a\e[2J\r\x9b31m\x7f\u202e\u2066$)";
  const std::string kRaw =
      "\033]0t\007\033[2J\r\xc2\x9b"
      "31m\x7f\xe2\x80\xae\xe2\x81\xa6$";
  std::string text = R"(apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: buckets}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Buckets}
  mode: Pipeline
  pipeline:
  - step: "@"
    functionRef: {name: function-fncache}
    input:
      apiVersion: function.fncache.dev/v1alpha1
      kind: Template
      spec:
        resources:
        - name: "@"
          base:
            apiVersion: s3.example.org/v1
            kind: "@"
            spec: {"@": "@", lines: "a\n@\nb"}
        status: {"@": ["@"]}
        context: {"@": "@"}
        results:
        - message: "@"
          severity: Warning
)";
  const std::string composition =
      File("hostile.yaml", absl::StrReplaceAll(text, {{"@", kHostile}}));
  const std::string unknown =
      File("unknown.yaml",
           absl::StrReplaceAll(
               text, {{"function-fncache", absl::StrCat("\"", kHostile, "\"")},
                      {"@", kHostile}}));
  const std::string xr = File(absl::StrCat(kRaw, ".yaml"), Xr("demo"));
  const std::string broken = File(absl::StrCat(kRaw, "2.yaml"), "kind: {");
  const std::string no_kind =
      File(absl::StrCat(kRaw, "3.yaml"),
           absl::StrReplaceAll("a: \"@\"", {{"@", kHostile}}));
  const std::string target = Target(StartFunction());
  const std::vector<std::pair<int, Arguments>> kCases = {
      {0, {xr, composition, target, "--trace", "-rcx"}},
      {1, {"--all", dir_.path(), composition, target, "--trace"}},
      {1, {xr, unknown, target, "--trace"}},
      {255,
       {xr, unknown, absl::StrCat("--function=", kRaw, "=127.0.0.1:1"),
        "--timeout=100ms"}},
      {1, {broken, composition, target}},
      {1, {no_kind, composition, target}},
      {1, {xr, composition, target, "-o", kRaw}},
      {1, {xr, composition, target, "-s", kRaw}},
      {1, {xr, composition, target, absl::StrCat("--context-files=k=", kRaw)}},
      {1,
       {xr, composition, target,
        absl::StrCat("--context-values=", kRaw, "={")}},
      {1, {xr, composition, target, "-a", kRaw}},
      {80, {kRaw, composition}},
      {80, {xr, composition, kRaw, kRaw}},
      {80, {xr, composition, absl::StrCat("--", kRaw)}},
      {80, {xr, composition, "--jobs", kRaw}},
      {80, {xr, composition, "--timeout", kRaw}},
      {80, {xr, composition, "--color", kRaw}},
      {80, {xr, composition, "--without-capability", kRaw}},
      {80, {xr, composition, "--function", kRaw}},
  };
  const auto expect_harmless = [](const std::string& printed) {
    for (const absl::string_view line : absl::StrSplit(printed, '\n')) {
      EXPECT_EQ(Printable(line), line);
    }
  };
  for (const auto& [code, arguments] : kCases) {
    SCOPED_TRACE(Printable(absl::StrJoin(arguments, " ")));
    const Ended ended = Run(arguments);
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_THAT(absl::StrCat(ended.out, ended.err), HasSubstr("$"));
    expect_harmless(ended.out);
    expect_harmless(ended.err);
  }
  StartFunction({"--fatal", kRaw});
  const Ended fatal = Render({Target(function_->Listening().at(0)), "--trace"});
  EXPECT_EQ(fatal.code, 1);
  EXPECT_THAT(fatal.err, HasSubstr("31m"));
  expect_harmless(fatal.err);
}

TEST_F(RenderCommandTest, BadUsageEndsWithItsOwnCode) {
  const std::string gone = dir_.path() + "/gone.yaml";
  const std::vector<Arguments> kCases = {
      {},
      {xr_},
      {gone, composition_},
      {xr_, gone},
      {xr_, composition_, "--xrd", gone},
      {xr_, composition_, "--flying"},
      {xr_, composition_, "--timeout", "soon"},
      {xr_, composition_, "a", "b"},
      {"--all", gone, composition_},
  };
  for (const Arguments& arguments : kCases) {
    const Ended ended = Run(arguments);
    EXPECT_EQ(ended.code, 80) << absl::StrJoin(arguments, " ");
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, StartsWith("crossplane: error: "));
  }
}

TEST_F(RenderCommandTest, FilesThatDoNotFitAreNotBadUsage) {
  const std::string gone = dir_.path() + "/gone.yaml";
  const std::vector<Arguments> kCases = {
      {xr_, composition_},
      {xr_, composition_, gone},
      {xr_, composition_, "--function=a=b", "-o", gone},
      {xr_, composition_, "--function=a=b", "-e", gone},
      {xr_, composition_, "--function=a=b", "-a", "k"},
      {xr_, xr_, "--function=a=b"},
      {composition_, composition_, "--function=a=b"},
      {xr_, composition_, "--function=a=b", "--tls-dir", dir_.path()},
  };
  for (const Arguments& arguments : kCases) {
    const Ended ended = Run(arguments);
    EXPECT_EQ(ended.code, 1) << absl::StrJoin(arguments, " ");
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, StartsWith("crossplane: error: "));
  }
}

TEST_F(RenderCommandTest, AnOperationIsRefused) {
  const std::string operation =
      File("operation.yaml",
           "apiVersion: ops.crossplane.io/v1alpha1\nkind: Operation\n"
           "metadata: {name: o}\nspec: {mode: Pipeline, pipeline: []}\n");
  const std::string why =
      "\": cannot render operation: not supported, fncache renders composite "
      "resources only\n";
  const Ended composite = Run({operation, composition_, Target("127.0.0.1:1")});
  EXPECT_EQ(composite.code, 1);
  EXPECT_EQ(composite.err,
            absl::StrCat("crossplane: error: cannot load composite resource "
                         "from \"",
                         operation, why));
  const Ended composition = Run({xr_, operation, Target("127.0.0.1:1")});
  EXPECT_EQ(composition.code, 1);
  EXPECT_EQ(composition.err,
            absl::StrCat("crossplane: error: cannot load Composition from \"",
                         operation, why));
}

TEST_F(RenderCommandTest, HelpTeachesOnStdout) {
  const Ended ended = Run({"--help"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, AllOf(HasSubstr("Usage: fncache render"),
                               HasSubstr("Exit codes:")));
}

TEST_F(RenderCommandTest, ManyAreRenderedInTheOrderOfTheirFiles) {
  std::string names;
  for (int i = 10; i < 50; ++i) {
    File(absl::StrCat("xrs/", i, ".yaml"), Xr(absl::StrCat("xr-", i)));
    absl::StrAppend(&names, "xr-", i, "\n");
  }
  const std::string address = StartFunction();
  const Ended ended = Run({"--all", dir_.path() + "/xrs", composition_,
                           Target(address), "--jobs", "7"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, StartsWith("fncache render: 40 of 40 in "));
  std::string seen;
  for (const absl::string_view document : absl::StrSplit(ended.out, "---\n")) {
    if (!absl::StrContains(document, "\nkind: Buckets\n")) continue;
    const size_t at = document.find("  name: xr-");
    ASSERT_NE(at, absl::string_view::npos) << document;
    absl::StrAppend(&seen, document.substr(at + 8, 5), "\n");
  }
  EXPECT_EQ(seen, names);
  // And each as it is rendered alone.
  const Ended alone =
      Run({dir_.path() + "/xrs/23.yaml", composition_, Target(address)});
  EXPECT_THAT(ended.out, HasSubstr(alone.out));
}

TEST_F(RenderCommandTest, ComparesWithWhatIsExpected) {
  File("xrs/a.yaml", Xr("a"));
  File("xrs/two.yaml", absl::StrCat(Xr("b"), "---\n", Xr("c")));
  const std::string expected = dir_.path() + "/expected";
  const Arguments compare = {"--all",      dir_.path() + "/xrs",
                             composition_, Target(StartFunction()),
                             "--expect",   expected};
  Arguments update = compare;
  update.push_back("--update");
  EXPECT_EQ(Run(compare).code, 1);  // there is no such folder
  Ended ended = Run(update);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, HasSubstr("wrote " + expected + "/two.yaml\n"));
  ended = Run(compare);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, HasSubstr("2 of 2 files as expected\n"));
  // A change of one XR shows in its own file.
  File("xrs/two.yaml", absl::StrCat(Xr("b"), "---\n", Xr("c", "us")));
  ended = Run(compare);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.out,
              AllOf(StartsWith("--- " + expected + "/two.yaml\n+++ "),
                    HasSubstr("-  region: eu\n+  region: us\n"),
                    Not(HasSubstr("a.yaml"))));
  EXPECT_THAT(ended.err, HasSubstr("1 of 2 files as expected\n"));
  // A file that cannot be rendered is no reason to write one.
  File("xrs/two.yaml", "kind: [\n");
  ended = Run(update);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("two.yaml"),
                               HasSubstr("1 of 2 files as expected\n"),
                               Not(HasSubstr("wrote"))));
}

TEST_F(RenderCommandTest, OfManyOneThatFailsLeavesTheOthers) {
  File("xrs/1.yaml", Xr("first"));
  File("xrs/2.yaml",
       "apiVersion: example.org/v1\nkind: Buckets\n"
       "metadata: {name: second}\n");  // no region: FATAL
  File("xrs/3.yaml", "kind: {");
  File("xrs/4.yaml", Xr("fourth"));
  const Ended ended = Run(
      {"--all", dir_.path() + "/xrs", composition_, Target(StartFunction())});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("name: first\n"), HasSubstr("name: fourth\n"),
                    Not(HasSubstr("second"))));
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("4 of 4, 2 failed"),
                    HasSubstr("xrs/2.yaml: cannot render composite resource: "),
                    HasSubstr("xrs/3.yaml: cannot load composite resource")));
}

TEST_F(RenderCommandTest, WatchingRendersAgainAndSurvivesErrors) {
  const std::string address = StartFunction();
  Process render({"render", xr_, composition_, Target(address), "--watch"});
  ASSERT_TRUE(render.WaitForStderr("rendered; waiting for changes"));
  EXPECT_TRUE(render.WaitForStdout("region: eu"));

  // As an editor saves: another file, renamed over the first.
  fs::rename(File("xr.swap", Xr("demo", "us")), xr_);
  ASSERT_TRUE(render.WaitForStderr("rendered; waiting for changes", 2));
  EXPECT_THAT(render.Stderr(), HasSubstr("xr.yaml changed"));
  EXPECT_TRUE(render.WaitForStdout("region: us"));

  File("composition.yaml", "kind: {");
  ASSERT_TRUE(render.WaitForStderr("failed; waiting for changes"));
  EXPECT_THAT(render.Stderr(), HasSubstr("crossplane: error: cannot load "
                                         "Composition"));
  fs::remove(composition_);
  ASSERT_TRUE(render.WaitForStderr("failed; waiting for changes", 2));
  File("composition.yaml", kComposition);
  ASSERT_TRUE(render.WaitForStderr("rendered; waiting for changes", 3));

  render.Signal(SIGINT);
  EXPECT_EQ(render.Wait(), 130);
}

}  // namespace
}  // namespace fncache::testing
