// SPDX-License-Identifier: Apache-2.0
#include "proxy/alarms.h"

#include <atomic>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::proxy {
namespace {

using ::testing::ElementsAre;

TEST(AlarmsTest, WorkIsDoneInTheOrderOfItsTime) {
  std::vector<std::string> done;  // of the alarms' thread, until the end
  absl::Notification last;
  absl::Notification again;
  Alarms alarms;
  const auto late = [&] {
    done.emplace_back("late");
    last.Notify();
  };
  alarms.Set("late", absl::Hours(1), late);
  alarms.Set("early", absl::Milliseconds(20), [&] {
    done.emplace_back("early");
    // It may set others, and itself.
    alarms.Set("early", absl::ZeroDuration(), [&] {
      done.emplace_back("again");
      again.Notify();
    });
    alarms.Set("late", absl::Milliseconds(20), late);
  });
  last.WaitForNotification();
  again.WaitForNotification();
  alarms.Stop();
  EXPECT_THAT(done, ElementsAre("early", "again", "late"));
}

TEST(AlarmsTest, ANameHasOneAlarm) {
  absl::Notification second, last;
  std::atomic<int> first{0};
  Alarms alarms;
  // Long enough for what follows to come before, on any machine.
  const absl::Duration later = absl::Seconds(1);
  alarms.Set("one", later, [&] { ++first; });
  alarms.Set("one", absl::ZeroDuration(), [&] { second.Notify(); });
  alarms.Set("two", later, [&] { ++first; });
  alarms.Cancel("two");
  alarms.Set("three", later, [&] { ++first; });
  alarms.Set("three", absl::InfiniteDuration(), [&] { ++first; });
  second.WaitForNotification();
  alarms.Set("last", later, [&] { last.Notify(); });
  last.WaitForNotification();
  EXPECT_EQ(first, 0);
}

TEST(AlarmsTest, StopWaitsForWorkAndLetsNoneBegin) {
  // On a machine that stalls, the work may end before Stop begins.
  int more = 1;
  for (absl::Duration long_time = absl::Milliseconds(30);
       more != 0 && long_time < absl::Minutes(1); long_time *= 10) {
    std::atomic<bool> over{false};
    absl::Notification begun;
    std::atomic<int> others{0};
    Alarms alarms;
    alarms.Set("long", absl::ZeroDuration(), [&] {
      begun.Notify();
      absl::SleepFor(long_time);
      over = true;
    });
    begun.WaitForNotification();
    alarms.Set("never", absl::ZeroDuration(), [&] { ++others; });
    alarms.Stop();
    EXPECT_TRUE(over);
    more = others;
    alarms.Set("after", absl::ZeroDuration(), [&] { ++others; });
    alarms.Stop();
    EXPECT_EQ(others, more);
  }
  EXPECT_EQ(more, 0);
}

}  // namespace
}  // namespace fncache::proxy
