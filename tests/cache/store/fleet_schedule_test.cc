// SPDX-License-Identifier: Apache-2.0
// A fleet under random schedules: three replicas with skewed clocks on one
// simulated server that loses, delays and forgets. Simulated time; every
// schedule is its seed. Stores, bans and record are the real ones.
//
// The test's own record (fleet_testing.h) says what may be served. So no
// response is foreign, torn, expired or purged, what a key's reads return only
// gets younger, and every purge that reached the server reaches every replica.
#include "tests/cache/store/fleet_schedule.h"

#include <cstdint>
#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "tests/cache/store/fleet_testing.h"
#include "tests/common/long_form.h"

namespace fncache::cache::store::testing {
namespace {

void TrySchedules(uint32_t first, uint32_t count) {
  FleetTotals totals;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    FleetSchedule schedule(seed, Mistake::kNone, &totals);
    ASSERT_EQ(schedule.Go(), "") << seed;
  }
  std::printf(
      "%u schedules: %lu calls, hits: %lu memory, %lu tier; %lu runs, %lu "
      "fills, %lu superseded; %lu purges, of them %lu firm; %lu rounds, of "
      "them %lu failed; %lu learned; %lu faults, %lu times data lost, %lu "
      "meddled; %lu nested, %lu pauses, %lu restarts, %lu suspensions\n",
      count, totals.calls, totals.memory_hits, totals.tier_hits, totals.runs,
      totals.fills, totals.superseded, totals.purges, totals.firm,
      totals.rounds, totals.failed_rounds, totals.learned, totals.faults,
      totals.lost_data, totals.meddled, totals.nested, totals.pauses,
      totals.restarts, totals.suspensions);
  // The schedules reach what they are meant to.
  EXPECT_GT(totals.tier_hits, count);
  EXPECT_GT(totals.memory_hits, count);
  EXPECT_GT(totals.firm, count);
  EXPECT_GT(totals.learned, count);
  EXPECT_GT(totals.lost_data, count / 4);
  // About count / 16, and chance is large in 200 schedules.
  EXPECT_GT(totals.meddled, count / 40);
  EXPECT_GT(totals.nested, count);
  EXPECT_GT(totals.pauses, count / 20);
}

TEST(FleetScheduleTest, NoReplicaServesWhatItMustNot) {
  TrySchedules(1, fncache::testing::FewerSanitized(500));
}

// In parts, because each test has a limit of time.
class FleetScheduleHeavyTest : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Parts, FleetScheduleHeavyTest,
                         ::testing::Range(1u, 9u));

TEST_P(FleetScheduleHeavyTest, NoReplicaServesWhatItMustNot) {
  TrySchedules(GetParam() * 100'000,
               fncache::testing::ShortOrLong(200u, 2500u));
}

TEST(FleetScheduleMistakesHeavyTest, EachMistakeIsFound) {
  for (const Mistake mistake :
       {Mistake::kFillsOverLater, Mistake::kWritesAnyRecord,
        Mistake::kLosesMarks, Mistake::kPurgesToNow, Mistake::kKeepsMemory,
        Mistake::kSleepsUnnoticed, Mistake::kIgnoresBans,
        Mistake::kIgnoresClocks}) {
    FleetTotals totals;
    std::string found;
    uint32_t seed = 0;
    while (found.empty() && seed < 3000) {
      FleetSchedule schedule(++seed, mistake, &totals);
      found = schedule.Go();
    }
    std::printf("mistake %d: schedule %u: %s\n", static_cast<int>(mistake),
                seed, found.c_str());
    EXPECT_NE(found, "") << static_cast<int>(mistake);
  }
}

}  // namespace
}  // namespace fncache::cache::store::testing
