// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/stats_text.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/proxy/admin/stats_testing.h"

namespace fncache::proxy::admin {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

size_t Lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

size_t Widest(const std::string& text) {
  size_t widest = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    widest = std::max(widest, line.size());
  }
  return widest;
}

std::string TableOf(const v1::StatsResponse& stats, const Extent& extent) {
  return StatsTable(stats, ChangeBetween(absl::nullopt, stats), extent);
}

// A daemon with all kinds, numbers of the usual size, and so many functions.
v1::StatsResponse BusyStats(int functions) {
  v1::StatsResponse stats = StatsOfAMinute();
  v1::FunctionStats* const first = stats.mutable_functions(0);
  first->clear_calls_by_outcome();
  for (const char* const outcome :
       {"hit", "miss", "stale", "collapsed", "bypass", "request"}) {
    v1::Count* const count = first->add_calls_by_outcome();
    count->set_name(outcome);
    count->set_count(12345678);
  }
  first->clear_misses_by_reason();
  for (const char* const reason :
       {"new", "expired", "evicted", "purged", "generation", "not-stored",
        "unknown", "changed"}) {
    v1::Count* const count = first->add_misses_by_reason();
    count->set_name(reason);
    count->set_count(1234567);
  }
  first->clear_bypasses_by_reason();
  for (const char* const reason :
       {"authorization", "metadata", "mode-off", "operation", "unreadable",
        "shadow", "method"}) {
    v1::Count* const count = first->add_bypasses_by_reason();
    count->set_name(reason);
    count->set_count(1234567);
  }
  first->set_refreshes(12345678);
  first->set_refreshes_failed(12345678);
  first->set_refreshes_refused(12345678);
  first->set_abandoned_calls(12345678);
  first->set_abandoned_calls_finished(12345678);
  stats.set_access_log_lines_dropped(12345678);
  for (int i = 1; i < functions; ++i) {
    *stats.add_functions() = stats.functions(0);
    stats.mutable_functions(i)->set_name(
        absl::StrCat("a-function-with-a-longer-name-", i));
    stats.mutable_functions(i)->mutable_calls_by_outcome(0)->set_count(i);
  }
  return stats;
}

TEST(StatsTextTest, TellsWhatADaemonDoes) {
  EXPECT_EQ(TableOf(StatsOfAMinute(), {80, 0}),
            R"(fncache 1.2.3  ready  up 1m0s  2027-01-15 08:01:00 UTC
cpu 10.0%  resident 100 MiB  files 21/1024  in flight 2.0 KiB of 256 MiB

function    calls/s    hits  miss/s  hit p99  fn p50  fn p99   err/s   saved
function-a      1.7   90.0%     0.2    900us    10ms   500ms     0.0     45s

calls          hit    miss
a second *     1.5     0.2
in all          90      10

misses         new  changed
a second *     0.1      0.1
in all           4        6

tier    entries     bytes       of    used  evicted/s  expired/s  errors
memory    1,234  64.0 MiB  256 MiB   25.0%        1.0        0.5       0

fills 0.1/s  dropped 1  calls refused 5  * a second: since the start
bypasses  operation 2
)");
}

TEST(StatsTextTest, StaleServingHasLinesWhereItIs) {
  v1::StatsResponse stats = StatsOfAMinute();
  v1::FunctionStats* const function = stats.mutable_functions(0);
  function->set_abandoned_calls_refused(1);
  EXPECT_THAT(TableOf(stats, {80, 0}),
              HasSubstr("\nabandoned 0/s  running 0  stored 0  refused 1\n"));
  EXPECT_THAT(TableOf(stats, {80, 0}), Not(HasSubstr("refreshes")));
  function->set_refreshes(120);
  function->set_refreshes_failed(3);
  function->set_refreshes_refused(2);
  function->set_refreshes_running(1);
  function->set_entries_superseded(4);
  v1::Count* const code = function->add_errors_served_over_by_code();
  code->set_name("UNAVAILABLE");
  code->set_count(5);
  function->set_abandoned_calls(60);
  function->set_abandoned_calls_finished(50);
  function->set_abandoned_calls_running(7);
  function->set_keys_backing_off(2);
  stats.set_access_log_lines_written(600);
  EXPECT_THAT(TableOf(stats, {80, 0}), Not(HasSubstr("access log")));
  stats.set_access_log_lines_dropped(1234);
  EXPECT_THAT(TableOf(stats, {80, 0}),
              HasSubstr("start\nbypasses  operation 2\nrefreshes 2.0/s  "
                        "running 1  failed 3  refused 2\n"
                        "errors served over 5  old answers dropped 4\n"
                        "abandoned 1.0/s  running 7  stored 50  refused 1\n"
                        "keys backing off 2\n"
                        "access log 10.0/s  dropped 1,234\n"));
  v1::StatsResponse later = stats;
  later.mutable_uptime()->set_seconds(62);
  v1::FunctionStats* const then = later.mutable_functions(0);
  then->set_refreshes(121);
  then->set_abandoned_calls_finished(51);
  then->mutable_errors_served_over_by_code(0)->set_count(7);
  later.set_access_log_lines_dropped(1236);
  const json said = json::parse(StatsJson(later, ChangeBetween(stats, later)));
  const json& one = said["functions"][0];
  EXPECT_EQ(one["refreshes_running"], 1);
  EXPECT_EQ(one["abandoned_calls_running"], 7);
  EXPECT_EQ(one["keys_backing_off"], 2);
  EXPECT_EQ(one["since_start"]["refreshes_failed"], 3);
  EXPECT_EQ(one["interval"]["refreshes"], 1);
  EXPECT_EQ(one["interval"]["refreshes_failed"], 0);
  EXPECT_EQ(one["interval"]["refreshes_refused"], 0);
  EXPECT_EQ(one["interval"]["errors_served_over"], 2);
  EXPECT_EQ(one["since_start"]["errors_served_over_by_code"]["UNAVAILABLE"], 7);
  EXPECT_EQ(one["interval"]["entries_superseded"], 0);
  EXPECT_EQ(one["interval"]["abandoned_calls"], 0);
  EXPECT_EQ(one["interval"]["abandoned_calls_finished"], 1);
  EXPECT_EQ(one["interval"]["abandoned_calls_refused"], 0);
  EXPECT_EQ(said["access_log_lines"]["interval"]["dropped"], 2);
  EXPECT_EQ(said["access_log_lines"]["since_start"]["written"], 600);
}

TEST(StatsTextTest, FitsATerminalOf80By24) {
  for (const int functions : {1, 2, 3, 5, 30}) {
    const std::string table = TableOf(BusyStats(functions), {80, 24});
    EXPECT_LE(Widest(table), 80u) << table;
    EXPECT_LE(Lines(table), 24u) << table;
  }
}

TEST(StatsTextTest, BypassesAreALineWithTheirReasons) {
  v1::StatsResponse stats = StatsOfAMinute();
  auto* const counts = stats.mutable_functions(0)->mutable_bypasses_by_reason();
  EXPECT_THAT(TableOf(stats, {80, 0}), HasSubstr("\nbypasses  operation 2\n"));
  *stats.add_functions() = stats.functions(0);
  counts->Mutable(1)->set_count(7);
  EXPECT_THAT(TableOf(stats, {80, 0}),
              HasSubstr("\nbypasses  method 7  operation 4\n"));
  for (const char* const reason : {"shadow", "metadata", "mode-off"}) {
    v1::Count* const count = counts->Add();
    count->set_name(reason);
    count->set_count(3);
  }
  EXPECT_THAT(
      TableOf(stats, {80, 0}),
      HasSubstr("\nbypasses  method 7  operation 4  metadata 3  others 6\n"));
  for (auto& function : *stats.mutable_functions()) {
    function.clear_bypasses_by_reason();
  }
  EXPECT_THAT(TableOf(stats, {80, 0}), Not(HasSubstr("bypasses")));
}

TEST(StatsTextTest, TheLeastBusyFunctionsAreLeftOut) {
  const std::string table = TableOf(BusyStats(30), {80, 24});
  EXPECT_THAT(table, HasSubstr("function-a "));
  EXPECT_THAT(table, HasSubstr("less busy ones"));
  EXPECT_THAT(TableOf(BusyStats(30), {80, 60}), Not(HasSubstr("less busy")));
}

TEST(StatsTextTest, SaysWhatSomebodyShouldLookAt) {
  v1::StatsResponse stats = StatsOfAMinute();
  v1::FunctionStats* const function = stats.mutable_functions(0);
  function->set_reachable(false);
  function->mutable_unreachable_since()->set_seconds(1800000030);
  function->set_unreachable_why("connection \033[31mrefused");
  stats.mutable_tiers(0)->set_up(false);
  auto* const soon = stats.add_certificates();
  soon->set_side("listener");
  soon->mutable_expires()->set_seconds(1800000060 + 3600);
  auto* const over = stats.add_certificates();
  over->set_side("upstream");
  over->mutable_expires()->set_seconds(1800000000);
  EXPECT_THAT(TableOf(stats, {80, 0}),
              HasSubstr("! function-a cannot be reached at dns:///a:9443 for "
                        "30s: connection \\x1b[31mrefused\n"
                        "! the memory tier is down; the daemon's log says why\n"
                        "! the listener certificate expires in 1h0m\n"
                        "! the upstream certificate has expired\n"));
}

// A fleet's tier, as docs/admin.md shows it.
v1::StatsResponse SharedStats() {
  v1::StatsResponse stats = StatsOfAMinute();
  *stats.mutable_shared() = Parsed<v1::SharedStats>(R"pb(
    up: true
    since { seconds: 1799989140 }
    cluster: true
    nodes { address: "redis-0:6379" state: "up" }
    nodes { address: "redis-1:6379" state: "up" }
    nodes { address: "redis-2:6379" state: "up" }
    version: "7.2.4"
    round_trip { nanos: 310000 }
    clock_difference { nanos: 2100000 }
    bans_age { nanos: 400000000 }
    bans_written: true
    lookups { name: "hit" count: 7 }
    writes { name: "stored" count: 8 }
  )pb");
  return stats;
}

TEST(StatsTextTest, TheSharedTierIsAsThePageShowsIt) {
  const std::string table = TableOf(SharedStats(), {80, 0});
  const size_t begin = table.find("shared  ");
  ASSERT_NE(begin, std::string::npos);
  const std::string shown =
      table.substr(begin, table.find("\n\n", begin) - begin + 1);
  std::ifstream in(FNCACHE_SOURCE_DIR "/docs/admin.md");
  const std::string page(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(page, HasSubstr("\n" + shown + "```\n"));
  EXPECT_LE(Widest(table), 80u) << table;
  EXPECT_THAT(TableOf(StatsOfAMinute(), {80, 0}), Not(HasSubstr("shared")));
}

TEST(StatsTextTest, ASharedTierThatIsDownSaysWhy) {
  v1::StatsResponse stats = SharedStats();
  v1::SharedStats* const shared = stats.mutable_shared();
  shared->set_up(false);
  shared->mutable_since()->set_seconds(1800000030);
  shared->set_why("connection \033[31mrefused");
  shared->mutable_clock_difference()->set_nanos(-2100000);
  shared->clear_bans_age();
  for (auto& node : *shared->mutable_nodes()) {
    node.set_state("down");
    node.set_why("no");
    node.mutable_since()->set_seconds(1800000050);
  }
  shared->mutable_nodes(1)->set_state("up");
  for (const char* const address : {"redis-3:6379", "redis-4:6379"}) {
    v1::SharedStats::Node* const node = shared->add_nodes();
    *node = shared->nodes(0);
    node->set_address(address);
    node->clear_why();
  }
  const std::string table = TableOf(stats, {80, 0});
  EXPECT_THAT(table, HasSubstr("! the shared tier is down for 30s: connection "
                               "\\x1b[31mrefused\n"
                               "! its node redis-0:6379 is down for 10s: no\n"
                               "! its node redis-2:6379 is down for 10s: no\n"
                               "! its node redis-3:6379 is down for 10s\n\n"));
  EXPECT_THAT(table,
              HasSubstr("\nshared  down for 30s  Cluster, nodes 1/5  version "
                        "7.2.4  round trip 310us\n"
                        "  clock -2.1ms  bans never read\n\n"));
}

TEST(StatsTextTest, TheSharedTierIsInTheJson) {
  const auto of = [](const v1::StatsResponse& stats) {
    return json::parse(
        StatsJson(stats, ChangeBetween(absl::nullopt, stats)))["shared"];
  };
  EXPECT_EQ(of(StatsOfAMinute()), json());
  EXPECT_EQ(of(SharedStats()), json({{"up", true},
                                     {"since_unix_seconds", 1799989140.0},
                                     {"why", ""},
                                     {"cluster", true},
                                     {"nodes", of(SharedStats())["nodes"]},
                                     {"version", "7.2.4"},
                                     {"round_trip_seconds", 310e-6},
                                     {"clock_difference_seconds", 0.0021},
                                     {"bans_age_seconds", 0.4},
                                     {"bans_written", true},
                                     {"lookups", {{"hit", 7}}},
                                     {"writes", {{"stored", 8}}}}));
  EXPECT_EQ(of(SharedStats())["nodes"][2]["address"], "redis-2:6379");
}

TEST(StatsTextTest, ALaterLookTellsItsOwnRates) {
  v1::StatsResponse later = StatsOfAMinute();
  later.mutable_uptime()->set_seconds(62);
  later.mutable_functions(0)->mutable_calls_by_outcome(0)->set_count(190);
  const Change change = ChangeBetween(StatsOfAMinute(), later);
  const std::string table = StatsTable(later, change, {80, 0});
  EXPECT_THAT(table, HasSubstr("a second    50.0"));
  EXPECT_THAT(table, HasSubstr("in all       190"));
  EXPECT_THAT(table, Not(HasSubstr("since the start")));
}

TEST(StatsTextTest, NamesCannotHarmATerminalOrATable) {
  v1::StatsResponse stats = StatsOfAMinute();
  stats.mutable_functions(0)->set_name("\033]0;title\a" + std::string(50, 'n'));
  const std::string table = TableOf(stats, {80, 0});
  EXPECT_THAT(table, Not(HasSubstr("\033")));
  EXPECT_LE(Widest(table), 80u) << table;
  stats.mutable_functions(0)->set_name("функция-с-длинным-именем");
  EXPECT_THAT(TableOf(stats, {80, 0}), HasSubstr("функция-с-~"));
}

TEST(StatsTextTest, JsonIsAnObjectOnALine) {
  v1::StatsResponse later = StatsOfAMinute();
  later.mutable_uptime()->set_seconds(62);
  later.mutable_functions(0)->mutable_calls_by_outcome(0)->set_count(190);
  const std::string text =
      StatsJson(later, ChangeBetween(StatsOfAMinute(), later));
  EXPECT_EQ(Lines(text), 1u);
  const json said = json::parse(text);
  EXPECT_EQ(said["version"], "1.2.3");
  EXPECT_EQ(said["interval_seconds"], 2.0);
  EXPECT_EQ(said["uptime_seconds"], 62.0);
  const json& function = said["functions"][0];
  EXPECT_EQ(function["name"], "function-a");
  EXPECT_EQ(function["flights"], 2);
  EXPECT_EQ(function["interval"]["calls"], 100);
  EXPECT_EQ(function["interval"]["calls_per_second"], 50.0);
  EXPECT_EQ(function["interval"]["hit_rate"], json());
  EXPECT_EQ(function["since_start"]["calls_by_outcome"]["hit"], 190);
  EXPECT_EQ(function["since_start"]["hit_rate"], 0.9);
  EXPECT_EQ(function["since_start"]["misses_by_reason"]["changed"], 6);
  EXPECT_EQ(function["since_start"]["bypasses_by_reason"]["operation"], 2);
  EXPECT_EQ(function["since_start"]["function_seconds_saved"], 45.0);
  EXPECT_EQ(function["since_start"]["upstream_errors"], 1);
  EXPECT_EQ(function["since_start"]["latency_by_outcome"]["hit"]["p50_seconds"],
            20e-6);
  EXPECT_EQ(function["since_start"]["upstream_latency"]["p99_seconds"], 0.5);
  EXPECT_EQ(said["tiers"][0]["entries_removed"]["since_start"]["evicted"], 60);
  EXPECT_EQ(said["fills_dropped"]["since_start"]["queue_full"], 1);
  EXPECT_EQ(said["inflight_bytes"]["limit"], 268435456);
  EXPECT_EQ(said["inflight_refused"]["since_start"], 5);
}

}  // namespace
}  // namespace fncache::proxy::admin
