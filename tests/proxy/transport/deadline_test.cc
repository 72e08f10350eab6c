// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/deadline.h"

#include <string>

#include "absl/time/time.h"
#include "common/clock.h"
#include "gtest/gtest.h"

namespace fncache::proxy::transport {
namespace {

TEST(TimeoutTest, TimeoutsOfEachUnit) {
  EXPECT_EQ(ParseTimeout("1n"), absl::Nanoseconds(1));
  EXPECT_EQ(ParseTimeout("20u"), absl::Microseconds(20));
  EXPECT_EQ(ParseTimeout("300m"), absl::Milliseconds(300));
  EXPECT_EQ(ParseTimeout("5S"), absl::Seconds(5));
  EXPECT_EQ(ParseTimeout("6M"), absl::Minutes(6));
  EXPECT_EQ(ParseTimeout("99999999H"), absl::Hours(99999999));
  EXPECT_EQ(ParseTimeout("0S"), absl::ZeroDuration());
  for (const char* bad :
       {"", "S", "1", "123456789S", "-1S", "1s", "1.5S", " 1S", "+1S"}) {
    EXPECT_FALSE(ParseTimeout(bad).has_value()) << bad;
  }
}

TEST(TimeoutTest, ATimeoutThatIsWrittenIsReadAsNoLess) {
  for (const absl::Duration d :
       {absl::Nanoseconds(1), absl::Nanoseconds(99'999'999),
        absl::Milliseconds(100), absl::Seconds(10) + absl::Nanoseconds(7),
        absl::Minutes(2), absl::Hours(5), absl::Hours(9'999'999)}) {
    const auto back = ParseTimeout(FormatTimeout(d));
    ASSERT_TRUE(back.has_value()) << d;
    EXPECT_GE(*back, d);
    EXPECT_LE(*back, d + d / 1000);
  }
  EXPECT_EQ(FormatTimeout(absl::ZeroDuration()), "1n");
  EXPECT_EQ(FormatTimeout(absl::InfiniteDuration()), "99999999H");
}

class DeadlineTest : public ::testing::Test {
 protected:
  absl::Time now() { return clock_.Now(); }
  Deadline OfCaller(const char* timeout) {
    return Deadline::OfCaller(timeout, now());
  }
  SimulatedClock clock_{absl::FromUnixSeconds(1'000)};
};

TEST_F(DeadlineTest, WithoutATimeoutACallNeverEnds) {
  for (const char* text : {"", "soon", "123456789S", "5"}) {
    const Deadline deadline = OfCaller(text);
    EXPECT_TRUE(deadline.none()) << text;
    EXPECT_EQ(deadline.Left(now()), absl::InfiniteDuration());
    EXPECT_EQ(deadline.LeftOf(0.9, now()), absl::InfiniteDuration());
    EXPECT_EQ(deadline.LeftToConnect(now()), absl::InfiniteDuration());
    EXPECT_EQ(deadline.end(), absl::InfiniteFuture());
    EXPECT_FALSE(deadline.IsOver(now()));
    EXPECT_EQ(deadline.UpstreamTimeout(now()), "");
  }
  EXPECT_TRUE(Deadline().none());
}

TEST_F(DeadlineTest, TimePasses) {
  const Deadline deadline = OfCaller("10S");
  EXPECT_FALSE(deadline.none());
  EXPECT_EQ(deadline.Left(now()), absl::Seconds(10));
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(deadline.Left(now()), absl::Seconds(6));
  EXPECT_EQ(deadline.LeftOf(0.9, now()), absl::Seconds(5));
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(deadline.LeftOf(0.9, now()), absl::ZeroDuration());
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(deadline.Left(now()), absl::ZeroDuration());
  EXPECT_EQ(deadline.LeftOf(0.9, now()), absl::ZeroDuration());
}

// The clock of the other side ends the same call a little before this one.
TEST_F(DeadlineTest, ItIsOverALittleEarly) {
  const Deadline deadline = OfCaller("10S");
  clock_.Advance(absl::Seconds(10) - absl::Milliseconds(21));
  EXPECT_FALSE(deadline.IsOver(now()));
  EXPECT_GT(deadline.Left(now()), absl::ZeroDuration());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(deadline.IsOver(now()));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(deadline.IsOver(now()));
}

TEST_F(DeadlineTest, TheFunctionGetsWhatIsLeft) {
  const Deadline deadline = OfCaller("10S");
  // The caller's own field passes as it came.
  EXPECT_EQ(deadline.UpstreamTimeout(now()), "");
  clock_.Advance(absl::Milliseconds(10));
  EXPECT_EQ(deadline.UpstreamTimeout(now()), "");
  clock_.Advance(absl::Milliseconds(990));
  EXPECT_EQ(deadline.UpstreamTimeout(now()), "9000000u");
  clock_.Advance(absl::Seconds(9));
  EXPECT_EQ(deadline.UpstreamTimeout(now()), "1n");
}

TEST_F(DeadlineTest, TheFunctionGetsADeadlineOfOurs) {
  const Deadline own = Deadline::Own(absl::Seconds(10), now());
  EXPECT_EQ(own.UpstreamTimeout(now()), "10000000u");

  const Deadline caller = OfCaller("10S");
  EXPECT_EQ(caller.Extended(absl::ZeroDuration()).UpstreamTimeout(now()), "");
  const Deadline longer = caller.Extended(absl::Seconds(5));
  EXPECT_EQ(longer.Left(now()), absl::Seconds(15));
  EXPECT_EQ(longer.UpstreamTimeout(now()), "15000000u");

  // More than no limit is no limit.
  const Deadline none = Deadline().Extended(absl::Seconds(5));
  EXPECT_TRUE(none.none());
  EXPECT_EQ(none.UpstreamTimeout(now()), "");
}

// The caller hears the reason only if that wait ends before its own clock does.
TEST_F(DeadlineTest, AWaitForAConnectionEndsBeforeTheDeadline) {
  const auto early = [this](const std::string& timeout) {
    const Deadline deadline = OfCaller(timeout.c_str());
    return deadline.Left(now()) - deadline.LeftToConnect(now());
  };
  EXPECT_EQ(early("10m"), absl::Milliseconds(1));
  EXPECT_EQ(early("100m"), absl::Milliseconds(5));
  EXPECT_EQ(early("1S"), absl::Milliseconds(10));
  EXPECT_EQ(early("10S"), absl::Milliseconds(15));
  EXPECT_EQ(early("10H"), absl::Milliseconds(15));
}

TEST_F(DeadlineTest, TimesThatNoClockWillSeeStayTimes) {
  const Deadline deadline = OfCaller("99999999H");
  EXPECT_FALSE(deadline.none());
  EXPECT_FALSE(deadline.IsOver(now()));
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(deadline.Left(now()), absl::Hours(99999998));
  EXPECT_EQ(deadline.UpstreamTimeout(now()), "99999998H");
}

TEST_F(DeadlineTest, ItsClockNeverRunsBackwards) {
  const absl::Time before = Deadline::Now();
  EXPECT_LE(before, Deadline::Now());
}

}  // namespace
}  // namespace fncache::proxy::transport
