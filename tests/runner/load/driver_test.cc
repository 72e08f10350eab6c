// SPDX-License-Identifier: Apache-2.0
// Schedules, thresholds, results as JSON and as a page, comparisons: what the
// driver of `fncache load` makes of what was measured.
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runner/load/compare.h"
#include "runner/load/measure.h"
#include "runner/load/options.h"
#include "runner/load/report_html.h"
#include "runner/load/results.h"
#include "runner/load/schedule.h"
#include "runner/load/summary.h"
#include "runner/load/threshold.h"

namespace fncache::runner::load {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

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
  results.errors.push_back({"boom <b>\x1b[1m", 2, "step one"});
  results.thresholds.push_back({"late:count==0", 3.0, false});
  results.thresholds.push_back({"call:p(99)<1s", absl::nullopt, false});
  results.daemon.emplace();
  results.daemon->outcomes["hit"] = 75;
  results.daemon->agrees = true;
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

// Whether every member of the JSON is described, and every one that is
// required is there.
void Check(const nlohmann::json& schema, const nlohmann::json& root,
           const nlohmann::json& value, const std::string& at) {
  if (schema.contains("$ref")) {
    const std::string ref = schema["$ref"];
    return Check(root["$defs"][ref.substr(ref.rfind('/') + 1)], root, value,
                 at);
  }
  if (value.is_object() && schema.contains("properties")) {
    for (const auto& [key, member] : value.items()) {
      ASSERT_TRUE(schema["properties"].contains(key)) << at << "." << key;
      Check(schema["properties"][key], root, member, at + "." + key);
    }
    for (const auto& name : schema["required"]) {
      EXPECT_TRUE(value.contains(name.get<std::string>())) << at << name;
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (const auto& item : value) Check(schema["items"], root, item, at);
  }
}

TEST(ResultsTest, TheSchemaDescribesEveryMember) {
  std::ifstream file(
      absl::StrCat(FNCACHE_SOURCE_DIR, "/docs/load-results.schema.json"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto schema = nlohmann::json::parse(text, nullptr, false);
  ASSERT_TRUE(schema.is_object());
  Check(schema, schema, nlohmann::json::parse(ResultsToJson(Sample())), "");
}

TEST(MeasureTest, HitsAndMissesAreApart) {
  Measure measure;
  measure.AddPipeline(1, 1, true);  // before Start: in no count
  measure.Start(MonotonicNanos());
  auto* const series = measure.SeriesOf("one", "f");
  measure.AddCall(series, CacheOutcome::kHit, 1'000'000, true);
  measure.AddCall(series, CacheOutcome::kCollapsed, 1'000'000, true);
  measure.AddCall(series, CacheOutcome::kMiss, 500'000'000, true);
  measure.AddCall(series, CacheOutcome::kBypass, 250'000'000, false);
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

TEST(MeasureTest, OutcomesAreReadFromCacheStatus) {
  EXPECT_EQ(CacheOutcomeOf(""), CacheOutcome::kNone);
  EXPECT_EQ(CacheOutcomeOf("fncache; hit; ttl=37"), CacheOutcome::kHit);
  EXPECT_EQ(CacheOutcomeOf("fncache; hit; ttl=-3"), CacheOutcome::kStale);
  EXPECT_EQ(CacheOutcomeOf("fncache; fwd=miss; stored"), CacheOutcome::kMiss);
  EXPECT_EQ(CacheOutcomeOf("fncache; fwd=stale; stored"), CacheOutcome::kMiss);
  EXPECT_EQ(CacheOutcomeOf("fncache; fwd=miss; collapsed"),
            CacheOutcome::kCollapsed);
  EXPECT_EQ(CacheOutcomeOf("fncache; fwd=request"), CacheOutcome::kBypass);
  EXPECT_EQ(CacheOutcomeOf("fncache; fwd=miss; detail=\"changed: hit; a, b\""),
            CacheOutcome::kMiss);
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

// Every tag is closed in its turn, and no < or & stands for itself.
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

TEST(SummaryTest, SaysHowManyAreNotReadyAnyMore) {
  LoadResults results = Sample();
  results.composites.count = 60;
  results.composites.ready = 58;
  results.settle.pipelines = 0;
  EXPECT_THAT(SummaryText(results), Not(HasSubstr("not ready any more")));
  results.settle.pipelines = 360;
  EXPECT_THAT(SummaryText(results),
              HasSubstr("2 that had settled are not ready any more"));
  results.composites.ready = 60;
  EXPECT_THAT(SummaryText(results), Not(HasSubstr("not ready any more")));
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

TEST(LoadOptionsTest, WrongFlagsAreNamed) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--request", "a", "h:1", "--rate", "0"}, "--rate: \"0\""},
      {{"--request", "a", "h:1", "--rate", "1", "-c", "1"}, "one of them"},
      {{"--request", "a", "h"}, "TARGET: \"h\""},
      {{"--request", "a"}, "TARGET is missing"},
      {{"--request", "a", "h:1", "--duraton", "1s"}, "--duration"},
      {{"--request", "a", "h:1", "-z", "1"}, "--duration: \"1\""},
      {{"--request", "a", "h:1", "--metadata", "K=v"}, "--metadata: \"K=v\""},
      {{"--start", "warm"}, "accepted: create, steady, cold"},
      {{"--churn", "x=1"}, "--churn: \"x=1\""},
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
