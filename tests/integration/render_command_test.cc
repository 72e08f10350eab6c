// `fncache render` as people use it: through a cache, with wrong files and dead
// functions, interrupted, watching, many at once. What it prints of real cases
// is in render_test.cc.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

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

  // Of the XR and the Composition.
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

TEST_F(RenderCommandTest, AFunctionThatFailsEndsItWithTheReferencesMessage) {
  const Ended ended = Render({Target(StartFunction({"--fail-rate", "1"}))});
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
          EndsWith("\n                   : exit status 1\n")));
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
  const Ended ended = Render({Target("127.0.0.1:1"), "--timeout", "300ms"});
  EXPECT_EQ(ended.code, 255);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(
      ended.err,
      AllOf(HasSubstr("step \"buckets\""), HasSubstr("127.0.0.1:1"),
            HasSubstr("connection refused"), EndsWith(": signal: killed\n")));
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
  const Ended ended = Render({Target(StartFunction({"--cost", "sleep=30s"})),
                              "--step-timeout", "200ms"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("DeadlineExceeded"),
                               EndsWith(": exit status 1\n")));
}

TEST_F(RenderCommandTest, AFunctionThatIsNotListedIsNamed) {
  const Ended ended = Render({"--function", "other=127.0.0.1:1"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("unknown function \"function-fncache\" - is "
                                   "it listed in the render input?"));
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
