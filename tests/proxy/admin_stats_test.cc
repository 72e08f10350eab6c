// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin_stats.h"

#include "gtest/gtest.h"
#include "proto/admin.pb.h"
#include "proxy/limits/budget.h"
#include "proxy/telemetry/instruments.h"
#include "tests/proxy/telemetry/status_testing.h"

namespace fncache::proxy {
namespace {

TEST(AdminStatsTest, TellsHowManyKeysBackOff) {
  telemetry::Instruments instruments({"a", "b"});
  const limits::Budget inflight(1 << 20, /*lanes=*/1);
  instruments.WatchBackingOff(1, [] { return size_t{3}; });
  const auto stats = ReadStats(instruments, inflight, {});
  ASSERT_EQ(stats.functions_size(), 2);
  EXPECT_EQ(stats.functions(0).keys_backing_off(), 0);
  EXPECT_EQ(stats.functions(1).keys_backing_off(), 3);
}

TEST(AdminStatsTest, HasTheSharedTierWhereThereIsOne) {
  telemetry::Instruments instruments({"a"});
  const limits::Budget inflight(1 << 20, /*lanes=*/1);
  EXPECT_FALSE(ReadStats(instruments, inflight, {}).has_shared());
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  cache::store::SharedFigures figures = telemetry::SharedExample(now);
  figures.why = "why \xff";
  instruments.WatchShared([&figures] { return figures; });
  const auto stats = ReadStats(instruments, inflight, {});
  EXPECT_EQ(stats.tiers_size(), 0);
  const auto& shared = stats.shared();
  EXPECT_TRUE(shared.up());
  EXPECT_EQ(shared.since().seconds(), 1'799'999'910);
  EXPECT_EQ(shared.why(), "why \xef\xbf\xbd");
  EXPECT_TRUE(shared.cluster());
  ASSERT_EQ(shared.nodes_size(), 2);
  EXPECT_EQ(shared.nodes(1).address(), "redis-1:6379");
  EXPECT_EQ(shared.nodes(1).state(), "down");
  EXPECT_EQ(shared.nodes(1).since().seconds(), 1'799'999'998);
  EXPECT_EQ(shared.nodes(1).why(), "Connection <refused>");
  EXPECT_EQ(shared.version(), "7.2.4");
  EXPECT_EQ(shared.round_trip().nanos(), 310'000);
  EXPECT_EQ(shared.clock_difference().nanos(), -2'000'000);
  EXPECT_EQ(shared.bans_age().nanos(), 400'000'000);
  EXPECT_TRUE(shared.bans_written());
  ASSERT_EQ(shared.lookups_size(), 6);
  EXPECT_EQ(shared.lookups(5).name(), "purged");
  EXPECT_EQ(shared.lookups(5).count(), 6u);
  ASSERT_EQ(shared.writes_size(), 4);
  EXPECT_EQ(shared.writes(3).name(), "dropped");
  EXPECT_EQ(shared.writes(3).count(), 10u);
  figures.bans_age = absl::InfiniteDuration();
  EXPECT_FALSE(ReadStats(instruments, inflight, {}).shared().has_bans_age());
}

}  // namespace
}  // namespace fncache::proxy
