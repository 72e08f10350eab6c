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

using ::testing::UnorderedElementsAre;

TEST(AlarmsTest, WorkIsDoneInTheOrderOfItsTime) {
  std::vector<std::string> done;  // of the alarms' thread, until the end
  absl::Notification last;
  absl::Notification again;
  Alarms alarms;
  alarms.Set("late", absl::Milliseconds(60), [&] {
    done.emplace_back("late");
    last.Notify();
  });
  alarms.Set("early", absl::Milliseconds(20), [&] {
    done.emplace_back("early");
    // It may set others, and itself.
    alarms.Set("early", absl::ZeroDuration(), [&] {
      done.emplace_back("again");
      again.Notify();
    });
  });
  last.WaitForNotification();
  again.WaitForNotification();
  alarms.Stop();
  // A machine that stalls has "late" due before "again" is set.
  EXPECT_EQ(done[0], "early");
  EXPECT_THAT(done, UnorderedElementsAre("early", "again", "late"));
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
  std::atomic<bool> over{false};
  absl::Notification begun;
  std::atomic<int> more{0};
  Alarms alarms;
  alarms.Set("long", absl::ZeroDuration(), [&] {
    begun.Notify();
    absl::SleepFor(absl::Milliseconds(30));
    over = true;
  });
  begun.WaitForNotification();
  alarms.Set("never", absl::ZeroDuration(), [&] { ++more; });
  alarms.Stop();
  EXPECT_TRUE(over);
  EXPECT_EQ(more, 0);
  alarms.Set("after", absl::ZeroDuration(), [&] { ++more; });
  alarms.Stop();
  EXPECT_EQ(more, 0);
}

}  // namespace
}  // namespace fncache::proxy
