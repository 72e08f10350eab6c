// SPDX-License-Identifier: Apache-2.0
// Schedules, thresholds, results as JSON and as a page, comparisons: what the
// driver of `fncache load` makes of what was measured.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runner/load/ci_reports.h"
#include "runner/load/compare.h"
#include "runner/load/measure.h"
#include "runner/load/options.h"
#include "runner/load/pipeline_load.h"
#include "runner/load/report_html.h"
#include "runner/load/results.h"
#include "runner/load/schedule.h"
#include "runner/load/summary.h"
#include "runner/load/threshold.h"
#include "runner/load/verdict.h"
#include "runner/render/inputs.h"
#include "tests/common/loopback_socket.h"

namespace fncache::runner::load {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(ScheduleTest, StartsFollowFromTheBeginning) {
  Schedule schedule(3);
  EXPECT_EQ(schedule.At(0), 0);
  EXPECT_EQ(schedule.At(3), 1'000'000'000);
  EXPECT_NEAR(static_cast<double>(schedule.At(3'000'000)), 1e15, 1e3);
}

TEST(ScheduleTest, StagesRampInAStraightLine) {
  const auto stages = ParseStages("10s:10,10s:10,10s:0");
  ASSERT_TRUE(stages.ok()) << stages.status();
  EXPECT_EQ(TotalTime(*stages), absl::Seconds(30));
  Schedule schedule(*stages);
  // The integral of a ramp to r within t is r t / 2: 50, then 100, then 50.
  EXPECT_NEAR(static_cast<double>(schedule.At(50)) / 1e9, 10, 1e-6);
  EXPECT_NEAR(static_cast<double>(schedule.At(100)) / 1e9, 15, 1e-6);
  EXPECT_NEAR(static_cast<double>(schedule.At(150)) / 1e9, 20, 1e-6);
  EXPECT_GT(schedule.At(199), 0);
  EXPECT_EQ(schedule.At(200), -1);
  // n = t^2 / 2 in the first.
  EXPECT_NEAR(static_cast<double>(schedule.At(8)) / 1e9, 4, 1e-6);
}

TEST(ScheduleTest, WrongStagesAreRefused) {
  for (const char* text : {"", "10s", "10s:-1", "0s:1", "10s:0", "x:1"}) {
    const auto stages = ParseStages(text);
    ASSERT_FALSE(stages.ok()) << text;
    EXPECT_THAT(std::string(stages.status().message()),
                HasSubstr("--stages: "));
  }
}

LatencySummary Of(std::vector<std::pair<double, uint64_t>> buckets) {
  LatencySummary latency;
  double sum = 0, count = 0;
  for (const auto& [end, times] : buckets) {
    sum += end * static_cast<double>(times);
    count += static_cast<double>(times);
  }
  latency.mean = sum / count;
  latency.min = buckets.front().first;
  latency.max = buckets.back().first;
  latency.p50 = *PercentileOf(buckets, 50);
  latency.p99 = *PercentileOf(buckets, 99);
  latency.buckets = std::move(buckets);
  return latency;
}

LoadResults Sample() {
  LoadResults results;
  results.tool_version = "1";
  results.started = "2026-01-02T03:04:05Z";
  results.settings["--rate"] = "10";
  results.machine["cores"] = "2";
  results.duration = 10;
  results.pipelines.count = 100;
  results.pipelines.rate = 10;
  results.pipelines.errors = 2;
  results.pipelines.late = 3;
  results.pipelines.dropped = 25;
  results.pipelines.latency = Of({{0.5, 90}, {2, 10}});
  results.pipelines.service_time = Of({{0.25, 100}});
  CallResults hits;
  hits.step = "one";
  hits.function = "f";
  hits.outcome = "hit";
  hits.count = 75;
  hits.rate = 7.5;
  hits.latency = Of({{0.001, 75}});
  CallResults misses = hits;
  misses.outcome = "miss";
  misses.count = 25;
  misses.errors = 5;
  misses.latency = Of({{1, 25}});
  results.calls = {hits, misses};
  results.hit_rate = 0.75;
  results.function_runs = 25;
  results.function_seconds = 25;
  results.composites.count = 4;
  results.composites.ready = 3;
  results.composites.deleted = 2;
  results.errors.push_back({"boom <b>\x1b[1m", 2, "step one"});
  results.thresholds.push_back({"late:count==0", 3.0, false});
  results.thresholds.push_back({"call:p(99)<1s", absl::nullopt, false});
  results.daemon.emplace();
  results.daemon->outcomes["hit"] = 75;
  results.daemon->agrees = true;
  results.unreached.push_back({"f", "h:1", "connection refused"});
  results.verdict.emplace();
  results.verdict->shortest = 5;
  results.verdict->longest = 5;
  results.verdict->needed = 0.8;
  results.verdict->workers = 100;
  results.settle.changing = {"composite: status.token"};
  TimelinePoint point;
  point.at = 1;
  point.seconds = 1;
  point.pipelines = 10;
  point.hits = 7;
  point.misses = 3;
  point.p99 = 2;
  results.timeline = {point, point};
  results.timeline[1].at = 2;
  return results;
}

const ThresholdNames& Names() {
  static const auto* const names = new ThresholdNames{{"one", "two"}, {"f"}};
  return *names;
}

struct Case {
  const char* expression;
  double value;
  bool ok;
};

TEST(ThresholdTest, EachMetricIsEvaluated) {
  const Case cases[] = {
      {"pipeline:p(90)<=500ms", 0.5, true},
      {"pipeline:p(95)<2s", 2, false},
      {"pipeline:avg<1s", 0.65, true},
      {"pipeline:mean<1s", 0.65, true},
      {"pipeline:min>=0.5s", 0.5, true},
      {"pipeline:max<1s", 2, false},
      {"pipeline:med<1s", 0.5, true},
      {"pipeline:count==100", 100, true},
      {"pipeline:rate>=10", 10, true},
      {"service:max<300ms", 0.25, true},
      {"call:p(50)<5ms", 0.001, true},
      {"call{outcome=miss}:p(50)<5ms", 1, false},
      {"call{step=one, function=f, outcome=hit}:p(99) < 5ms", 0.001, true},
      {"errors:rate<0.01", 0.02, false},
      {"errors:rate<5%", 0.02, true},
      {"errors{step=one}:rate<0.1", 0.05, true},
      {"errors:count!=2", 2, false},
      {"hits:rate>0.8", 0.75, false},
      {"hits:count>70", 75, true},
      {"late:count==0", 3, false},
      {"dropped:rate<0.21", 0.2, true},
      {"runs:rate<50", 2.5, true},
      {"runs:count<=25", 25, true},
      {"ready:rate>0.7", 0.75, true},
      {"ready:count==3", 3, true},
  };
  for (const Case& one : cases) {
    const auto threshold = ParseThreshold(one.expression, Names());
    ASSERT_TRUE(threshold.ok()) << one.expression << threshold.status();
    const ThresholdResults result = Evaluate(*threshold, Sample());
    ASSERT_TRUE(result.value.has_value()) << one.expression;
    EXPECT_NEAR(*result.value, one.value, 1e-9) << one.expression;
    EXPECT_EQ(result.ok, one.ok) << one.expression;
  }
}

TEST(ThresholdTest, WithoutDataFails) {
  for (const char* expression :
       {"call{step=two}:p(99)<1s", "call{outcome=stale}:count<1",
        "hits{step=two}:rate>=0", "errors{step=two}:rate<1"}) {
    const auto threshold = ParseThreshold(expression, Names());
    ASSERT_TRUE(threshold.ok()) << threshold.status();
    const ThresholdResults result = Evaluate(*threshold, Sample());
    EXPECT_FALSE(result.value.has_value()) << expression;
    EXPECT_FALSE(result.ok) << expression;
  }
  const auto empty = ParseThreshold("pipeline:p(99)<1s", Names());
  EXPECT_FALSE(Evaluate(*empty, LoadResults()).ok);
}

TEST(ThresholdTest, MistypedNamesWhatExists) {
  const std::pair<const char*, const char*> cases[] = {
      {"pipline:p(95)<2s", "did you mean pipeline?"},
      {"call{step=on}:p(95)<2s", "accepted: one, two"},
      {"call{function=g}:p(95)<2s", "accepted: f"},
      {"call{outcome=hits}:p(95)<2s", "did you mean hit?"},
      {"pipeline{step=one}:p(95)<2s", "there is no label for pipeline"},
      {"errors{outcome=hit}:rate<1", "accepted: step, function"},
      {"pipeline:p95<2s", "accepted: p(N), avg"},
      {"pipeline:p(101)<2s", "at most 100"},
      {"hits:p(95)>1", "accepted: count, rate"},
      {"pipeline:p(95)<2", "a duration"},
      {"hits:rate>2s", "accepted: a number"},
      {"hits:rate", "accepted: METRIC"},
      {"call{step=one:p(95)<2s", "a } is missing"},
  };
  for (const auto& [expression, why] : cases) {
    const auto threshold = ParseThreshold(expression, Names());
    ASSERT_FALSE(threshold.ok()) << expression;
    EXPECT_THAT(std::string(threshold.status().message()), HasSubstr(why));
  }
}

TEST(ResultsTest, JsonReadsBackAsItWas) {
  const std::string json = ResultsToJson(Sample());
  const auto read = ResultsFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ResultsToJson(*read), json);
  EXPECT_EQ(read->calls.size(), 2u);
  EXPECT_EQ(read->pipelines.latency.buckets,
            Sample().pipelines.latency.buckets);
  EXPECT_FALSE(read->thresholds[1].value.has_value());
}

TEST(ResultsTest, WrongJsonNamesTheMember) {
  auto json = nlohmann::json::parse(ResultsToJson(Sample()));
  json["calls"][1]["count"] = "x";
  EXPECT_THAT(std::string(ResultsFromJson(json.dump()).status().message()),
              HasSubstr("calls[1].count"));
  json["version"] = 2;
  EXPECT_THAT(std::string(ResultsFromJson(json.dump()).status().message()),
              HasSubstr("version: 2"));
  EXPECT_FALSE(ResultsFromJson("[]").ok());
  EXPECT_FALSE(ResultsFromJson("{").ok());
}

TEST(ResultsTest, WhatEarlierVersionsDidNotWriteMayBeAbsent) {
  auto json = nlohmann::json::parse(ResultsToJson(Sample()));
  json.erase("unreached");
  json.erase("verdict");
  json["calls"][0].erase("unreached");
  for (const char* const name : {"ready", "never", "changing"}) {
    json["settle"].erase(name);
  }
  json["composites"].erase("lost_ready");
  json["composites"].erase("unmarked");
  json["composites"].erase("deleted");
  json["generator"].erase("wait_p99");
  json["generator"].erase("wait_fraction");
  const auto read = ResultsFromJson(json.dump());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->verdict.has_value());
  EXPECT_THAT(Warnings(*read), IsEmpty());
  json["calls"][0]["unreached"] = "x";
  EXPECT_THAT(std::string(ResultsFromJson(json.dump()).status().message()),
              HasSubstr("calls[0].unreached"));
}

// Whether every member of the JSON is described, and every one that is
// required is there.
void CheckSchema(const nlohmann::json& schema, const nlohmann::json& root,
                 const nlohmann::json& value, const std::string& at) {
  if (schema.contains("$ref")) {
    const std::string ref = schema["$ref"];
    return CheckSchema(root["$defs"][ref.substr(ref.rfind('/') + 1)], root,
                       value, at);
  }
  if (value.is_object() && schema.contains("properties")) {
    for (const auto& [key, member] : value.items()) {
      ASSERT_TRUE(schema["properties"].contains(key)) << at << "." << key;
      CheckSchema(schema["properties"][key], root, member, at + "." + key);
    }
    for (const auto& name : schema["required"]) {
      EXPECT_TRUE(value.contains(name.get<std::string>())) << at << name;
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (const auto& item : value) CheckSchema(schema["items"], root, item, at);
  }
}

TEST(ResultsTest, TheSchemaDescribesEveryMember) {
  std::ifstream file(
      absl::StrCat(FNCACHE_SOURCE_DIR, "/docs/load-results.schema.json"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto schema = nlohmann::json::parse(text, nullptr, false);
  ASSERT_TRUE(schema.is_object());
  CheckSchema(schema, schema, nlohmann::json::parse(ResultsToJson(Sample())),
              "");
}

TEST(MeasureTest, HitsAndMissesAreApart) {
  Measure measure;
  measure.AddPipeline(1, 1, true);  // before Start: in no count
  measure.Start(MonotonicNanos());
  auto* const series = measure.SeriesOf("one", "f");
  measure.AddCall(series, Outcome::kHit, 1'000'000, CallEnd::kOk);
  measure.AddCall(series, Outcome::kCollapsed, 1'000'000, CallEnd::kOk);
  measure.AddCall(series, Outcome::kMiss, 500'000'000, CallEnd::kOk);
  measure.AddCall(series, Outcome::kBypass, 250'000'000, CallEnd::kFailed);
  measure.AddPipeline(2'000'000, 1'000'000, false);
  for (int i = 0; i < 150; ++i) {
    measure.AddError(absl::StrCat("e", i), [] { return "here"; });
  }
  measure.AddLag(20'000'000);
  measure.AddLag(1'000);
  measure.Stop(MonotonicNanos());
  LoadResults results;
  measure.Fill(&results);
  EXPECT_EQ(results.pipelines.count, 1u);
  EXPECT_EQ(results.pipelines.late, 1u);
  EXPECT_THAT(results.calls, SizeIs(4));
  EXPECT_DOUBLE_EQ(*results.hit_rate, 2.0 / 3);
  EXPECT_EQ(results.function_runs, 2u);
  EXPECT_NEAR(results.function_seconds, 0.75, 1e-6);
  EXPECT_THAT(results.errors, SizeIs(101));
}

TEST(MeasureTest, CallsThatReachedNoFunctionAreNoRuns) {
  Measure measure;
  measure.Start(MonotonicNanos());
  auto* const series = measure.SeriesOf("one", "f");
  measure.AddCall(series, Outcome::kNone, 1'000'000'000, CallEnd::kFailed);
  measure.AddCall(series, Outcome::kNone, 120'000'000'000,
                  CallEnd::kNotReached);
  measure.Stop(MonotonicNanos());
  LoadResults results;
  measure.Fill(&results);
  ASSERT_THAT(results.calls, SizeIs(1));
  EXPECT_EQ(results.calls[0].count, 2u);
  EXPECT_EQ(results.calls[0].errors, 2u);
  EXPECT_EQ(results.calls[0].unreached, 1u);
  EXPECT_EQ(results.function_runs, 1u);
  EXPECT_NEAR(results.function_seconds, 1, 1e-6);
  const auto runs = ParseThreshold("runs:count==1", Names());
  ASSERT_TRUE(runs.ok());
  results.duration = 1;
  EXPECT_TRUE(Evaluate(*runs, results).ok);
}

TEST(MeasureTest, WhatAnswersWaitForThreadsIsTheGeneratorsOwn) {
  Measure measure;
  measure.Start(MonotonicNanos());
  for (int i = 0; i < 10; ++i) measure.AddWait(30'000'000);
  measure.AddPipeline(400'000'000, 400'000'000, true);
  measure.Stop(MonotonicNanos());
  LoadResults results;
  measure.Fill(&results);
  EXPECT_NEAR(results.generator.wait_p99, 0.03, 0.001);
  EXPECT_NEAR(results.generator.wait_fraction, 0.75, 0.01);
}

TEST(MeasureTest, OutcomesAreReadFromCacheStatus) {
  EXPECT_EQ(OutcomeOf(""), Outcome::kNone);
  EXPECT_EQ(OutcomeOf("fncache; hit; ttl=37"), Outcome::kHit);
  EXPECT_EQ(OutcomeOf("fncache; hit; ttl=-3"), Outcome::kStaleHit);
  EXPECT_EQ(OutcomeOf("fncache; fwd=miss; stored"), Outcome::kMiss);
  EXPECT_EQ(OutcomeOf("fncache; fwd=stale; stored"), Outcome::kMiss);
  EXPECT_EQ(OutcomeOf("fncache; fwd=miss; collapsed"), Outcome::kCollapsed);
  EXPECT_EQ(OutcomeOf("fncache; fwd=request"), Outcome::kBypass);
  EXPECT_EQ(OutcomeOf("fncache; fwd=miss; detail=\"changed: hit; a, b\""),
            Outcome::kMiss);
}

TEST(CompareTest, OnlyWhatIsSureAndLargeIsWorse) {
  const LoadResults before = Sample();
  EXPECT_THAT(Regressions(Compare(before, before), 0), IsEmpty());
  LoadResults after = before;
  after.pipelines.latency = Of({{5, 100}});
  const auto worse = Regressions(Compare(before, after), 0.1);
  ASSERT_FALSE(worse.empty());
  EXPECT_EQ(worse[0].name, "pipelines: p50");
  EXPECT_THAT(Regressions(Compare(before, after), 100), IsEmpty());
  EXPECT_THAT(CompareText(Compare(before, after)), HasSubstr("+900.0%"));
  // The other way round it is better.
  EXPECT_THAT(Regressions(Compare(after, before), 0.1), IsEmpty());
}

// Every tag is closed in the right order, and no < or & stands for itself.
void ExpectWellFormed(const std::string& html) {
  std::vector<std::string> open;
  size_t at = html.find("<html");
  ASSERT_NE(at, std::string::npos);
  while ((at = html.find('<', at)) != std::string::npos) {
    const size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(tag.substr(1), open.back());
      open.pop_back();
    } else if (tag.back() != '/' && name != "br") {
      open.push_back(name);
    }
    at = end;
  }
  EXPECT_THAT(open, IsEmpty());
}

TEST(ReportTest, ThePageIsWellFormedAndEscaped) {
  LoadResults results = Sample();
  results.settings["--threshold"] = "<script>alert(1)</script>&\"'";
  results.calls[0].step = "<img src=x>";
  for (const std::string& page :
       {ReportHtml(results, nullptr), ReportHtml(results, &results)}) {
    ExpectWellFormed(page);
    EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<img")),
                            Not(HasSubstr("http")), Not(HasSubstr("\x1b")),
                            HasSubstr("boom &lt;b&gt;"),
                            HasSubstr("prefers-color-scheme:dark")));
  }
  ExpectWellFormed(ReportHtml(LoadResults(), nullptr));
}

TEST(SummaryTest, NothingReachesATerminalAsItIs) {
  EXPECT_THAT(SummaryText(Sample()),
              AllOf(HasSubstr("hit rate 75.0%"), HasSubstr("FAILS  late"),
                    HasSubstr("no data"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(PercentileText(Sample()), HasSubstr("0.900000"));
}

TEST(SummaryTest, WarnsOfWhatMakesNumbersMisleading) {
  LoadResults results = Sample();
  results.unreached.clear();
  results.settle.changing.clear();
  results.settle.ready = 60;
  results.composites.count = 60;
  results.composites.ready = 58;
  EXPECT_THAT(Warnings(results), IsEmpty());
  results.composites.lost_ready = 2;
  EXPECT_THAT(SummaryText(results),
              HasSubstr("warning: 2 of 60 that were ready after settling are "
                        "no longer ready: "));
  results.composites.lost_ready = 0;
  results.composites.unmarked = 60;
  EXPECT_THAT(SummaryText(results),
              AllOf(HasSubstr("60 composites cannot become ready: no step"),
                    Not(HasSubstr("any more"))));
  results.composites.unmarked = 0;
  results.settle.never = 1;
  results.settle.changing = {"composite: status.token", "condition Odd"};
  EXPECT_THAT(SummaryText(results),
              HasSubstr("warning: 1 composite never settles, because each "
                        "answer differs from the one before: composite: "
                        "status.token; condition Odd\n"));
  results.unreached.push_back({"f", "h:1", "connection refused"});
  EXPECT_THAT(SummaryText(results),
              HasSubstr("warning: f is not reached at h:1: connection "
                        "refused\n"));
}

TEST(VerdictTest, SaysWhatTheseCompositesNeed) {
  LoadResults results = Sample();
  results.composites.count = 300;
  results.pipelines.service_time.mean = 2;
  results.verdict->needed = 5;
  results.verdict->shortest = results.verdict->longest = 60;
  FillVerdict(&results);
  ASSERT_TRUE(results.verdict->busy.has_value());
  EXPECT_DOUBLE_EQ(*results.verdict->busy, 0.1);
  EXPECT_THAT(
      VerdictSentences(results),
      ElementsAre("300 composites that come back every 60.0s need 5.0/s",
                  "that keeps 10.0 of 100 workers busy (10.0%)",
                  HasSubstr("was not measured: --start create does that")));
  results.verdict->shortest = 30;
  results.verdict->churn = 95;
  results.verdict->created_ready = 4;
  results.verdict->ready_p50 = 5;
  results.verdict->ready_p95 = 6.25;
  FillVerdict(&results);
  EXPECT_THAT(
      VerdictSentences(results),
      ElementsAre("300 composites that come back every 30.0s to 60.0s need "
                  "5.0/s, and for --churn 95.0/s",
                  "that is more than 100 workers do: 200.0 are needed",
                  "a new composite is ready after 5.00s (p50), 6.25s (p95)"));
  results.verdict->longest = 0;
  EXPECT_THAT(VerdictSentences(results)[0], HasSubstr("wait for no time"));
  results.verdict.reset();
  EXPECT_THAT(VerdictSentences(results), IsEmpty());
}

TEST(VerdictTest, OneCompositeComesBack) {
  LoadResults results = Sample();
  results.composites.count = 1;
  EXPECT_EQ(VerdictSentences(results)[0],
            "1 composite that comes back every 5.00s needs 0.8/s");
  results.verdict->longest = 0;
  EXPECT_THAT(VerdictSentences(results)[0], HasSubstr("1 composite waits for"));
}

TEST(VerdictTest, WhatNeverSettlesHasTheRateThatWasMeasured) {
  LoadResults results = Sample();
  results.settle.never = 1;
  results.pipelines.rate = 400;
  results.pipelines.service_time.mean = 0.1;
  results.verdict->measured.emplace(0);
  FillVerdict(&results);
  EXPECT_EQ(VerdictSentences(results)[0],
            "4 composites ran 400/s in the measured time; there is no rate "
            "that they need, because 1 composite never settles");
  EXPECT_DOUBLE_EQ(*results.verdict->busy, 0.4);
  results.verdict.reset();  // at a rate that was asked for
  EXPECT_THAT(VerdictSentences(results),
              ElementsAre("no verdict: 1 composite never settles"));
}

TEST(VerdictTest, WithoutASuccessThereIsNone) {
  LoadResults results = Sample();
  results.pipelines.errors = results.pipelines.count;
  FillVerdict(&results);
  EXPECT_FALSE(results.verdict.has_value());
  EXPECT_THAT(SummaryText(results),
              HasSubstr("\nno verdict: no pipeline succeeded\n"));
}

TEST(VerdictTest, SaysThatNoNewCompositeBecameReady) {
  LoadResults results = Sample();
  results.verdict->created = 4;
  EXPECT_EQ(VerdictSentences(results).back(),
            "no composite became ready within 10.0s");
  results.verdict->created = 2;  // of a burst
  EXPECT_EQ(VerdictSentences(results).back(),
            "no new composite became ready within 10.0s");
}

TEST(CiReportsTest, WhatCouldNotSettleFailsWithTheReason) {
  LoadResults results;
  results.settle.failure = "no pipeline succeeded within 15s";
  const std::vector<Check> checks = Checks(results, nullptr);
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[1].name, "composites settle");
  EXPECT_FALSE(checks[1].ok);
  EXPECT_EQ(checks[1].why, results.settle.failure);
  EXPECT_THAT(MarkdownText(results, checks),
              HasSubstr("so nothing was measured: no pipeline succeeded"));
}

// The value of an attribute of the n-th element of a name.
std::string Attribute(const std::string& xml, const std::string& element,
                      const std::string& name, int n = 0) {
  size_t at = 0;
  for (int i = 0; i <= n; ++i) at = xml.find("<" + element + " ", at + 1);
  at = xml.find(" " + name + "=\"", at) + name.size() + 3;
  return xml.substr(at, xml.find('"', at) - at);
}

TEST(CiReportsTest, JunitHasACaseForEachCheck) {
  LoadResults results = Sample();
  results.unreached[0].why = "<b>\x01&\"";
  const std::vector<Check> checks = Checks(results, nullptr);
  const std::string xml = JunitText(results, checks);
  EXPECT_EQ(Attribute(xml, "testsuite", "tests"), absl::StrCat(checks.size()));
  EXPECT_EQ(Attribute(xml, "testsuite", "failures"), "3");
  EXPECT_EQ(Attribute(xml, "testcase", "name"), "function f is reached");
  EXPECT_EQ(Attribute(xml, "failure", "message"),
            "h:1: &lt;b&gt;\\x01&amp;&quot;");
  EXPECT_THAT(xml, AllOf(HasSubstr("name=\"late:count==0\"><failure "
                                   "message=\"3\"/></testcase>"),
                         HasSubstr("name=\"call:p(99)&lt;1s\"><failure "
                                   "message=\"no data\"/>"),
                         HasSubstr("name=\"pipelines succeed\"/>")));
}

TEST(CiReportsTest, ChecksAreWhatDecidesTheExitCode) {
  LoadResults results = Sample();
  results.unreached.clear();
  results.thresholds.clear();
  results.settle.pipelines = 9;
  results.settle.never = 3;
  const auto failed = [&](const std::vector<std::string>* worse) {
    std::vector<std::string> names;
    for (const Check& check : Checks(results, worse)) {
      if (!check.ok) names.push_back(check.name);
    }
    return names;
  };
  EXPECT_THAT(failed(nullptr), IsEmpty());
  results.thresholds.push_back({"late:count<9", 3.0, true});
  EXPECT_THAT(failed(nullptr), ElementsAre("composites settle"));
  results.settle.never = 0;
  results.pipelines.errors = results.pipelines.count;
  EXPECT_THAT(failed(nullptr), ElementsAre("pipelines succeed"));
  results.pipelines.errors = 0;
  const std::vector<std::string> worse = {"pipelines: p50 +90.0%"};
  EXPECT_THAT(failed(&worse), ElementsAre("no worse than the baseline"));
}

TEST(CiReportsTest, MarkdownEscapesWhatOthersWrote) {
  LoadResults results = Sample();
  results.calls[0].step = "a|b*c<img>";
  const std::string text = MarkdownText(results, Checks(results, nullptr));
  EXPECT_THAT(text, AllOf(HasSubstr("## fncache load: 2 of 5 checks hold"),
                          HasSubstr("| late:count==0 | **fails** | 3 |"),
                          HasSubstr("a\\|b\\*c&lt;img&gt;, hit"),
                          HasSubstr("f is not reached at h:1"),
                          HasSubstr("4 composites that come back every 5.00s"),
                          HasSubstr("| boom &lt;b&gt;"), Not(HasSubstr("\x1b")),
                          Not(HasSubstr("<"))));
}

TEST(CiReportsTest, CsvHasARowForEachInterval) {
  const std::vector<std::string> rows = absl::StrSplit(CsvText(Sample()), '\n');
  ASSERT_THAT(rows, SizeIs(4));  // and what is behind the last line feed
  const auto columns = [](const std::string& row) {
    return std::count(row.begin(), row.end(), ',') + 1;
  };
  EXPECT_EQ(columns(rows[0]), 19);
  EXPECT_EQ(columns(rows[1]), 19);
  EXPECT_THAT(rows[2], StartsWith("2.000,1.000,10,0,0,0,0,7,3,0,0,"));
  // Under the JSON's names, in its order.
  const auto json = nlohmann::ordered_json::parse(ResultsToJson(Sample()));
  std::string names;
  for (const auto& [name, value] : json["timeline"][0].items()) {
    absl::StrAppend(&names, names.empty() ? "" : ",", name);
  }
  EXPECT_EQ(rows[0], names);
}

absl::StatusOr<LoadOptions> Parse(std::vector<std::string> texts) {
  texts.insert(texts.begin(), "load");
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  return ParseLoadOptions(static_cast<int>(arguments.size()), arguments.data());
}

TEST(LoadOptionsTest, SeveralFilesAndATargetFollowRequest) {
  const auto options = Parse(
      {"--request", "a", "b", "127.0.0.1:1", "-c", "8", "--metadata", "k=v"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->requests, SizeIs(2));
  EXPECT_EQ(options->target, "127.0.0.1:1");
  EXPECT_EQ(options->concurrency, 8);
}

// It takes connections, and its calls have no answer.
TEST(PipelineLoadTest, AFunctionThatNeverAnswersEndsTheRun) {
  const fncache::testing::LoopbackSocket silent;
  silent.Listen(8);
  const std::string examples = absl::StrCat(FNCACHE_SOURCE_DIR, "/examples/");
  PipelineLoadHooks hooks;
  hooks.stop = [](const char*, uint64_t, uint64_t) { return false; };
  absl::Duration duration = absl::Milliseconds(100);
  const std::vector<std::string> starts = {"steady", "create"};
  for (auto start = starts.begin(); start != starts.end();) {
    auto options = Parse(
        {examples + "xr.yaml", examples + "composition.yaml",
         "--function=function-buckets=" + silent.target(),
         "--function=function-policy=" + silent.target(), "--composites=2",
         absl::StrCat("--duration=", absl::FormatDuration(duration)),
         "--reconcile-timeout", *start == "steady" ? "500ms" : "2m",
         "--start=" + *start});
    ASSERT_TRUE(options.ok()) << options.status();
    options->patience = absl::Seconds(1);
    const auto inputs = render::LoadRenderInputs(options->render);
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    Measure measure;
    LoadResults results;
    const absl::Time began = absl::Now();
    const absl::Status status =
        RunPipelineLoad(*options, *inputs, hooks, &measure, &results);
    EXPECT_LT(absl::Now() - began, absl::Milliseconds(7900) + duration);
    measure.Fill(&results);
    if (options->model.start == model::StartFrom::kSteady) {
      EXPECT_THAT(std::string(status.message()),
                  StartsWith(absl::StrCat("no pipeline succeeded within 1s: "
                                          "function-buckets at ",
                                          silent.target(), ": ")));
      EXPECT_EQ(results.settle.failure, status.message());
      ++start;
      continue;
    }
    // A busy machine may start no pipeline within a short duration.
    if (results.pipelines.count == 0 && duration < absl::Seconds(10)) {
      duration *= 4;
      continue;
    }
    ++start;
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(EveryPipelineFailed(results));
    ASSERT_THAT(results.errors, SizeIs(1));
    EXPECT_EQ(results.errors[0].message,
              "no answer 1s after the run's duration");
  }
}

TEST(LoadOptionsTest, WrongFlagsAreNamed) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--request", "a", "h:1", "--rate", "0"}, "--rate: \"0\""},
      {{"--request", "a", "h:1", "--rate", "1", "-c", "1"}, "one of them"},
      {{"--request", "a", "h"}, "TARGET: \"h\""},
      {{"--request", "a"}, "TARGET is missing"},
      {{"--request", "a", "h:1", "--duraton", "1s"}, "--duration"},
      {{"--request", "a", "h:1", "-z", "1"}, "--duration: \"1\""},
      {{"--request", "a", "h:1", "--metadata", "K=v"}, "--metadata: \"K=v\""},
      {{"a", "b", "--composite", "3"}, "did you mean --composites?"},
      {{"a", "b", "--strat", "cold"}, "did you mean --start?"},
      {{"a", "b", "--thresold=x"}, "did you mean --threshold?"},
      {{"a", "b", "--contxt-values=x"}, "did you mean --context-values?"},
      {{"--start", "warm"}, "accepted: create, steady, cold"},
      {{"--churn", "x=1"},
       "--churn: \"x=1\" is not accepted; accepted: "
       "KIND=N with KIND one of spec, composed"},
      {{"--max-change", "x"}, "--max-change"},
      {{}, "fncache load --help"},
  };
  for (const auto& [arguments, why] : cases) {
    const auto options = Parse(arguments);
    ASSERT_FALSE(options.ok()) << why;
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(why));
  }
}

}  // namespace
}  // namespace fncache::runner::load
