// SPDX-License-Identifier: Apache-2.0
// fncache replay as people run it: on traces of real daemons under load.
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/setting.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Process;
using testing::ReadFile;
using testing::TempDir;
using Texts = std::vector<std::string>;

constexpr char kXr[] = "bench/prediction/xr.yaml";
constexpr char kComposition[] = "bench/prediction/composition.yaml";

// A function, and a daemon in front of it with these settings.
class Served {
 public:
  explicit Served(const Texts& settings)
      : function_({"function", "--insecure", "--listen", "127.0.0.1:0", "--ttl",
                   "2s"}) {
    EXPECT_TRUE(function_.WaitForStderr("listening on"));
    Texts serve = {
        "serve",   "--insecure", "--listen",   "127.0.0.1:0",
        "--admin", "",           "--upstream", function_.Listening()[0]};
    serve.insert(serve.end(), settings.begin(), settings.end());
    daemon_ = std::make_unique<Process>(serve);
    EXPECT_TRUE(daemon_->WaitForStderr("listening on"));
  }
  ~Served() { Stop(); }

  std::string function() const { return function_.Listening()[0]; }
  std::string daemon() const { return daemon_->Listening()[0]; }
  void Stop() {
    if (daemon_ == nullptr) return;
    daemon_->Signal(SIGTERM);
    daemon_->Wait();
    daemon_.reset();
  }

  // The results of a load: twenty composites whose versions change. Without a
  // warm-up, it counts each call that the daemon has.
  json Load(const Texts& more, const std::string& warmup = "3s") {
    Texts load = {"load",
                  kXr,
                  kComposition,
                  "--function",
                  absl::StrCat("function-measured=", daemon()),
                  "--composites",
                  "20",
                  "--start",
                  "steady",
                  "--churn",
                  "noop=1200",
                  "--warmup",
                  warmup,
                  "--duration",
                  "6s",
                  "--seed",
                  "7",
                  "--progress",
                  "none",
                  "--json",
                  "-"};
    load.insert(load.end(), more.begin(), more.end());
    Process process(load);
    EXPECT_EQ(process.Wait(), 0) << process.Stderr();
    return json::parse(process.Stdout());
  }

 private:
  Process function_;
  std::unique_ptr<Process> daemon_;
};

json Replay(const std::string& trace, const Texts& more) {
  Texts replay = {"replay", trace};
  replay.insert(replay.end(), more.begin(), more.end());
  replay.emplace_back("--json");  // to standard output
  Process process(replay);
  EXPECT_EQ(process.Wait(), 0) << process.Stderr();
  return json::parse(process.Stdout());
}

// In small, and with a tolerance for a machine that is busy with other tests;
// bench/predict is the same with 12,000 calls, within a point.
class Prediction : public ::testing::TestWithParam<Texts> {};

TEST_P(Prediction, IsWhatALoadMeasures) {
  const TempDir dir;
  const std::string trace = dir.path() + "/t";
  Served({}).Load({"--trace", trace});
  Texts what_if, serve;
  for (const std::string& setting : GetParam()) {
    what_if.insert(what_if.end(), {"--what-if", setting});
    const size_t equals = setting.find('=');
    serve.push_back(FlagName(setting.substr(0, equals)));
    serve.push_back(setting.substr(equals + 1));
  }
  const json predicted = Replay(trace, what_if)["settings"][0];
  const json measured = Served(serve).Load({});
  EXPECT_NEAR(predicted["hit_rate"].get<double>(),
              measured["hit_rate"].get<double>(), 0.1);
}

INSTANTIATE_TEST_SUITE_P(
    Heavy, Prediction,
    ::testing::Values(
        Texts{"requeue_ttl=1s"}, Texts{"ttl.max=1s", "requeue_ttl=600ms"},
        Texts{"ttl.override=5s", "requeue_ttl=original"},
        Texts{"ttl.override=5s", "requeue_ttl=original", "ttl.margin=0.3"},
        Texts{"ttl.min=1h", "requeue_ttl=original", "cache.memory=8KiB"},
        Texts{"ttl.min=1h", "requeue_ttl=original", "mask=@versions"}));

TEST(ReplayCommand, TellsPlaysAndJudges) {
  const TempDir dir;
  const std::string trace = dir.path() + "/t";
  Served served(
      {"--trace-dir", trace, "--trace-level", "full", "--ttl-max", "10m"});
  const json measured = served.Load({}, "0s");
  const std::string function = served.function();
  served.Stop();

  Process info({"replay", trace, "--info"});
  EXPECT_EQ(info.Wait(), 0) << info.Stderr();
  EXPECT_THAT(info.Stdout(), HasSubstr("for 20 composites"));
  EXPECT_THAT(info.Stdout(), HasSubstr("written by fncache serve"));

  // Without a question, the daemon's own settings are played.
  const json same = Replay(trace, {"--by", "function"})["settings"][0];
  // Prediction, where the machine has time, compares the rate that they give.
  // The trace has the calls that the load counted, and no other.
  ASSERT_EQ(same["by"].size(), 1u);
  EXPECT_EQ(same["by"][0]["measured_function_runs"], measured["function_runs"]);
  EXPECT_DOUBLE_EQ(same["by"][0]["measured_hit_rate"].get<double>(),
                   measured["hit_rate"].get<double>());

  const json masks =
      Replay(trace, {"--suggest-masks", "--what-if", "ttl.min=1h"});
  ASSERT_GE(masks["settings"].size(), 2u);
  EXPECT_GE(masks["settings"].back()["hit_rate"],
            masks["settings"][0]["hit_rate"]);

  const std::string csv = dir.path() + "/m.csv", page = dir.path() + "/p.html";
  Process judged({"replay", trace, "--mrc", csv, "--html", page, "--sweep",
                  "ttl.max=1s,1h", "--threshold", "hits:rate>0.999", "--export",
                  "csv"});
  EXPECT_EQ(judged.Wait(), 99) << judged.Stderr();
  EXPECT_THAT(judged.Stdout(), HasSubstr("\nttl.max=1h,,"));
  EXPECT_THAT(ReadFile(csv), HasSubstr("cache_memory,miss_ratio,"));
  EXPECT_THAT(ReadFile(page), HasSubstr("ttl.max=1s"));

  Process played(
      {"replay", trace, "--play", "--target", function, "--speed", "max"});
  EXPECT_EQ(played.Wait(), 0) << played.Stdout() << played.Stderr();
  EXPECT_THAT(played.Stdout(), HasSubstr(" answered as recorded, 0 otherwise"));
}

TEST(ReplayCommand, TellsWhatADaemonDidThatIsNotPlayed) {
  const TempDir dir;
  const std::string trace = dir.path() + "/t";
  Served({"--trace-dir", trace, "--trace-level", "keys", "--stale-if-error",
          "2h", "--finish-abandoned", "1m"})
      .Load({});
  const json results =
      Replay(trace, {"--what-if", "stale_while_revalidate=1h"});
  EXPECT_THAT(results["notes"].dump(),
              AllOf(HasSubstr("stale_if_error: 2h, which is not played"),
                    HasSubstr("finish_abandoned: 1m, which is not played")));
}

TEST(ReplayCommand, RefusesByName) {
  const TempDir dir;
  const std::string trace = dir.path() + "/t";
  Served({"--trace-dir", trace, "--trace-level", "keys"}).Load({});
  const struct {
    Texts arguments;
    int code;
    const char* says;
  } kRefused[] = {
      {{"--what-if", "ttl.max=soon"}, 2, "ttl.max: accepted: a duration"},
      {{"--what-if", "ttl.mx=1h"}, 2, "ttl.max"},
      {{"--what-if", "stale_if_error=1h"}, 2, "cannot be asked about: a trace"},
      {{"--what-if", "functions.f.finish_abandoned=1m"},
       2,
       "cannot be asked about: a trace"},
      {{"--what-if", "tune=on"}, 2, "tune: cannot be asked about: a trace"},
      {{"--what-if", "functions.f.tune_share=0.5"},
       2,
       "cannot be asked about: a trace has no questions"},
      {{"--sweep", "ttl.max"}, 2, "accepted: KEY=VALUE"},
      {{"--threshold", "late:count==0"}, 2, "accepted: hits, runs"},
      {{"--threshold", "hits{function=g}:rate>0"}, 2, "accepted: function"},
      {{"--play"}, 2, "--target"},
      {{"--target", "h:1"}, 2, "--play"},
      {{"--arrivals", "never"}, 2, "--arrivals"},
      {{"--what-if", "mask=@versions"}, 1, "trace.level: keys"},
      {{"--suggest-masks"}, 1, "trace.level: keys"},
      {{"--play", "--target", "127.0.0.1:1"}, 1, "level full"},
  };
  for (const auto& refused : kRefused) {
    Texts arguments = {"replay", trace};
    arguments.insert(arguments.end(), refused.arguments.begin(),
                     refused.arguments.end());
    SCOPED_TRACE(refused.arguments.back());
    Process process(arguments);
    EXPECT_EQ(process.Wait(), refused.code);
    EXPECT_THAT(process.Stderr(), HasSubstr(refused.says));
  }
  Process missing({"replay", dir.path() + "/none"});
  EXPECT_EQ(missing.Wait(), 1);
}

}  // namespace
}  // namespace fncache
