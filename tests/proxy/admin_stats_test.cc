// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin_stats.h"

#include "gtest/gtest.h"
#include "proto/admin.pb.h"
#include "proxy/limits/budget.h"
#include "proxy/telemetry/instruments.h"

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

}  // namespace
}  // namespace fncache::proxy
