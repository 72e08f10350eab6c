// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/instruments.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/telemetry/catalogue.h"
#include "proxy/telemetry/process_metrics.h"
#include "proxy/telemetry/purge_metrics.h"
#include "tests/proxy/telemetry/status_testing.h"

namespace fncache::proxy::telemetry {
namespace {

using cache::Dropped;
using cache::Removal;
using cache::Tier;
using cache::TierError;
using testing::HasSubstr;
using testing::Not;

constexpr int kOk = 0;
constexpr int kCancelled = 1;
constexpr int kDeadlineExceeded = 4;
constexpr int kUnimplemented = 12;

class InstrumentsTest : public testing::Test {
 protected:
  const FunctionInstruments& f() { return instruments_.function(0); }

  // The value of the series, "" if it is not there.
  std::string Value(absl::string_view series) {
    const std::string text = instruments_.registry()->Expose();
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::StartsWith(line, absl::StrCat(series, " "))) {
        return std::string(line.substr(series.size() + 1));
      }
    }
    return "";
  }
  std::string Builtin(absl::string_view name, absl::string_view function) {
    return Value(absl::StrCat("function_run_function_response_cache_", name,
                              "{function_name=\"", function, "\"}"));
  }
  std::string OfF(absl::string_view name) {
    return Value(absl::StrCat(name, "{function_name=\"f\"}"));
  }

  void Call(Outcome outcome, int code, bool upstream,
            Method method = Method::kV1) {
    f().Begin(method);
    f().End({method, outcome, code, upstream, absl::Milliseconds(3)});
  }

  Instruments instruments_{{"f", "g"}, /*shared=*/true};
};

TEST_F(InstrumentsTest, HitsAreHitsAndCollapsedAnswers) {
  Call(Outcome::kHit, kOk, false);
  Call(Outcome::kCollapsed, kOk, false);
  Call(Outcome::kCollapsed, kDeadlineExceeded, false);  // no answer
  EXPECT_EQ(Builtin("hits_total", "f"), "2");
  EXPECT_EQ(Builtin("misses_total", "f"), "0");
  EXPECT_EQ(Builtin("hits_total", "g"), "0");
}

TEST_F(InstrumentsTest, MissesAreLookUpsThatWentUpstream) {
  Call(Outcome::kMiss, kOk, true);
  Call(Outcome::kStale, kOk, true);
  Call(Outcome::kMiss, kDeadlineExceeded, true);
  Call(Outcome::kMiss, kDeadlineExceeded, false);  // never went
  Call(Outcome::kBypass, kOk, true);               // never looked up
  Call(Outcome::kRequest, kOk, true);
  EXPECT_EQ(Builtin("misses_total", "f"), "3");
  EXPECT_EQ(Builtin("hits_total", "f"), "0");
}

TEST_F(InstrumentsTest, BypassesAreCountedByReason) {
  const auto bypasses = [this](const char* reason) {
    return Value(absl::StrCat(
        "fncache_bypasses_total{function_name=\"f\",reason=\"", reason, "\"}"));
  };
  for (size_t why = 0; why < kBypassReasons; ++why) {
    // Its series are there before, so that a rate sees the first of them.
    const auto reason = static_cast<cache::Reason>(
        static_cast<size_t>(cache::Reason::kAuthorization) + why);
    EXPECT_EQ(BypassReasonIndex(reason), why);
    EXPECT_EQ(bypasses(BypassReasonName(why)), "0");
    f().Begin(Method::kV1);
    CallRecord record = {Method::kV1, Outcome::kBypass, kOk, true,
                         absl::Seconds(1)};
    record.reason = reason;
    f().End(record);
    EXPECT_EQ(bypasses(BypassReasonName(why)), "1");
    EXPECT_EQ(f().Read().bypassed[why], 1u);
  }
  Call(Outcome::kMiss, kOk, true);
  Call(Outcome::kRequest, kOk, true);
  EXPECT_EQ(bypasses("operation"), "1");
  EXPECT_EQ(f().Read().Calls(Outcome::kBypass), kBypassReasons);
  const FunctionCounts before = f().Read();
  EXPECT_EQ(f().Read().Since(before).bypassed[3], 0u);
}

TEST_F(InstrumentsTest, MissesAreCountedByReason) {
  const auto misses = [this](const char* reason) {
    return Value(absl::StrCat(
        "fncache_misses_total{function_name=\"f\",reason=\"", reason, "\"}"));
  };
  for (size_t why = 0; why < kMissReasons; ++why) {
    const auto reason = static_cast<cache::Reason>(
        static_cast<size_t>(cache::Reason::kNew) + why);
    EXPECT_EQ(MissReasonIndex(reason), why);
    EXPECT_EQ(misses(MissReasonName(why)), "0");
    f().Begin(Method::kV1);
    f().End({Method::kV1, Outcome::kMiss, kOk, true, absl::Seconds(1), reason});
    EXPECT_EQ(misses(MissReasonName(why)), "1");
  }
  EXPECT_EQ(misses("drift"), "1");
}

TEST_F(InstrumentsTest, RepeatsAreCountedByWhatTheyAreOver) {
  using insight::explain::RepeatOver;
  const auto repeats = [this](const char* over) {
    return Value(absl::StrCat(
        "fncache_repeats_total{function_name=\"f\",over=\"", over, "\"}"));
  };
  EXPECT_EQ(repeats("drift"), "0");
  f().RecordExamined(RepeatOver::kNone);
  f().RecordExamined(RepeatOver::kDrift);
  f().RecordExamined(RepeatOver::kDrift);
  f().RecordExamined(RepeatOver::kTime);
  EXPECT_EQ(repeats("drift"), "2");
  EXPECT_EQ(repeats("time"), "1");
  EXPECT_EQ(repeats("other"), "0");
  f().RecordExamined(RepeatOver::kOther);
  EXPECT_EQ(repeats("other"), "1");
  EXPECT_EQ(OfF("fncache_examined_runs_total"), "5");
}

TEST_F(InstrumentsTest, UnimplementedIsNoMissButARequest) {
  Call(Outcome::kMiss, kUnimplemented, true);
  EXPECT_EQ(Builtin("misses_total", "f"), "0");
  EXPECT_EQ(Value("fncache_requests_total{function_name=\"f\",method=\"v1\","
                  "outcome=\"miss\"}"),
            "1");
  EXPECT_EQ(Value("fncache_responses_total{function_name=\"f\","
                  "code=\"UNIMPLEMENTED\"}"),
            "1");
}

TEST_F(InstrumentsTest, RequestsAreCountedByMethodAndOutcomeAndLatency) {
  Call(Outcome::kHit, kOk, false, Method::kV1beta1);
  EXPECT_EQ(Value("fncache_requests_total{function_name=\"f\",method="
                  "\"v1beta1\",outcome=\"hit\"}"),
            "1");
  const std::string hit = "{function_name=\"f\",outcome=\"hit\"";
  EXPECT_EQ(Value("fncache_request_seconds_count" + hit + "}"), "1");
  EXPECT_EQ(Value("fncache_request_seconds_sum" + hit + "}"), "0.003");
  EXPECT_EQ(Value("fncache_request_seconds_bucket" + hit + ",le=\"0.001\"}"),
            "0");
  EXPECT_EQ(Value("fncache_request_seconds_bucket" + hit + ",le=\"0.005\"}"),
            "1");
}

TEST_F(InstrumentsTest, StreamsAreForwardedAndHaveNoPlaceInCallLatencies) {
  f().Begin(Method::kOther);
  EXPECT_EQ(Value("fncache_requests_in_flight{function_name=\"f\",method="
                  "\"other\"}"),
            "1");
  f().End({Method::kOther, Outcome::kBypass, kOk, true, absl::Hours(5)});
  EXPECT_EQ(Value("fncache_requests_in_flight{function_name=\"f\",method="
                  "\"other\"}"),
            "0");
  EXPECT_EQ(OfF("fncache_streams_forwarded_total"), "1");
  EXPECT_EQ(Value("fncache_bypasses_total{function_name=\"f\",reason="
                  "\"method\"}"),
            "1");
  EXPECT_EQ(Value("fncache_request_seconds_count{function_name=\"f\",outcome="
                  "\"bypass\"}"),
            "");
}

TEST_F(InstrumentsTest, AHitSavesTheFillingCallsLatency) {
  f().RecordHit(absl::Microseconds(30), absl::Seconds(2));
  f().RecordHit(absl::Microseconds(30), absl::Milliseconds(500));
  f().RecordHit(absl::Microseconds(30), absl::Seconds(-1));  // a clock's fault
  EXPECT_EQ(OfF("fncache_function_seconds_saved_total"), "2.5");
  EXPECT_EQ(Builtin("read_seconds_count", "f"), "3");
}

TEST_F(InstrumentsTest, FillsFlightsAndReleasedCallersAreCounted) {
  f().RecordFill(1000);
  f().RecordFill(24);
  EXPECT_EQ(Builtin("writes_total", "f"), "2");
  EXPECT_EQ(Builtin("bytes_written_total", "f"), "1024");
  f().FlightOpened();
  f().FlightOpened();
  std::thread([&] { f().FlightClosed(); }).join();
  EXPECT_EQ(OfF("fncache_flights"), "1");
  EXPECT_EQ(OfF("fncache_flights_opened_total"), "2");
  f().CallerJoined();
  f().CallerJoined();
  f().CallerLeft();
  EXPECT_EQ(OfF("fncache_collapsed_callers_total"), "2");
  EXPECT_EQ(OfF("fncache_collapsed_callers_waiting"), "1");
  f().CallerReleased();
  f().ReleasedWaiting(1);
  f().ReleasedRunning(2);
  f().ReleasedRunning(-1);
  EXPECT_EQ(OfF("fncache_released_callers_total"), "1");
  EXPECT_EQ(OfF("fncache_released_callers_waiting"), "1");
  EXPECT_EQ(OfF("fncache_released_callers_running"), "1");
}

TEST_F(InstrumentsTest, UpstreamCallsAreCountedByStatus) {
  f().RecordUpstream(14, absl::Seconds(1));
  f().RecordUpstream(0, absl::Seconds(2));
  f().RecordUpstream(99, absl::Seconds(3));  // no status of gRPC's
  const std::string calls = "fncache_upstream_requests_total";
  EXPECT_EQ(Value(calls + "{function_name=\"f\",code=\"UNAVAILABLE\"}"), "1");
  EXPECT_EQ(Value(calls + "{function_name=\"f\",code=\"OK\"}"), "1");
  EXPECT_EQ(Value(calls + "{function_name=\"f\",code=\"UNKNOWN\"}"), "1");
  EXPECT_EQ(OfF("fncache_upstream_request_seconds_sum"), "6");
  // Callers that leave and versions that it does not know are no failures.
  f().RecordUpstream(kCancelled, absl::Seconds(1));
  f().RecordUpstream(kUnimplemented, absl::Seconds(1));
  EXPECT_EQ(OfF("fncache_upstream_failures_total"), "2");
}

TEST_F(InstrumentsTest, DeletesAreEntriesExpiredOrEvictedFromTheLastTier) {
  cache::Observer* const store = instruments_.observer();
  store->OnRemoved(Tier::kMemory, Removal::kEvicted, 0, false, 5, 500);
  store->OnRemoved(Tier::kDisk, Removal::kEvicted, 0, true, 2, 200);
  store->OnRemoved(Tier::kDisk, Removal::kExpired, 0, true, 1, 100);
  store->OnRemoved(Tier::kDisk, Removal::kReplaced, 0, true, 7, 700);
  store->OnRemoved(Tier::kDisk, Removal::kDropped, 0, true, 7, 700);
  EXPECT_EQ(Builtin("deletes_total", "f"), "3");
  EXPECT_EQ(Builtin("bytes_deleted_total", "f"), "300");
  const std::string evictions = "fncache_evictions_total{function_name=\"f\",";
  EXPECT_EQ(Value(evictions + "tier=\"memory\",reason=\"evicted\"}"), "5");
  EXPECT_EQ(Value(evictions + "tier=\"disk\",reason=\"expired\"}"), "1");
  EXPECT_EQ(Value(evictions + "tier=\"disk\",reason=\"replaced\"}"), "7");
  EXPECT_EQ(Value(evictions + "tier=\"disk\",reason=\"dropped\"}"), "7");
}

TEST_F(InstrumentsTest, StoreEventsAreCountedPerTierAndFunction) {
  cache::Observer* const store = instruments_.observer();
  store->OnDropped(Tier::kDisk, Dropped::kQueueFull, 1);
  store->OnDropped(Tier::kDisk, Dropped::kQueueFull, 0);
  store->OnDropped(Tier::kDisk, Dropped::kShutdown, 0);
  store->OnError(Tier::kDisk, TierError::kCorrupt, 1);
  store->OnWritten(Tier::kDisk, 1, 100, absl::Milliseconds(4));
  EXPECT_EQ(Value("fncache_fills_dropped_total{reason=\"queue_full\"}"), "2");
  EXPECT_EQ(Value("fncache_fills_dropped_total{reason=\"shutdown\"}"), "1");
  EXPECT_EQ(Value("fncache_tier_errors_total{tier=\"disk\",kind=\"corrupt\"}"),
            "1");
  EXPECT_EQ(Builtin("errors_total", "g"), "1");
  EXPECT_EQ(Builtin("write_seconds_count", "g"), "1");
  EXPECT_EQ(Builtin("write_seconds_sum", "g"), "0.004");
  EXPECT_EQ(Value("fncache_tier_writes_total{function_name=\"g\","
                  "tier=\"disk\"}"),
            "1");
}

TEST_F(InstrumentsTest, AnUnknownFunctionsEventsHarmNothing) {
  cache::Observer* const store = instruments_.observer();
  const std::string before = Builtin("deletes_total", "g");
  store->OnRemoved(Tier::kDisk, Removal::kEvicted, 99, true, 2, 200);
  store->OnError(Tier::kDisk, TierError::kRead, 99);
  store->OnWritten(Tier::kDisk, 99, 1, absl::Seconds(1));
  store->OnDropped(Tier::kDisk, Dropped::kError, 99);
  EXPECT_EQ(Builtin("deletes_total", "g"), before);
  EXPECT_EQ(Value("fncache_tier_errors_total{tier=\"disk\",kind=\"read\"}"),
            "1");
  EXPECT_EQ(Value("fncache_fills_dropped_total{reason=\"error\"}"), "1");
}

TEST_F(InstrumentsTest, WatchedThingsAreReadAtEachScrape) {
  uint64_t bytes = 5;
  bool ready = false;
  bool up = false;
  instruments_.WatchTier(Tier::kMemory, [&] {
    return cache::store::StoreStats{3, bytes, 100, up};
  });
  instruments_.WatchQueue("disk_fills", [] { return size_t{4}; });
  instruments_.WatchReadiness([&] { return ready; });
  instruments_.WatchCertificate(
      TlsSide::kServer, [] { return absl::FromUnixSeconds(1'900'000'000); });
  instruments_.CertificateReloadFailed(TlsSide::kClient);
  instruments_.CertificateReloaded(TlsSide::kServer);
  EXPECT_EQ(Value("fncache_tier_bytes{tier=\"memory\"}"), "5");
  EXPECT_EQ(Value("fncache_tier_up{tier=\"memory\"}"), "0");
  bytes = 6;
  ready = true;
  up = true;
  EXPECT_EQ(Value("fncache_tier_up{tier=\"memory\"}"), "1");
  EXPECT_EQ(Value("fncache_tier_bytes{tier=\"memory\"}"), "6");
  EXPECT_EQ(Value("fncache_tier_entries{tier=\"memory\"}"), "3");
  EXPECT_EQ(Value("fncache_tier_capacity_bytes{tier=\"memory\"}"), "100");
  EXPECT_EQ(Value("fncache_queue_depth{queue=\"disk_fills\"}"), "4");
  EXPECT_EQ(Value("fncache_ready"), "1");
  EXPECT_EQ(Value("fncache_certificate_expiry_timestamp_seconds{side="
                  "\"listener\"}"),
            "1900000000");
  EXPECT_EQ(Value("fncache_certificate_reload_failures_total{side="
                  "\"upstream\"}"),
            "1");
  EXPECT_EQ(Value("fncache_certificate_reloads_total{side=\"listener\"}"), "1");
}

TEST_F(InstrumentsTest, AFunctionIsReachableUntilSomebodyFoundOutOtherwise) {
  EXPECT_EQ(OfF("fncache_function_reachable"), "1");
  const absl::Time when = absl::FromUnixSeconds(1'800'000'000);
  f().Unreachable(when, "refused");
  f().Unreachable(when + absl::Seconds(5), "no such name");
  EXPECT_EQ(OfF("fncache_function_reachable"), "0");
  EXPECT_EQ(f().reachability().since, when);
  EXPECT_EQ(f().reachability().why, "no such name");
  f().Reachable();
  EXPECT_EQ(OfF("fncache_function_reachable"), "1");
}

TEST_F(InstrumentsTest, TheSharedTierIsReadAtEachScrape) {
  EXPECT_FALSE(instruments_.ReadShared().has_value());
  cache::store::SharedFigures shared;
  instruments_.WatchShared([&] { return shared; });
  EXPECT_EQ(Value("fncache_tier_up{tier=\"shared\"}"), "0");
  EXPECT_EQ(Value("fncache_shared_bans_age_seconds"), "+Inf");
  EXPECT_EQ(Value("fncache_shared_lookups_total{result=\"rejected\"}"), "0");
  shared = SharedExample(absl::Now());
  EXPECT_EQ(Value("fncache_tier_up{tier=\"shared\"}"), "1");
  EXPECT_EQ(Value("fncache_shared_nodes{state=\"up\"}"), "1");
  EXPECT_EQ(Value("fncache_shared_nodes{state=\"connecting\"}"), "0");
  EXPECT_EQ(Value("fncache_shared_nodes{state=\"down\"}"), "1");
  EXPECT_EQ(Value("fncache_shared_redirections_total"), "11");
  EXPECT_EQ(Value("fncache_shared_clock_difference_seconds"), "-0.002");
  EXPECT_EQ(Value("fncache_shared_bans_age_seconds"), "0.4");
  const auto counts = [this](const char* of) {
    std::vector<std::string> all;
    for (const char* const result :
         {"hit", "miss", "timeout", "down", "rejected", "purged", "stored",
          "older", "refused", "dropped"}) {
      all.push_back(Value(absl::StrCat("fncache_shared_", of,
                                       "_total{result=\"", result, "\"}")));
    }
    return absl::StrJoin(all, " ");
  };
  EXPECT_EQ(counts("lookups"), "1 2 3 4 5 6    ");
  EXPECT_EQ(counts("writes"), "      7 8 9 10");
  EXPECT_EQ(instruments_.ReadShared()->version, "7.2.4");
  // Its server knows its sizes.
  EXPECT_EQ(Value("fncache_tier_entries{tier=\"shared\"}"), "");
  EXPECT_THAT(instruments_.ReadTiers(), testing::IsEmpty());
}

TEST_F(InstrumentsTest, ReportsOfTheSharedTierAreCounted) {
  cache::Observer* const store = instruments_.observer();
  EXPECT_EQ(Value("fncache_tier_errors_total{tier=\"shared\",kind=\"read\"}"),
            "0");
  store->OnError(Tier::kShared, TierError::kRead, 0);
  store->OnWritten(Tier::kShared, 0, 100, absl::Milliseconds(4));
  store->OnDropped(Tier::kShared, Dropped::kError, 0);
  store->OnRemoved(Tier::kShared, Removal::kPurged, 0, true, 1, 100);
  store->OnSharedLookup(absl::Milliseconds(3));
  EXPECT_EQ(Value("fncache_tier_errors_total{tier=\"shared\",kind=\"read\"}"),
            "1");
  EXPECT_EQ(Value("fncache_tier_writes_total{function_name=\"f\","
                  "tier=\"shared\"}"),
            "1");
  EXPECT_EQ(Value("fncache_fills_dropped_total{reason=\"error\"}"), "1");
  EXPECT_EQ(Value("fncache_shared_lookup_seconds_count"), "1");
  EXPECT_EQ(Value("fncache_shared_lookup_seconds_sum"), "0.003");
  EXPECT_THAT(instruments_.registry()->Expose(),
              Not(HasSubstr("tier=\"shared\",reason=")));
}

TEST(SeriesTest, ASharedTierHasNoneWhereThereIsNone) {
  Instruments instruments({"f"});
  instruments.observer()->OnError(Tier::kShared, TierError::kRead, 0);
  instruments.observer()->OnSharedLookup(absl::Milliseconds(3));
  const std::string text = instruments.registry()->Expose();
  EXPECT_THAT(text, Not(HasSubstr("\"shared\"")));
  EXPECT_THAT(text, Not(HasSubstr("\nfncache_shared")));
  for (const uint64_t errors :
       instruments.Read().tier_errors[static_cast<size_t>(Tier::kShared)]) {
    EXPECT_EQ(errors, 0u);
  }
}

TEST_F(InstrumentsTest, ATierThatIsDownSaysSo) {
  cache::store::StoreStats stats;
  instruments_.WatchTier(Tier::kDisk, [&] { return stats; });
  EXPECT_EQ(Value("fncache_tier_up{tier=\"disk\"}"), "1");
  stats.up = false;
  EXPECT_EQ(Value("fncache_tier_up{tier=\"disk\"}"), "0");
}

TEST_F(InstrumentsTest, DroppedFillsAreCountedByReasonAndByFunction) {
  cache::Observer* const observer = instruments_.observer();
  observer->OnDropped(Tier::kDisk, Dropped::kQueueFull, 0);
  observer->OnDropped(Tier::kMemory, Dropped::kTooLarge, 0);
  observer->OnDropped(Tier::kDisk, Dropped::kQueueFull, 77);  // not configured
  EXPECT_EQ(Value("fncache_fills_dropped_total{reason=\"queue_full\"}"), "2");
  EXPECT_EQ(OfF("fncache_function_fills_dropped_total"), "2");
  EXPECT_EQ(f().Read().fills_dropped, 2u);
}

TEST_F(InstrumentsTest, TwoReadingsDifferByWhatHappenedBetween) {
  Call(Outcome::kHit, kOk, false);
  f().RecordUpstream(14, absl::Seconds(1));
  instruments_.HandshakeFailed(TlsSide::kServer, HandshakeFault::kExpired);
  const DaemonCounts earlier = instruments_.Read();
  Call(Outcome::kHit, kOk, false);
  Call(Outcome::kStale, kOk, true);
  f().RecordUpstream(14, absl::Seconds(1));
  f().RecordUpstream(0, absl::Seconds(1));
  f().RecordUpstream(1, absl::Seconds(1));   // the caller left
  f().RecordUpstream(12, absl::Seconds(1));  // tells the version
  f().RecordFill(7);
  f().RecordHit(absl::Microseconds(3), absl::Seconds(4));
  instruments_.observer()->OnDropped(Tier::kDisk, Dropped::kError, 0);
  instruments_.observer()->OnError(Tier::kDisk, TierError::kRead, 0);
  instruments_.HandshakeFailed(TlsSide::kServer, HandshakeFault::kExpired);
  const DaemonCounts since = instruments_.Read().Since(earlier);
  const FunctionCounts& counts = since.functions[0];
  EXPECT_EQ(counts.Calls(), 2u);
  EXPECT_EQ(counts.Calls(Outcome::kHit), 1u);
  EXPECT_EQ(counts.Calls(Outcome::kStale), 1u);
  EXPECT_EQ(counts.latency[static_cast<size_t>(Outcome::kHit)].Count(), 1u);
  EXPECT_EQ(counts.hits, 1u);
  EXPECT_EQ(counts.misses, 1u);
  EXPECT_EQ(counts.UpstreamErrors(), 1u);
  EXPECT_EQ(counts.upstream_latency.Count(), 4u);
  EXPECT_EQ(counts.fills, 1u);
  EXPECT_EQ(counts.fills_dropped, 1u);
  EXPECT_EQ(counts.cache_errors, 1u);
  EXPECT_EQ(counts.saved, absl::Seconds(4));
  EXPECT_EQ(since.functions[1].Calls(), 0u);
  EXPECT_EQ(since.fills_dropped[static_cast<size_t>(Dropped::kError)], 1u);
  EXPECT_EQ(since.tier_errors[static_cast<size_t>(Tier::kDisk)]
                             [static_cast<size_t>(TierError::kRead)],
            1u);
  EXPECT_EQ(
      since.handshakes_failed[static_cast<size_t>(TlsSide::kServer)]
                             [static_cast<size_t>(HandshakeFault::kExpired)],
      1u);
}

TEST_F(InstrumentsTest, CountsAndTiersTellWhatThePageShows) {
  instruments_.WatchTier(Tier::kDisk, [] {
    return cache::store::StoreStats{1, 2, 3};
  });
  Call(Outcome::kHit, kOk, false);
  Call(Outcome::kMiss, kOk, true);
  f().Begin(Method::kV1);
  f().RecordHit(absl::Microseconds(3), absl::Seconds(4));
  instruments_.observer()->OnRemoved(Tier::kDisk, Removal::kEvicted, 1, true, 9,
                                     9);
  const FunctionCounts summary = f().Read();
  EXPECT_EQ(summary.hits, 1u);
  EXPECT_EQ(summary.misses, 1u);
  EXPECT_EQ(f().ReadGauges().in_flight, 1);
  EXPECT_EQ(summary.saved, absl::Seconds(4));
  EXPECT_EQ(summary.latency[static_cast<size_t>(Outcome::kHit)].Count(), 1u);
  const auto tiers = instruments_.ReadTiers();
  ASSERT_EQ(tiers.size(), 1u);
  EXPECT_EQ(tiers[0].tier, Tier::kDisk);
  EXPECT_EQ(tiers[0].stats.capacity, 3u);
  EXPECT_EQ(tiers[0].removed[static_cast<size_t>(Removal::kEvicted)], 9u);
}

TEST_F(InstrumentsTest, EachReasonOfAMissIsCountedAsItself) {
  for (const cache::Reason reason :
       {cache::Reason::kNew, cache::Reason::kChanged, cache::Reason::kDrift}) {
    f().Begin(Method::kV1);
    CallRecord record = {Method::kV1, Outcome::kMiss, kOk, true,
                         absl::Milliseconds(1)};
    record.reason = reason;
    f().End(record);
  }
  for (const char* const reason : {"new", "changed", "drift"}) {
    EXPECT_EQ(Value(absl::StrCat("fncache_misses_total{function_name=\"f\","
                                 "reason=\"",
                                 reason, "\"}")),
              "1")
        << reason;
  }
  EXPECT_EQ(Value("fncache_misses_total{function_name=\"f\",reason="
                  "\"unknown\"}"),
            "0");
}

TEST_F(InstrumentsTest, TuningIsCounted) {
  TuneFigures figures;
  figures.hits = 1;
  figures.revoked_hits = 2;
  figures.questions = {3, 4, 5};
  figures.proofs = {6, 7, 8, 9};
  figures.keys_repeating = 10;
  figures.keys_proven = 11;
  figures.steps_read = 12;
  figures.steps_vary = 13;
  instruments_.WatchTune(1, [&figures] { return figures; });
  const FunctionInstruments& g = instruments_.function(1);
  g.RecordTuneSaved(absl::Milliseconds(1500));
  g.RecordQuestion(absl::Milliseconds(2500));
  const auto value = [&](const std::string& name, const std::string& label) {
    return Value(absl::StrCat("fncache_tune_", name, "{function_name=\"g\"",
                              label, "}"));
  };
  EXPECT_EQ(value("hits_total", ""), "1");
  EXPECT_EQ(value("revoked_hits_total", ""), "2");
  EXPECT_EQ(value("questions_total", ",answer=\"same\""), "3");
  EXPECT_EQ(value("questions_total", ",answer=\"differs\""), "4");
  EXPECT_EQ(value("questions_total", ",answer=\"none\""), "5");
  EXPECT_EQ(value("proofs_total", ",result=\"proven\""), "6");
  EXPECT_EQ(value("proofs_total", ",result=\"read\""), "7");
  EXPECT_EQ(value("proofs_total", ",result=\"varies\""), "8");
  EXPECT_EQ(value("proofs_total", ",result=\"failed\""), "9");
  EXPECT_EQ(value("keys", ",state=\"repeating\""), "10");
  EXPECT_EQ(value("keys", ",state=\"proven\""), "11");
  EXPECT_EQ(value("steps", ",state=\"reads\""), "12");
  EXPECT_EQ(value("steps", ",state=\"varies\""), "13");
  EXPECT_EQ(value("saved_seconds_total", ""), "1.5");
  EXPECT_EQ(value("question_seconds_total", ""), "2.5");
  EXPECT_EQ(g.Read().tune_saved, absl::Milliseconds(1500));
  EXPECT_EQ(g.Read().tune_question_time, absl::Milliseconds(2500));
}

TEST_F(InstrumentsTest, OldAnswersGivenUpAreCounted) {
  f().Superseded();
  EXPECT_EQ(f().Read().superseded, 1u);
  EXPECT_THAT(instruments_.registry()->Expose(),
              HasSubstr("fncache_superseded_entries_total{function_name=\"f\"} "
                        "1\n"));
}

TEST_F(InstrumentsTest, RatesWorkFromTheFirstScrape) {
  // Counters are there, at zero, but for those that appear with their first
  // value.
  const std::string text = instruments_.registry()->Expose();
  for (const char* series :
       {"function_run_function_response_cache_hits_total{function_name=\"g\"} "
        "0\n",
        "fncache_requests_total{function_name=\"g\",method=\"v1beta1\","
        "outcome=\"collapsed\"} 0\n",
        "fncache_requests_total{function_name=\"g\",method=\"other\",outcome="
        "\"bypass\"} 0\n",
        "fncache_upstream_requests_total{function_name=\"g\",code=\"OK\"} 0\n",
        "fncache_upstream_failures_total{function_name=\"g\"} 0\n",
        "fncache_connections_ended_total{function_name=\"g\",reason="
        "\"too_much\"} 0\n",
        "fncache_fills_dropped_total{reason=\"shutdown\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(series));
  }
  EXPECT_THAT(text, Not(HasSubstr("method=\"other\",outcome=\"hit\"")));
  for (const char* later :
       {"_bucket{", "_sum{", "_count{", "code=\"UNAVAILABLE\"",
        "fncache_responses_total{", "fncache_stale_if_error_total{",
        "reason=\"peer_left\""}) {
    EXPECT_THAT(text, Not(HasSubstr(later)));
  }
}

// Everything that can be registered, registered.
void WatchAll(Instruments* instruments) {
  for (const Tier tier : {Tier::kMemory, Tier::kDisk}) {
    instruments->WatchTier(tier, [] {
      return cache::store::StoreStats{1, 2, 3};
    });
  }
  instruments->WatchShared([] { return cache::store::SharedFigures(); });
  instruments->WatchQueue("disk_fills", [] { return size_t{0}; });
  instruments->WatchReadiness([] { return true; });
  instruments->WatchTrace([] { return insight::trace::TraceStats(); });
  instruments->WatchReload([] { return ReloadFigures(); });
  instruments->WatchExplain([] { return Instruments::ExplainFigures(); });
  instruments->WatchConnections(
      0, [] { return size_t{1}; }, [] { return size_t{2}; });
  instruments->WatchBackingOff(0, [] { return size_t{3}; });
  instruments->WatchTune(0, [] { return TuneFigures(); });
  instruments->WatchVary(0, [] { return VaryFigures(); });
  instruments->WatchInflight([] { return Instruments::InflightFigures(); });
  instruments->WatchWorkers(2);
  for (const auto side : {TlsSide::kServer, TlsSide::kClient}) {
    instruments->WatchCertificate(side, [] { return absl::UnixEpoch(); });
  }
}

// `increase` and `rate` do not see the first step of a series that appears with
// it, so an alert would be late, or silent.
TEST_F(InstrumentsTest, CountersThatAnAlertReadsAreThereFromTheStart) {
  WatchAll(&instruments_);
  const std::string text = instruments_.registry()->Expose();
  std::ifstream in(FNCACHE_SOURCE_DIR "/deploy/prometheus/fncache.rules.yaml");
  const std::string rules(std::istreambuf_iterator<char>(in), {});
  const std::regex selector(R"re((fncache_[a-z_]+_total)(\{[^}]*\})?)re");
  const std::regex matcher(R"re(([a-z_]+)=(~?)"([^"]*)")re");
  size_t counters = 0;
  for (const absl::string_view line : absl::StrSplit(rules, '\n')) {
    // Comments and annotations are no expressions.
    if (absl::StrContains(line, "#") || absl::StrContains(line, ": '")) {
      continue;
    }
    const std::string expression(line);
    for (std::sregex_iterator
             at(expression.begin(), expression.end(), selector),
         end;
         at != end; ++at) {
      ++counters;
      const std::string name = (*at)[1].str(), labels = (*at)[2].str();
      const metrics::Family& family = Metric(name);
      const bool by_code = std::find(family.labels.begin(), family.labels.end(),
                                     "code") != family.labels.end();
      EXPECT_TRUE(!by_code || labels == "{code=\"OK\"}") << expression;
      // A series for each value that the expression names; any, if it names
      // none.
      std::vector<std::string> needed;
      for (std::sregex_iterator label(labels.begin(), labels.end(), matcher);
           label != end; ++label) {
        const std::string values = (*label)[3].str();
        for (const absl::string_view value : absl::StrSplit(values, '|')) {
          needed.push_back(absl::StrCat((*label)[1].str(), "=\"", value, "\""));
        }
      }
      if (needed.empty()) needed.emplace_back();
      for (const std::string& one : needed) {
        bool found = false;
        for (const absl::string_view series : absl::StrSplit(text, '\n')) {
          found = found || (absl::StartsWith(series, name) &&
                            absl::StrContains(series, one) &&
                            absl::EndsWith(series, " 0"));
        }
        EXPECT_TRUE(found) << name << " " << one;
      }
    }
  }
  EXPECT_GT(counters, 15u);
}

// A Prometheus keeps these for five functions without a call. With all buckets
// and all status codes from the start there were 2,226.
TEST(SeriesTest, FiveIdleFunctionsHaveFewerThan700) {
  Instruments instruments({"a", "b", "c", "d", "e"}, /*shared=*/true);
  WatchAll(&instruments);
  for (cache::FunctionId id = 1; id < 5; ++id) {
    instruments.WatchConnections(
        id, [] { return size_t{0}; }, [] { return size_t{0}; });
    instruments.WatchBackingOff(id, [] { return size_t{0}; });
    instruments.WatchTune(id, [] { return TuneFigures(); });
    instruments.WatchVary(id, [] { return VaryFigures(); });
  }
  const PurgeMetrics purges(instruments.registry(),
                            std::make_shared<cache::store::Bans>());
  const std::string text = instruments.registry()->Expose();
  size_t series = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!line.empty() && !absl::StartsWith(line, "#")) ++series;
  }
  EXPECT_LT(series, 700u);
  EXPECT_GT(series, 300u);
}

TEST_F(InstrumentsTest, TheCatalogueIsWhatIsExposed) {
  WatchAll(&instruments_);
  const PurgeMetrics purges(instruments_.registry(),
                            std::make_shared<cache::store::Bans>());
  std::vector<std::string> exposed;
  const std::string text = instruments_.registry()->Expose();
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "# TYPE ")) continue;
    exposed.emplace_back(line.substr(7));
  }
  std::vector<std::string> listed;
  for (const metrics::Family& family : Catalogue()) {
    listed.push_back(
        absl::StrCat(family.name, " ", metrics::TypeName(family.type)));
  }
  EXPECT_THAT(exposed, testing::UnorderedElementsAreArray(listed));
}

// docs/metrics.md has one row for each metric: | `name` | type | labels | help
// |
TEST(CatalogueTest, IsWhatTheDocumentSays) {
  std::ifstream in(FNCACHE_SOURCE_DIR "/docs/metrics.md");
  const std::string document(std::istreambuf_iterator<char>(in), {});
  std::vector<std::string> rows;
  for (const absl::string_view line : absl::StrSplit(document, '\n')) {
    if (absl::StartsWith(line, "| `")) rows.emplace_back(line);
  }
  std::vector<std::string> expected;
  for (const metrics::Family& family : Catalogue()) {
    const std::string labels =
        family.labels.empty()
            ? ""
            : absl::StrCat("`", absl::StrJoin(family.labels, "`, `"), "`");
    expected.push_back(absl::StrCat("| `", family.name, "` | ",
                                    metrics::TypeName(family.type), " | ",
                                    labels, " | ", family.help, " |"));
  }
  EXPECT_EQ(rows, expected) << "the rows that docs/metrics.md must have:\n"
                            << absl::StrJoin(expected, "\n");
}

TEST(CatalogueTest, PromtoolHasNothingToSay) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed (Debian: prometheus)";
  }
  Instruments instruments({"function-a", "function \"b\"\\"});
  WatchAll(&instruments);
  instruments.function(0).RecordUpstream(0, absl::Seconds(2));
  std::string name = testing::TempDir() + "/scrapeXXXXXX";
  const int fd = mkstemp(name.data());
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(name) << instruments.registry()->Expose();
  FILE* const promtool = popen(
      absl::StrCat("promtool check metrics < ", name, " 2>&1").c_str(), "r");
  ASSERT_NE(promtool, nullptr);
  std::string said;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof(buffer), promtool)) {
    said.append(buffer, n);
  }
  EXPECT_EQ(pclose(promtool), 0);
  EXPECT_EQ(said, "");
  std::remove(name.c_str());
}

TEST(ProcessMetricsTest, TellThisProcess) {
  const ProcessFigures figures = ReadProcess();
  EXPECT_LT(figures.started, absl::Now() + absl::Seconds(2));
  EXPECT_GT(figures.started, absl::Now() - absl::Hours(1));
  EXPECT_GT(figures.resident_bytes, 1u << 20);
  EXPECT_GT(figures.virtual_bytes, figures.resident_bytes);
  EXPECT_GE(figures.open_fds, 3u);
  EXPECT_GE(figures.max_fds, figures.open_fds);
  std::ifstream another("/proc/self/stat");
  EXPECT_EQ(ReadProcess().open_fds, figures.open_fds + 1);
}

}  // namespace
}  // namespace fncache::proxy::telemetry
