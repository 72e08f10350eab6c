// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/change.h"

#include "gtest/gtest.h"
#include "tests/proxy/admin/stats_testing.h"

namespace fncache::proxy::admin {
namespace {

// Ten seconds and some calls later.
v1::StatsResponse Later() {
  v1::StatsResponse later = StatsOfAMinute();
  later.mutable_uptime()->set_seconds(70);
  later.mutable_now()->set_seconds(1800000070);
  later.mutable_process()->mutable_cpu()->set_seconds(7);
  v1::FunctionStats* const function = later.mutable_functions(0);
  function->mutable_calls_by_outcome(0)->set_count(95);
  function->set_hits(95);
  function->set_misses(11);
  function->mutable_misses_by_reason(1)->set_count(7);
  function->mutable_bypasses_by_reason(0)->set_count(5);
  function->mutable_function_time_saved()->set_seconds(48);
  auto* const parts =
      function->mutable_latency_by_outcome(0)->mutable_latency();
  parts->mutable_parts(1)->set_count(6);
  parts->mutable_parts(1)->set_nanoseconds(900000 + 5 * 1000000);
  v1::Latency::Part* const part =
      function->mutable_upstream_latency()->add_parts();
  part->set_number(60);
  part->set_count(1);
  part->set_nanoseconds(2000000000);
  later.mutable_tiers(0)->mutable_removed(1)->set_count(61);
  later.mutable_tiers(0)->set_entries(1000);
  later.mutable_fills_dropped(0)->set_count(3);
  return later;
}

TEST(ChangeTest, IsWhatWasCountedMeanwhile) {
  const Change change = ChangeBetween(StatsOfAMinute(), Later());
  EXPECT_FALSE(change.since_start);
  EXPECT_EQ(change.length, absl::Seconds(10));
  EXPECT_EQ(change.counted.process().cpu().seconds(), 1);
  const v1::FunctionStats& function = change.counted.functions(0);
  EXPECT_EQ(CountOf(function.calls_by_outcome(), "hit"), 5u);
  EXPECT_EQ(CountOf(function.calls_by_outcome(), "miss"), 0u);
  EXPECT_EQ(function.hits(), 5u);
  EXPECT_EQ(function.misses(), 1u);
  EXPECT_DOUBLE_EQ(*HitRate(function), 5.0 / 6);
  EXPECT_EQ(CountOf(function.misses_by_reason(), "changed"), 1u);
  EXPECT_EQ(CountOf(function.bypasses_by_reason(), "operation"), 3u);
  EXPECT_EQ(CountOf(function.bypasses_by_reason(), "method"), 0u);
  EXPECT_EQ(function.function_time_saved().seconds(), 3);
  // Only the slow part has grown, and so it is the whole distribution.
  const v1::Latency& hits = *LatencyOf(function, "hit");
  EXPECT_EQ(CountIn(hits), 5u);
  EXPECT_EQ(Quantile(hits, 0), absl::Milliseconds(1));
  EXPECT_EQ(Quantile(function.upstream_latency(), 0.5), absl::Seconds(2));
  EXPECT_EQ(CountOf(change.counted.tiers(0).removed(), "evicted"), 1u);
  EXPECT_EQ(Sum(change.counted.fills_dropped()), 2u);
  // Values that are no counters stay as they are.
  EXPECT_EQ(change.counted.tiers(0).entries(), 1000u);
  EXPECT_EQ(function.flights(), 2);
}

TEST(ChangeTest, TheFirstLookIsAllSinceTheStart) {
  const Change change = ChangeBetween(absl::nullopt, StatsOfAMinute());
  EXPECT_TRUE(change.since_start);
  EXPECT_EQ(change.length, absl::Minutes(1));
  EXPECT_EQ(change.counted.functions(0).hits(), 90u);
}

TEST(ChangeTest, ADaemonThatWasStartedAnewCountsAnew) {
  v1::StatsResponse anew = StatsOfAMinute();
  anew.mutable_uptime()->set_seconds(2);
  anew.mutable_functions(0)->set_hits(1);
  const Change change = ChangeBetween(StatsOfAMinute(), anew);
  EXPECT_TRUE(change.since_start);
  EXPECT_EQ(change.length, absl::Seconds(2));
  EXPECT_EQ(change.counted.functions(0).hits(), 1u);
}

TEST(ChangeTest, FunctionsThatCameSinceCountFromNothing) {
  v1::StatsResponse later = Later();
  *later.add_functions() = later.functions(0);
  later.mutable_functions(1)->set_name("function-b");
  const Change change = ChangeBetween(StatsOfAMinute(), later);
  EXPECT_EQ(change.counted.functions(0).hits(), 5u);
  EXPECT_EQ(change.counted.functions(1).hits(), 95u);
}

TEST(ChangeTest, NothingHasNoRateAndNoLatency) {
  EXPECT_FALSE(HitRate(v1::FunctionStats()).has_value());
  EXPECT_EQ(Quantile(v1::Latency(), 0.99), absl::ZeroDuration());
  EXPECT_EQ(Mean(v1::Latency()), absl::ZeroDuration());
  EXPECT_EQ(LatencyOf(v1::FunctionStats(), "hit"), nullptr);
}

}  // namespace
}  // namespace fncache::proxy::admin
