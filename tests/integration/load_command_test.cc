// SPDX-License-Identifier: Apache-2.0
// `fncache load` as people run it, against the function and the daemon as
// processes of their own.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/loopback_socket.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr int kFailed = 99;
constexpr int kInterrupted = 130;

std::string Source(const std::string& path) {
  return absl::StrCat(FNCACHE_SOURCE_DIR, "/", path);
}

class LoadCommandHeavyTest : public ::testing::Test {
 protected:
  void StartFunction(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"function", "--listen",
                                          "127.0.0.1:0"};
    if (std::find(more.begin(), more.end(), "--ttl") == more.end()) {
      arguments.insert(arguments.end(), {"--ttl", "1h"});
    }
    if (more.empty() || more.front() != "--tls-dir") {
      arguments.push_back("--insecure");
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    function_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(function_->WaitForStderr("listening on "));
    target_ = function_->Listening().at(0);
  }

  // Puts the daemon between: the target is the daemon then.
  void StartDaemon(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "serve",   "--insecure",  "--listen",   "127.0.0.1:0",
        "--admin", "127.0.0.1:0", "--upstream", target_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    daemon_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(daemon_->WaitForStderr("listening on ", 2));
    for (const std::string& address : daemon_->Listening()) {
      int status = 0;
      HttpGet(address, "/healthz", &status);
      (status == 200 ? admin_ : target_) = address;
    }
  }

  std::vector<std::string> Pipelines(std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "load",
        Source("examples/xr.yaml"),
        Source("examples/composition.yaml"),
        absl::StrCat("--function=function-buckets=", target_),
        absl::StrCat("--function=function-policy=", target_),
        "--progress=plain",
        absl::StrCat("--json=", Results())};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::vector<std::string> Requests(std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "load",  "--request",        Source("tests/data/requests/17k.req.bin"),
        target_, "--progress=plain", absl::StrCat("--json=", Results())};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // Runs to the end; what it says is in `stdout_` and `stderr_`.
  int Run(const std::vector<std::string>& arguments) {
    Process load(arguments);
    const int code = load.Wait();
    stdout_ = load.Stdout();
    stderr_ = load.Stderr();
    return code;
  }

  std::string Results(const std::string& name = "results.json") const {
    return dir_.File(name);
  }
  Json Read(const std::string& name = "results.json") const {
    return Json::parse(ReadFile(Results(name)));
  }

  const TempDir dir_;
  std::unique_ptr<Process> function_;
  std::unique_ptr<Process> daemon_;
  std::string target_;
  std::string admin_;
  std::string stdout_;
  std::string stderr_;
};

uint64_t Calls(const Json& results, const std::string& outcome) {
  uint64_t count = 0;
  for (const Json& row : results["calls"]) {
    if (row["outcome"] == outcome) count += row["count"].get<uint64_t>();
  }
  return count;
}

TEST_F(LoadCommandHeavyTest, TheDaemonsCountsAgreeWithOurs) {
  StartFunction({"--ttl", "1s"});
  StartDaemon({"--ttl-min", "1m", "--requeue-ttl", "original"});
  ASSERT_EQ(
      Run(Pipelines({"--composites=10", "--start=steady", "--ready-after=1s",
                     "--churn=spec=3600", "--duration=3s",
                     absl::StrCat("--admin-url=", admin_)})),
      0)
      << stderr_;
  const Json results = Read();
  EXPECT_TRUE(results["daemon"]["agrees"]) << results["daemon"].dump(2);
  EXPECT_GT(Calls(results, "hit"), 0U);
  EXPECT_GT(Calls(results, "miss"), 0U);
  EXPECT_EQ(results["function_runs"], Calls(results, "miss"));
  // Some have just changed, and are not ready again.
  EXPECT_GT(results["composites"]["ready"], 0);
}

// Settling is in no count but its own.
TEST_F(LoadCommandHeavyTest, SettledCompositesAskForWhatTheyAskedForBefore) {
  StartFunction();
  StartDaemon();
  for (const char* const start : {"steady", "cold"}) {
    ASSERT_EQ(Run(Pipelines({"--composites=10", "--ready-after=1s",
                             absl::StrCat("--start=", start), "--duration=2s",
                             absl::StrCat("--admin-url=", admin_)})),
              0)
        << stderr_;
    const Json results = Read();
    EXPECT_EQ(results["composites"]["ready"], 10) << start;
    EXPECT_GE(results["settle"]["pipelines"], 30) << start;
    EXPECT_GE(results["settle"]["calls"], 60) << start;
    EXPECT_TRUE(results["daemon"]["agrees"]) << results["daemon"].dump(2);
    EXPECT_EQ(Calls(results, "miss"), 0U) << start << results["calls"].dump(2);
    if (std::string(start) == "cold") {
      // Each at least twice, with two steps.
      EXPECT_EQ(results["pipelines"]["count"], 20);
      EXPECT_EQ(Calls(results, "hit"), 40U);
    } else {
      // With a TTL of an hour hardly one comes back within two seconds.
      EXPECT_LE(results["pipelines"]["count"], 5);
    }
  }
}

TEST_F(LoadCommandHeavyTest, OpenLoopStartsWhatIsDue) {
  StartFunction();
  ASSERT_EQ(Run(Pipelines({"--composites=5", "--ready-after=1s", "--rate=100",
                           "--warmup=500ms", "--duration=2s"})),
            0)
      << stderr_;
  const Json results = Read();
  EXPECT_EQ(results["pipelines"]["count"], 200);
  EXPECT_EQ(results["pipelines"]["dropped"], 0);
  EXPECT_NEAR(results["duration"].get<double>(), 2, 0.2);
  EXPECT_GE(results["generator"]["lag_p99"].get<double>(), 0);
}

TEST_F(LoadCommandHeavyTest, TotalsAreExact) {
  StartFunction();
  for (const char* const loop : {"--rate=500", "--concurrency=4"}) {
    ASSERT_EQ(Run(Pipelines(
                  {"--composites=5", "--ready-after=1s", loop, "--total=123"})),
              0)
        << stderr_;
    EXPECT_EQ(Read()["pipelines"]["count"], 123) << loop;
    ASSERT_EQ(Run(Requests({loop, "--total=123"})), 0) << stderr_;
    EXPECT_EQ(Read()["pipelines"]["count"], 123) << loop;
  }
}

// A start beyond the limit does not wait: it is dropped, and counted.
TEST_F(LoadCommandHeavyTest, StartsBeyondTheLimitAreDropped) {
  StartFunction({"--cost", "sleep=10s"});
  ASSERT_EQ(Run(Requests({"--rate=100", "--duration=1s", "--max-in-flight=10",
                          "--threshold=dropped:count==90"})),
            0)
      << stderr_;
  EXPECT_EQ(Read()["pipelines"]["dropped"], 90);
}

TEST_F(LoadCommandHeavyTest, AScenarioMovesCallsToTheNewVersion) {
  StartFunction();
  Process upgraded({"function", "--listen", "127.0.0.1:0", "--insecure",
                    "--ttl", "1h", "--log-calls"});
  ASSERT_TRUE(upgraded.WaitForStderr("listening on "));
  const std::string scenario = dir_.File("scenario.yaml");
  WriteFile(scenario,
            absl::StrCat("composites: 4\nstart: steady\nready-after: 1s\n"
                         "duration: 4s\nevents:\n"
                         "- {at: 500ms, upgrade: {function: function-buckets, "
                         "target: \"",
                         upgraded.Listening().at(0),
                         "\"}}\n"
                         "- {at: 1s, burst: {composites: 3}}\n"
                         "- {at: 3s, restart: {}}\n"));
  ASSERT_EQ(Run(Pipelines({"--scenario", scenario})), 0) << stderr_;
  const Json results = Read();
  EXPECT_EQ(results["composites"]["count"], 7);
  EXPECT_EQ(results["composites"]["ready"], 7);
  EXPECT_EQ(results["settings"]["--composites"], "4");
  EXPECT_EQ(results["settings"]["--scenario"], scenario);
  // Seven, twice.
  EXPECT_TRUE(upgraded.WaitForStderr("call run=14 ")) << upgraded.Stderr();
  WriteFile(scenario,
            "events:\n- {at: 1s, upgrade: {function: f, target: \"h:1\"}}\n");
  EXPECT_EQ(Run(Pipelines({"--scenario", scenario})), 2);
  EXPECT_THAT(stderr_, HasSubstr("scenario.yaml:2: function: \"f\" is not "
                                 "accepted; accepted: function-buckets, "
                                 "function-policy"));
}

TEST_F(LoadCommandHeavyTest, RequestsGoOverTlsWithMetadata) {
  const std::string certificates = Source("tests/data/certificates/");
  StartFunction({"--tls-dir", certificates + "server"});
  const std::string port = target_.substr(target_.rfind(':'));
  target_ = "localhost" + port;
  ASSERT_EQ(Run(Requests({"--tls-dir", certificates + "client", "-c", "4", "-n",
                          "50", "--connections=2", "--percentiles"})),
            0)
      << stderr_;
  EXPECT_EQ(Read()["pipelines"]["errors"], 0);
  EXPECT_EQ(Read()["pipelines"]["count"], 50);
  EXPECT_THAT(stdout_, HasSubstr("Value     Percentile TotalCount"));
  EXPECT_THAT(stdout_, HasSubstr("#[Mean    ="));
  // Not for this name, and not without a certificate.
  target_ = "127.0.0.1" + port;
  EXPECT_EQ(Run(Requests({"--tls-dir", certificates + "client", "-n", "1"})),
            1);
  EXPECT_THAT(stderr_, HasSubstr("certificate is not for 127.0.0.1"));
  target_ = "localhost" + port;
  WriteFile(dir_.File("ca.crt"), ReadFile(certificates + "client/ca.crt"));
  EXPECT_EQ(Run(Requests({"--tls-dir", dir_.path(), "-n", "1"})), 1);
  EXPECT_THAT(stderr_, HasSubstr("does the server take our certificate"));
  EXPECT_EQ(Run(Requests({"-n", "1"})), 1);
}

// The daemon passes by its cache what says `cache-control: no-store`.
TEST_F(LoadCommandHeavyTest, MetadataIsSentWithEveryCall) {
  StartFunction();
  StartDaemon();
  ASSERT_EQ(Run(Requests({"-n", "20"})), 0) << stderr_;
  EXPECT_EQ(Calls(Read(), "hit"), 19U);
  ASSERT_EQ(Run(Requests({"-n", "20", "--metadata", "cache-control=no-store"})),
            0)
      << stderr_;
  EXPECT_EQ(Calls(Read(), "bypass"), 20U) << Read()["calls"].dump(2);
}

TEST_F(LoadCommandHeavyTest, FindMaxDoublesAndThenHalves) {
  // Four calls at once, of 20 ms each: 200 a second hold at most.
  StartFunction({"--cost", "sleep=20ms"});
  ASSERT_EQ(Run(Requests({"--rate=50", "--duration=500ms", "--max-in-flight=4",
                          "--find-max", "dropped:count==0"})),
            0)
      << stderr_;
  EXPECT_THAT(stderr_, HasSubstr("rate 50 holds  dropped:count==0"));
  EXPECT_THAT(stderr_, HasSubstr(" fails  dropped:count==0"));
  EXPECT_THAT(stdout_, HasSubstr("the most that holds: --rate "));
  const double most =
      std::stod(Read()["settings"]["--rate"].get<std::string>());
  EXPECT_GE(most, 50);
  EXPECT_LE(most, 250);  // four in 20 ms are 200 a second
}

TEST_F(LoadCommandHeavyTest, FindMaxOfComposites) {
  StartFunction({"--ttl", "500ms"});
  ASSERT_EQ(
      Run(Pipelines({"--composites=4", "--start=steady", "--ready-after=100ms",
                     "--duration=1s", "--find-max", "pipeline:count<60"})),
      0)
      << stderr_;
  EXPECT_THAT(stderr_, HasSubstr("composites 4 holds"));
  EXPECT_THAT(stderr_, HasSubstr(" fails"));
  EXPECT_THAT(stdout_, HasSubstr("the most that holds: --composites "));
  // Nothing holds.
  EXPECT_EQ(Run(Requests({"--rate=8", "--duration=200ms", "--find-max",
                          "call:p(50)<0s"})),
            kFailed)
      << stdout_;
  EXPECT_THAT(stdout_, HasSubstr("nothing that was tried holds"));
}

TEST_F(LoadCommandHeavyTest, AWorseRunThanTheBaselineFails) {
  StartFunction();
  ASSERT_EQ(Run(Requests({"-c", "2", "-n", "300"})), 0) << stderr_;
  WriteFile(Results("old.json"), ReadFile(Results()));
  function_.reset();
  StartFunction({"--cost", "sleep=20ms"});
  const std::string baseline = absl::StrCat("--baseline=", Results("old.json"));
  EXPECT_EQ(
      Run(Requests({"-c", "2", "-n", "100", baseline, "--max-change=50%"})),
      kFailed)
      << stdout_;
  EXPECT_THAT(stdout_, HasSubstr("WORSE"));
  EXPECT_EQ(Run(Requests(
                {"-c", "2", "-n", "100", baseline, "--max-change=1000000%"})),
            0)
      << stdout_;
  // The same as `load report` says of the two.
  EXPECT_EQ(Run({"load", "report", Results("old.json"), Results(), "--html",
                 dir_.File("both.html")}),
            0)
      << stderr_;
  EXPECT_THAT(ReadFile(dir_.File("both.html")), HasSubstr("</html>"));
  EXPECT_EQ(Run(Requests({"-n", "1", "--baseline=/no/such/file"})), 1);
}

TEST_F(LoadCommandHeavyTest, AbortsOnceALimitIsBroken) {
  StartFunction({"--fail-rate", "1"});
  EXPECT_EQ(Run(Requests({"-c", "1", "--duration=10m", "--threshold",
                          "errors:count<5", "--abort-on-fail"})),
            kFailed)
      << stderr_;
  EXPECT_LT(Read()["duration"].get<double>(), 30);
  EXPECT_THAT(stdout_, HasSubstr("errors:count<5"));
}

TEST_F(LoadCommandHeavyTest, AnInterruptEndsWithTheReport) {
  StartFunction();
  for (const bool pipelines : {true, false}) {
    const std::vector<std::string> more = {"--rate=50", "--duration=10m"};
    Process load(pipelines ? Pipelines(more) : Requests(more));
    // A plain line comes after five seconds.
    ASSERT_TRUE(load.WaitForStderr("measure: ")) << load.Stderr();
    load.Signal(SIGINT);
    EXPECT_EQ(load.Wait(), kInterrupted) << load.Stderr();
    EXPECT_THAT(load.Stdout(), HasSubstr("measured for "));
    const Json results = Read();
    EXPECT_TRUE(results["interrupted"]);
    EXPECT_GE(results["pipelines"]["count"], 100);
    EXPECT_LT(results["duration"].get<double>(), 60);
  }
}

// Whether calls are settling, being measured or waited for at the end, and
// whether there is a function that stalls or none.
TEST_F(LoadCommandHeavyTest, AnInterruptDoesNotWaitForCallsUnderWay) {
  StartFunction({"--cost", "sleep=1h"});
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{
           {"--start=steady", "--duration=10m"},
           {"--start=create", "--duration=10m"},
           {"--start=create", "--duration=100ms"}}) {
    Process load(Pipelines(more));
    ASSERT_TRUE(load.WaitForStderr("fncache load: ")) << load.Stderr();
    const absl::Time interrupted = absl::Now();
    load.Signal(SIGINT);
    EXPECT_EQ(load.Wait(), kInterrupted) << load.Stderr();
    EXPECT_LT(absl::Now() - interrupted, absl::Seconds(30));
    // Cancelled pipelines are not counted.
    EXPECT_EQ(Read()["pipelines"]["errors"], 0);
  }
}

TEST_F(LoadCommandHeavyTest, AReportThatCannotBeWrittenIsAnErrorBefore) {
  StartFunction();
  for (const char* flag : {"--json", "--html"}) {
    EXPECT_EQ(
        Run({"load", "--request", Source("tests/data/requests/17k.req.bin"),
             target_, flag, dir_.File("none/report"), "-z", "1h"}),
        1);
    EXPECT_THAT(stderr_, HasSubstr("cannot write " + dir_.File("none/report")));
  }
}

TEST_F(LoadCommandHeavyTest, AFunctionThatIsNowhereIsAnErrorBefore) {
  StartFunction();
  EXPECT_EQ(Run({"load", Source("examples/xr.yaml"),
                 Source("examples/composition.yaml"),
                 absl::StrCat("--function=function-buckets=", target_)}),
            2);
  EXPECT_THAT(stderr_, HasSubstr("step policy calls function-policy"));
  EXPECT_THAT(stderr_, HasSubstr("--function function-policy=HOST:PORT"));
}

// Its calls wait, as a runner's do. The load does not wait for two minutes.
TEST_F(LoadCommandHeavyTest, AFunctionThatIsNotReachedEndsSettling) {
  const LoopbackSocket dead;
  target_ = dead.target();
  const absl::Time began = absl::Now();
  EXPECT_EQ(Run(Pipelines({"--start=steady", "--duration=10m"})), 1);
  EXPECT_LT(absl::Now() - began, absl::Seconds(60));
  EXPECT_THAT(stderr_, HasSubstr(absl::StrCat(
                           "fncache load: function-buckets is not reached at ",
                           target_, ": connection refused\n")));
  EXPECT_EQ(stdout_, "");
}

TEST_F(LoadCommandHeavyTest, AFunctionThatIsNotReachedEndsACreationWithOne) {
  const LoopbackSocket dead;
  target_ = dead.target();
  const absl::Time began = absl::Now();
  EXPECT_EQ(Run(Pipelines({"--start=create", "--duration=11s",
                           "--threshold=errors:count<1"})),
            1);
  EXPECT_LT(absl::Now() - began, absl::Seconds(60));
  const std::string reason = absl::StrCat("function-buckets is not reached at ",
                                          target_, ": connection refused");
  // While it runs, in the report, and as the reason of the exit code.
  EXPECT_THAT(stderr_, HasSubstr(reason + "; its calls wait\n"));
  EXPECT_THAT(stderr_, HasSubstr(reason + "\n"));
  EXPECT_THAT(stdout_, HasSubstr("warning: " + reason + "\n"));
  EXPECT_EQ(Read()["function_runs"], 0);
  EXPECT_EQ(Read()["unreached"][0]["target"], target_);
}

// Each call fails at once, as those through a daemon without its function do.
TEST_F(LoadCommandHeavyTest, WhereNothingSettlesReportsSaySo) {
  StartFunction({"--fail-rate", "1"});
  WriteFile(Results("junit.xml"), "of a run before");
  const std::vector<std::string> arguments =
      Pipelines({"--start=steady", "--duration=10m",
                 absl::StrCat("--junit=", Results("junit.xml")),
                 absl::StrCat("--csv=", Results("load.csv")),
                 absl::StrCat("--summary-markdown=", Results("load.md"))});
  EXPECT_EQ(Run(arguments), 1);
  const std::string reason = absl::StrCat(
      "no pipeline succeeded: function-buckets at ", target_, ": ");
  EXPECT_THAT(stderr_, HasSubstr("fncache load: " + reason));
  EXPECT_THAT(Read()["settle"]["failure"].get<std::string>(),
              HasSubstr(reason));
  EXPECT_THAT(
      ReadFile(Results("junit.xml")),
      HasSubstr("name=\"composites settle\"><failure message=\"" + reason));
  EXPECT_THAT(ReadFile(Results("load.csv")), HasSubstr("at,seconds,"));
  EXPECT_THAT(ReadFile(Results("load.md")), HasSubstr("so nothing was"));
  // There are no data for it, although it counts no errors.
  std::vector<std::string> judged = arguments;
  judged.push_back("--threshold=errors:count<1");
  EXPECT_EQ(Run(judged), kFailed);
  EXPECT_THAT(ReadFile(Results("junit.xml")), HasSubstr("no data"));
}

// Each answer has the version that the answer before it led to.
TEST_F(LoadCommandHeavyTest, ACompositionThatNeverSettlesIsNamedAndMeasured) {
  StartFunction();
  const std::string composition = dir_.File("composition.yaml");
  WriteFile(composition, R"(apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: restless}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Website}
  mode: Pipeline
  pipeline:
  - step: restless
    functionRef: {name: function-fncache}
    input:
      apiVersion: function.fncache.dev/v1alpha1
      kind: Template
      spec:
        status: {seen: "${observed.composite.resource.metadata.resourceVersion}"}
)");
  const std::vector<std::string> arguments = {
      "load",           Source("examples/xr.yaml"),
      composition,      absl::StrCat("--function=function-fncache=", target_),
      "--start=steady", "--composites=2",
      "--duration=1s",  absl::StrCat("--json=", Results())};
  EXPECT_EQ(Run(arguments), 0) << stderr_;
  EXPECT_THAT(stdout_, HasSubstr("warning: 2 composites never settle, because "
                                 "each answer differs from the one before: "
                                 "composite: status.seen\n"));
  EXPECT_THAT(stderr_, HasSubstr("measured as with --start create"));
  EXPECT_EQ(Read()["settle"]["never"], 2);
  EXPECT_GT(Read()["pipelines"]["count"], 10);
  EXPECT_THAT(stdout_, HasSubstr("in the measured time; there is no rate"));
  std::vector<std::string> judged = arguments;
  judged.push_back("--threshold=pipeline:count>0");
  EXPECT_EQ(Run(judged), kFailed) << stderr_;
  EXPECT_THAT(stdout_, HasSubstr("holds  pipeline:count>0"));
  // A creation, which settles nothing before, says the same.
  std::replace(judged.begin(), judged.end(), std::string("--start=steady"),
               std::string("--start=create"));
  EXPECT_EQ(Run(judged), kFailed) << stderr_;
  EXPECT_THAT(stdout_, HasSubstr("warning: 2 composites never settle, because "
                                 "each answer differs from the one before: "
                                 "composite: status.seen\n"));
}

TEST_F(LoadCommandHeavyTest, ARunInWhichEveryPipelineFailedIsAFailure) {
  StartFunction({"--fail-rate", "1"});
  const std::string threshold = "--threshold=errors:count<1";
  EXPECT_EQ(Run(Requests({"-n", "5"})), 1);
  EXPECT_THAT(stderr_, HasSubstr("fncache load: every pipeline failed\n"));
  EXPECT_EQ(Run(Requests({"-n", "5", threshold})), kFailed);
  EXPECT_EQ(Run(Pipelines({"--start=create", "--duration=1s"})), 1);
  EXPECT_THAT(stderr_, HasSubstr("fncache load: every pipeline failed\n"));
  EXPECT_EQ(Run(Pipelines({"--start=create", "--duration=1s", threshold})),
            kFailed);
}

TEST_F(LoadCommandHeavyTest, SaysWhatTheseCompositesNeed) {
  StartFunction({"--ttl", "5s", "--cost", "sleep=20ms"});
  ASSERT_EQ(Run(Pipelines({"--start=create", "--composites=3",
                           "--ready-after=500ms", "--duration=3s"})),
            0)
      << stderr_;
  EXPECT_THAT(stdout_, HasSubstr("verdict: 3 composites that come back every "
                                 "5.00s need 0.6/s"));
  const Json verdict = Read()["verdict"];
  EXPECT_NEAR(verdict["needed"].get<double>(), 0.6, 1e-6);
  EXPECT_EQ(verdict["created_ready"], 3);
  EXPECT_GE(verdict["ready_p50"].get<double>(), 0.5);
  EXPECT_GE(verdict["ready_p95"], verdict["ready_p50"]);
  // Two calls of 20 ms: 0.6 pipelines a second of 100 workers.
  EXPECT_GE(verdict["busy"].get<double>(), 0.6 * 0.04 / 100);
}

TEST_F(LoadCommandHeavyTest, LeavesReportsForCi) {
  StartFunction();
  const std::string summary = dir_.File("step-summary.md");
  WriteFile(summary, "before\n");
  Process load(
      Requests({"-n", "5", "--threshold=errors:count>0",
                absl::StrCat("--junit=", Results("junit.xml")),
                absl::StrCat("--csv=", Results("load.csv")),
                absl::StrCat("--summary-markdown=", Results("load.md"))}),
      {{"GITHUB_STEP_SUMMARY", summary}});
  EXPECT_EQ(load.Wait(), kFailed) << load.Stderr();
  EXPECT_THAT(ReadFile(Results("junit.xml")),
              HasSubstr("<testcase classname=\"fncache load\" "
                        "name=\"errors:count&gt;0\"><failure message=\"0\"/>"));
  EXPECT_THAT(ReadFile(Results("load.csv")),
              HasSubstr("at,seconds,pipelines,"));
  const std::string markdown = ReadFile(Results("load.md"));
  EXPECT_THAT(markdown, HasSubstr("## fncache load: 2 of 3 checks hold\n"));
  EXPECT_EQ(ReadFile(summary), "before\n" + markdown);
  // Before the run, not after it.
  EXPECT_EQ(Run(Requests({"-z", "1h", "--junit", dir_.File("none/x.xml")})), 1);
  EXPECT_THAT(stderr_, HasSubstr("cannot write " + dir_.File("none/x.xml")));
}

TEST_F(LoadCommandHeavyTest, AMissingFileIsNamedOnceAndExitCodeOne) {
  const std::string gone = dir_.File("gone.yaml");
  const std::string xr = Source("examples/xr.yaml");
  const std::string composition = Source("examples/composition.yaml");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{
           {gone},
           {gone, composition},
           {xr, gone},
           {xr, composition, gone},
           {"--all", gone, composition},
           {xr, composition, "--function=a=h:1", "--xrd", gone},
           {xr, composition, "--function=a=h:1", "-o", gone},
           {xr, composition, "--scenario", gone},
           {"--request", gone, "127.0.0.1:1"},
           {xr, composition, "--function=a=h:1", "--baseline", gone},
           {"report", gone}}) {
    std::vector<std::string> all = {"load"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    EXPECT_EQ(Run(all), 1) << stderr_;
    const size_t at = stderr_.find(gone);
    ASSERT_NE(at, std::string::npos) << stderr_;
    EXPECT_EQ(stderr_.find(gone, at + 1), std::string::npos) << stderr_;
  }
}

TEST_F(LoadCommandHeavyTest, ThresholdsThatNameNothingAreErrorsBefore) {
  StartFunction();
  EXPECT_EQ(Run(Pipelines({"--threshold=call{step=bukets}:p(99)<1s"})), 2);
  EXPECT_THAT(stderr_, HasSubstr("buckets"));
  EXPECT_EQ(
      Run(Requests({"-n", "3", "--threshold=call{outcome=hit}:p(99)<1s"})),
      kFailed);
}

}  // namespace
}  // namespace fncache::testing
