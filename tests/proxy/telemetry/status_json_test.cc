// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/status_json.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/proxy/telemetry/status_testing.h"

namespace fncache::proxy::telemetry {
namespace {

using nlohmann::json;

// Finds what of a value does not fit its schema. It knows as much of JSON
// Schema as docs/statusz.schema.json uses.
class Validator {
 public:
  explicit Validator(json schema) : root_(std::move(schema)) {}

  std::vector<std::string> Check(const json& value) {
    wrong_.clear();
    Check(root_, value, "");
    return wrong_;
  }

 private:
  static bool HasType(const json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_number_integer();
    return type == "number" && value.is_number();
  }

  void Check(const json& schema, const json& value, const std::string& path) {
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "$ref") {
        Check(root_.at(json::json_pointer(rule.get<std::string>().substr(1))),
              value, path);
      } else if (keyword == "type") {
        bool fits = false;
        for (const json& type : rule.is_array() ? rule : json::array({rule})) {
          fits = fits || HasType(value, type);
        }
        if (!fits) wrong_.push_back(path + ": not of type " + rule.dump());
      } else if (keyword == "enum") {
        if (std::find(rule.begin(), rule.end(), value) == rule.end()) {
          wrong_.push_back(path + ": " + value.dump() + " is none of " +
                           rule.dump());
        }
      } else if (keyword == "minimum") {
        if (value < rule) wrong_.push_back(path + ": too small");
      } else if (keyword == "items") {
        for (const json& item : value) Check(rule, item, path + "[]");
      } else if (keyword == "required") {
        for (const std::string name : rule) {
          // Null has no members.
          if (value.is_object() && !value.contains(name)) {
            wrong_.push_back(path + ": no " + name);
          }
        }
      } else if (keyword == "properties") {
        for (const auto& [name, member] : value.items()) {
          if (rule.contains(name)) {
            Check(rule[name], member, path + "." + name);
          } else {
            wrong_.push_back(path + ": " + name + " is not described");
          }
        }
      } else if (keyword != "description" && keyword != "title" &&
                 keyword != "$schema" && keyword != "$defs" &&
                 keyword != "additionalProperties") {
        wrong_.push_back("this test does not know " + keyword);
      }
    }
  }

  const json root_;
  std::vector<std::string> wrong_;
};

class StatusJsonTest : public testing::Test {
 protected:
  StatusJsonTest()
      : schema_(json::parse(
            std::ifstream(FNCACHE_SOURCE_DIR "/docs/statusz.schema.json"))) {}

  json Parse(const Status& status) {
    return json::parse(RenderStatusJson(status));
  }

  Validator schema_;
  StatusSource source_{{"a", "b"}};
};

// With something in every place.
TEST_F(StatusJsonTest, IsWhatTheSchemaSays) {
  source_.Call(0, Outcome::kHit, absl::Milliseconds(1));
  source_.Call(0, Outcome::kMiss, absl::Seconds(2), 14);
  source_.instruments.function(1).Unreachable(source_.clock.Now(), "gone");
  for (const cache::Tier tier : {cache::Tier::kMemory, cache::Tier::kDisk}) {
    source_.instruments.WatchTier(tier, [tier] {
      return cache::store::StoreStats{1, 2, 3, tier == cache::Tier::kMemory};
    });
  }
  source_.instruments.WatchCertificate(
      TlsSide::kServer, [&] { return source_.clock.Now() + absl::Hours(1); });
  source_.instruments.HandshakeFailed(TlsSide::kServer,
                                      HandshakeFault::kProtocol);
  source_.instruments.observer()->OnDropped(cache::Tier::kDisk,
                                            cache::Dropped::kError, 0);
  source_.instruments.observer()->OnError(cache::Tier::kDisk,
                                          cache::TierError::kWrite, 0);
  source_.instruments.WatchShared(
      [&] { return SharedExample(source_.clock.Now()); });
  Status status = source_.Now();
  status.functions[0].miss_paths = {{"context.now", 7}};
  status.functions[0].miss_writers = {{"kubectl", 3}};
  status.functions[0].unread = {{"observed.a", "@times", 2}};
  status.functions[0].facts = FunctionFacts();
  status.functions[0].facts->masks = {{"@times", 4, 2}};
  status.functions[0].facts->bans = {{"everything", status.reading.now, true}};
  status.functions[0].facts->more = {{"rehearsal", "not enough yet", false}};
  status.functions[0].facts->serves_stale = true;
  status.functions[0].facts->backing_off = 2;
  status.functions[0].facts->tune = TuneReport();
  status.settings = {
      {"", "cache.dir", false, false, {}, false, "default", {}},
      {"", "mask", true, true, {"a.b", "@times"}, true, "--mask", {"= x"}},
      {"a", "ttl.max", false, true, {"1h"}, true, "fncache.yaml:3", {}}};
  status.reload.file = "fncache.yaml";
  status.reload.last_successful = false;
  status.reload.error = "fncache.yaml:3: mode: why";
  status.reload.restart = {"listen: a -> b"};
  const json page = Parse(status);
  EXPECT_THAT(schema_.Check(page), testing::IsEmpty()) << page.dump(1);
  EXPECT_THAT(schema_.Check(Parse(StatusSource({"idle"}).Now())),
              testing::IsEmpty());

  // And the test would see what is not so.
  json other = page;
  other["tiers"][0]["tier"] = "attic";
  other["functions"][0].erase("name");
  other["functions"][0]["last_minute"]["hits"] = "many";
  other["more"] = 1;
  EXPECT_EQ(schema_.Check(other).size(), 4u);
}

TEST_F(StatusJsonTest, TellsTheNumbersOfThePage) {
  for (int i = 0; i < 3; ++i) {
    source_.Call(0, Outcome::kMiss, absl::Seconds(2));
  }
  source_.Bypass(0, cache::Reason::kModeOff);
  for (const int over : {0, 0, 1, 2, 2, 2, 3}) {
    source_.instruments.function(0).RecordExamined(
        static_cast<insight::explain::RepeatOver>(over));
  }
  source_.Pass(absl::Minutes(2));
  source_.Call(0, Outcome::kHit, absl::Microseconds(61));
  source_.Bypass(0, cache::Reason::kOperation);
  source_.clock.Advance(absl::Seconds(4));
  const json page = Parse(source_.Now());
  EXPECT_EQ(page["last_minute_seconds"], 64);
  const json& recent = page["functions"][0]["last_minute"];
  EXPECT_EQ(recent["calls"], 2);
  EXPECT_EQ(recent["calls_per_second"], 2.0 / 64);
  EXPECT_EQ(recent["bypasses_by_reason"]["operation"], 1);
  EXPECT_EQ(recent["bypasses_by_reason"]["mode-off"], 0);
  EXPECT_EQ(recent["hit_rate"], 1);
  EXPECT_EQ(recent["latency_by_outcome"]["hit"]["p50_seconds"], 61e-6);
  const json& total = page["functions"][0]["since_start"];
  EXPECT_EQ(total["calls"], 6);
  EXPECT_EQ(total["bypasses_by_reason"]["operation"], 1);
  EXPECT_EQ(total["bypasses_by_reason"]["mode-off"], 1);
  EXPECT_EQ(total["hit_rate"], 0.25);
  EXPECT_EQ(total["misses_by_reason"]["unknown"], 3);
  EXPECT_EQ(total["runs_examined"], 7);
  EXPECT_EQ(total["repeats_by_over"]["drift"], 2);
  EXPECT_EQ(total["repeats_by_over"]["time"], 1);
  EXPECT_EQ(total["repeats_by_over"]["other"], 3);
  EXPECT_EQ(recent["runs_examined"], 0);
  EXPECT_EQ(total["latency_by_outcome"]["miss"]["p50_seconds"], 2);
  EXPECT_EQ(total["upstream_latency"]["p99_seconds"], 2);
  EXPECT_EQ(total["upstream_calls_by_code"]["OK"], 3);
  EXPECT_TRUE(page["functions"][1]["last_minute"]["hit_rate"].is_null());
}

TEST_F(StatusJsonTest, HasTheSharedTierWhereThereIsOne) {
  EXPECT_EQ(Parse(source_.Now())["shared"], json());
  cache::store::SharedFigures figures = SharedExample(source_.clock.Now());
  source_.instruments.WatchShared([&figures] { return figures; });
  const json shared = Parse(source_.Now())["shared"];
  EXPECT_EQ(shared["up"], true);
  EXPECT_EQ(shared["since_unix_seconds"], 1'799'999'910.0);
  EXPECT_EQ(shared["cluster"], true);
  EXPECT_EQ(shared["nodes"][1], json({{"address", "redis-1:6379"},
                                      {"state", "down"},
                                      {"since_unix_seconds", 1'799'999'998.0},
                                      {"why", "Connection <refused>"}}));
  EXPECT_EQ(shared["version"], "7.2.4");
  EXPECT_EQ(shared["round_trip_seconds"], 310e-6);
  EXPECT_EQ(shared["clock_difference_seconds"], -0.002);
  EXPECT_EQ(shared["bans_age_seconds"], 0.4);
  EXPECT_EQ(shared["bans_written"], true);
  EXPECT_EQ(shared["lookups"]["purged"], 6);
  EXPECT_EQ(shared["writes"]["dropped"], 10);
  figures = {};
  EXPECT_EQ(Parse(source_.Now())["shared"]["bans_age_seconds"], json());
}

TEST_F(StatusJsonTest, HasTuningWhereItIsOn) {
  Status status = source_.Now();
  status.functions[0].facts = FunctionFacts();
  status.functions[1].facts = FunctionFacts();
  TuneReport tune;
  tune.figures.hits = 12;
  tune.figures.revoked_hits = 2;
  tune.figures.questions = {20, 3, 1};
  tune.figures.proofs = {5, 1, 2, 3};
  tune.figures.keys_repeating = 7;
  tune.figures.keys_proven = 8;
  tune.figures.steps_read = 1;
  tune.figures.steps_vary = 2;
  tune.saved = absl::Seconds(30);
  tune.question_time = absl::Milliseconds(1500);
  status.functions[1].facts->tune = tune;
  const json page = Parse(status);
  EXPECT_TRUE(page["functions"][0]["tuning"].is_null());
  const json expected = {
      {"hits_across_drift", 12},
      {"seconds_saved", 30.0},
      {"revoked_hits", 2},
      {"questions_by_answer", {{"same", 20}, {"differs", 3}, {"none", 1}}},
      {"question_seconds", 1.5},
      {"proofs_by_result",
       {{"proven", 5}, {"read", 1}, {"varies", 2}, {"failed", 3}}},
      {"keys_proven", 8},
      {"keys_repeating", 7},
      {"steps_reading", 1},
      {"steps_varying", 2}};
  EXPECT_EQ(page["functions"][1]["tuning"], expected);
}

TEST_F(StatusJsonTest, TellsTheMinutesOfTheLastHour) {
  source_.Call(0, Outcome::kMiss, absl::Seconds(2), 14);
  source_.Pass(absl::Minutes(2));
  source_.Call(0, Outcome::kHit, absl::Microseconds(61));
  const json page = Parse(source_.Now());
  const json& hour = page["functions"][0]["last_hour"];
  EXPECT_EQ(hour["last_minute_unix_seconds"], 1'800'000'120);
  ASSERT_EQ(hour["calls_by_outcome"]["hit"].size(), 60u);
  EXPECT_EQ(hour["calls_by_outcome"]["hit"][59], 1);
  EXPECT_EQ(hour["calls_by_outcome"]["miss"][57], 1);
  EXPECT_EQ(hour["calls_by_outcome"]["miss"][59], 0);
  EXPECT_EQ(page["functions"][0]["last_error_code"], "UNAVAILABLE");
  EXPECT_TRUE(page["functions"][1]["last_error_code"].is_null());
  EXPECT_TRUE(page["functions"][0]["callers_connections"].is_null());
}

TEST_F(StatusJsonTest, TellsOfStaleServingAbandonedCallsAndRehearsals) {
  const FunctionInstruments& f = source_.instruments.function(0);
  f.RefreshBegun();
  f.RefreshBegun();
  f.RefreshEnded();
  f.RefreshFailed();
  f.RefreshRefused();
  f.RecordServedOver(14);
  f.Superseded();
  f.CallAbandoned();
  f.AbandonedRunning(1);
  f.AbandonedFinished();
  f.AbandonedRefused();
  f.RecordShadowLookup();
  f.RecordShadowHit(ShadowBy::kMask, true);
  f.RecordShadowHit(ShadowBy::kExact, false);
  f.RecordShadowUncompared();
  source_.instruments.access_log().written.Add(5);
  source_.instruments.access_log().dropped.Add(4);
  Status status = source_.Now();
  status.functions[0].facts = FunctionFacts();
  status.functions[0].facts->refreshes_behind = true;
  status.functions[0].facts->backing_off = 3;
  json page = Parse(status);
  const json& one = page["functions"][0];
  EXPECT_EQ(one["serves_stale"], false);
  EXPECT_EQ(one["refreshes_behind"], true);
  EXPECT_EQ(one["finishes_abandoned"], false);
  EXPECT_EQ(one["refreshes_running"], 1);
  EXPECT_EQ(one["refreshes_backing_off"], 3);
  EXPECT_EQ(one["abandoned_calls_running"], 1);
  for (const char* const span : {"last_minute", "since_start"}) {
    const json& counts = one[span];
    EXPECT_EQ(counts["refreshes"], 2);
    EXPECT_EQ(counts["refreshes_failed"], 1);
    EXPECT_EQ(counts["refreshes_refused"], 1);
    EXPECT_EQ(counts["errors_served_over"], 1);
    EXPECT_EQ(counts["errors_served_over_by_code"]["UNAVAILABLE"], 1);
    EXPECT_EQ(counts["entries_superseded"], 1);
    EXPECT_EQ(counts["abandoned_calls"], 1);
    EXPECT_EQ(counts["abandoned_calls_finished"], 1);
    EXPECT_EQ(counts["abandoned_calls_refused"], 1);
    EXPECT_EQ(counts["shadow"]["lookups"], 1);
    EXPECT_EQ(counts["shadow"]["hits_by"]["mask"], 1);
    EXPECT_EQ(counts["shadow"]["hits_by"]["exact"], 1);
    EXPECT_EQ(counts["shadow"]["differences_by"]["mask"], 1);
    EXPECT_EQ(counts["shadow"]["differences_by"]["exact"], 0);
    EXPECT_EQ(counts["shadow"]["uncompared"], 1);
    EXPECT_EQ(page["access_log_lines"][span]["written"], 5);
    EXPECT_EQ(page["access_log_lines"][span]["dropped"], 4);
  }
  // Two minutes later that is no longer what happens now.
  source_.Pass(absl::Minutes(2));
  page = Parse(source_.Now());
  const json& recent = page["functions"][0]["last_minute"];
  EXPECT_EQ(recent["refreshes"], 0);
  EXPECT_EQ(recent["entries_superseded"], 0);
  EXPECT_EQ(recent["shadow"]["lookups"], 0);
  EXPECT_EQ(recent["shadow"]["hits_by"]["mask"], 0);
  EXPECT_EQ(recent["shadow"]["differences_by"]["mask"], 0);
  EXPECT_EQ(recent["shadow"]["uncompared"], 0);
  EXPECT_EQ(page["access_log_lines"]["last_minute"]["dropped"], 0);
  EXPECT_TRUE(page["functions"][0]["serves_stale"].is_null());
}

TEST_F(StatusJsonTest, TakesAnyText) {
  Status status = source_.Now();
  status.functions[0].name = "\"\\\n\x01";
  status.settings = {{"", "k", false, true, {"\xff\xfe"}, true, "w", {}}};
  const json page = Parse(status);
  EXPECT_EQ(page["functions"][0]["name"], "\"\\\n\x01");
  EXPECT_EQ(page["settings"][0]["value"], "\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace fncache::proxy::telemetry
