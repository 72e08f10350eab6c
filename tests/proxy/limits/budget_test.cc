// SPDX-License-Identifier: Apache-2.0
#include "proxy/limits/budget.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "tests/proxy/limits/lanes.h"

namespace fncache::proxy::limits {
namespace {

using Quota = Budget::Quota;
using Admission = Budget::Admission;

struct Waiting : Budget::Waiter {
  void OnAdmitted() override { ++admitted; }
  std::atomic<int> admitted{0};
};

class BudgetTest : public LanesTest {
 protected:
  Admission Admit(Waiting* waiter, int lane, size_t bytes) {
    return budget_.Admit(waiter, loop(lane), lane, bytes);
  }
};

TEST_F(BudgetTest, AllWorkersCountTogether) {
  EXPECT_TRUE(budget_.Fits(Quota::kReading, 100));
  EXPECT_FALSE(budget_.Fits(Quota::kReading, 101));
  Charge first(&budget_, Quota::kReading, 0);
  Charge second(&budget_, Quota::kReading, 1);
  first.Set(60);
  second.Set(30);
  EXPECT_EQ(budget_.reading(), 90u);
  EXPECT_TRUE(budget_.Fits(Quota::kReading, 10));
  EXPECT_FALSE(budget_.Fits(Quota::kReading, 11));
  EXPECT_TRUE(budget_.Fits(Quota::kRunning, 600));
  second.Set(5);
  EXPECT_EQ(budget_.reading(), 65u);
  EXPECT_EQ(budget_.free(), 735u);
  EXPECT_EQ(budget_.free_to_grant(), 35u);
}

TEST_F(BudgetTest, OneCallBeyondTakesNothingFromOthers) {
  Charge beyond(&budget_, Quota::kReading, 0);
  beyond.Set(5000);
  EXPECT_EQ(budget_.free_to_grant(), 0u);
  EXPECT_EQ(budget_.free(), 0u);
  beyond.Move(Quota::kBeyond);
  EXPECT_EQ(budget_.reading(), 5000u);
  EXPECT_EQ(budget_.free_to_grant(), 100u);
  EXPECT_EQ(budget_.free(), 800u);
}

// The next one goes beyond when the one before has arrived and its bytes have
// gone.
TEST_F(BudgetTest, OneAtATimeGoesBeyond) {
  int a = 0;
  int b = 0;
  EXPECT_TRUE(budget_.GoBeyond(Quota::kBeyond, &a));
  EXPECT_FALSE(budget_.GoBeyond(Quota::kBeyond, &b));
  EXPECT_TRUE(budget_.GoBeyond(Quota::kRunning, &b));
  EXPECT_TRUE(budget_.GoBeyond(Quota::kRunning, &b));
  budget_.Yield(Quota::kBeyond, &b);  // which it is not
  EXPECT_FALSE(budget_.GoBeyond(Quota::kBeyond, &b));
  Charge bytes(&budget_, Quota::kBeyond, 0);
  bytes.Set(1);
  budget_.Yield(Quota::kBeyond, &a);
  EXPECT_FALSE(budget_.GoBeyond(Quota::kBeyond, &b));
  bytes.Set(0);
  EXPECT_TRUE(budget_.GoBeyond(Quota::kBeyond, &b));
}

TEST_F(BudgetTest, RelayedCallsAreRefusedBeyondTheirQuota) {
  Charge first(&budget_, Quota::kRelayed, 0);
  Charge second(&budget_, Quota::kRelayed, 1);
  // One may always come.
  EXPECT_FALSE(budget_.RefuseRelayed(5000));
  first.Set(60);
  EXPECT_FALSE(budget_.RefuseRelayed(40));
  EXPECT_TRUE(budget_.RefuseRelayed(41));
  EXPECT_EQ(budget_.refused(), 1u);
  second.Set(30);
  EXPECT_EQ(budget_.relayed(), 90u);
  EXPECT_TRUE(budget_.RefuseRelayed(11));
  // Requests that are read have their own.
  EXPECT_TRUE(budget_.Fits(Quota::kReading, 100));
  EXPECT_EQ(budget_.reading(), 0u);
}

TEST_F(BudgetTest, RelayedCallsThatKeepTooMuchAreEndedButForOne) {
  int a = 0;
  int b = 0;
  Charge relayed(&budget_, Quota::kRelayed, 0);
  relayed.Set(200);
  EXPECT_FALSE(budget_.EndRelayed(&b));
  relayed.Set(201);
  EXPECT_FALSE(budget_.EndRelayed(&a));
  EXPECT_FALSE(budget_.EndRelayed(&a));
  EXPECT_TRUE(budget_.EndRelayed(&b));
  EXPECT_EQ(budget_.refused(), 1u);
  budget_.Yield(Quota::kRelayed, &a);
  EXPECT_FALSE(budget_.EndRelayed(&b));
}

TEST_F(BudgetTest, RunningCallsHaveWhatRelayedOnesLeave) {
  EXPECT_EQ(budget_.limit(Quota::kRunning), 600u);
  Charge relayed(&budget_, Quota::kRelayed, 0);
  relayed.Set(50);
  EXPECT_EQ(budget_.limit(Quota::kRunning), 550u);
  relayed.Set(5000);
  EXPECT_EQ(budget_.limit(Quota::kRunning), 400u);
  Waiting first;
  Waiting second;
  ASSERT_EQ(Admit(&first, 0, 400), Admission::kAdmitted);
  ASSERT_EQ(Admit(&second, 1, 100), Admission::kWaits);
  // Relayed calls that end let misses run, too.
  relayed.Set(0);
  EXPECT_TRUE(Eventually([&] { return second.admitted == 1; }));
  budget_.Remove(Quota::kRunning, 0, 400);
  budget_.Remove(Quota::kRunning, 1, 100);
}

TEST_F(BudgetTest, MissesRunInOrderAsMemoryIsFreed) {
  Waiting large;
  Waiting next;
  Waiting small;
  // The miss's own bytes, which its call counts while it waits.
  Charge request(&budget_, Quota::kKept, 0);
  request.Set(200);
  ASSERT_EQ(Admit(&large, 0, 500), Admission::kAdmitted);
  EXPECT_EQ(Admit(&next, 0, 200), Admission::kWaits);
  // The memory would suffice for this one, but no miss is overtaken.
  EXPECT_EQ(Admit(&small, 1, 10), Admission::kWaits);
  EXPECT_EQ(budget_.waiting(), 210u);
  EXPECT_EQ(budget_.reading(), 0u) << "what waits is not reported twice";
  EXPECT_EQ(budget_.running(), 500u);
  budget_.Remove(Quota::kRunning, 0, 500);
  EXPECT_TRUE(
      Eventually([&] { return next.admitted == 1 && small.admitted == 1; }));
  EXPECT_EQ(budget_.waiting(), 0u);
  EXPECT_EQ(budget_.running(), 210u);
  budget_.Remove(Quota::kRunning, 0, 200);
  budget_.Remove(Quota::kRunning, 1, 10);
  EXPECT_EQ(budget_.running(), 0u);
}

// A miss that queues up as the last one ends sees that, or is seen.
TEST_F(BudgetTest, NoMissIsForgottenInTheMomentBetween) {
  std::atomic<int> runs{0};
  const absl::Time until = absl::Now() + absl::Seconds(60);
  const auto run = [&](int lane) {
    for (int j = 0; j < 50'000; ++j) {
      Waiting waiter;
      bool runs_now = Admit(&waiter, lane, 600) == Admission::kAdmitted;
      while (!runs_now && absl::Now() < until) runs_now = waiter.admitted == 1;
      if (!runs_now) {
        budget_.Forget(&waiter);
        return;
      }
      ++runs;
      budget_.Remove(Quota::kRunning, lane, 600);
    }
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  EXPECT_EQ(runs, 100'000);
}

TEST_F(BudgetTest, AMissThatIsLargerThanTheQuotaRunsAlone) {
  Waiting first;
  ASSERT_EQ(Admit(&first, 0, 5000), Admission::kAdmitted);
  Waiting second;
  EXPECT_EQ(Admit(&second, 0, 1), Admission::kWaits);
  Waiting empty;
  EXPECT_EQ(Admit(&empty, 0, 0), Admission::kWaits);
  EXPECT_FALSE(budget_.Forget(&second));
  EXPECT_FALSE(budget_.Forget(&empty));
  EXPECT_EQ(budget_.waiting(), 0u);
  budget_.Remove(Quota::kRunning, 0, 5000);
}

TEST_F(BudgetTest, AMissThatLeavesTheQueueDelaysNoOther) {
  Waiting running;
  ASSERT_EQ(Admit(&running, 0, 550), Admission::kAdmitted);
  Waiting gone;
  Waiting stays;
  ASSERT_EQ(Admit(&gone, 0, 600), Admission::kWaits);
  ASSERT_EQ(Admit(&stays, 1, 50), Admission::kWaits);
  // The memory sufficed for `stays` all the time.
  EXPECT_FALSE(budget_.Forget(&gone));
  EXPECT_TRUE(Eventually([&] { return stays.admitted == 1; }));
  EXPECT_EQ(gone.admitted, 0);
  EXPECT_EQ(budget_.running(), 600u);
  budget_.Remove(Quota::kRunning, 0, 550);
  EXPECT_EQ(budget_.running(), 50u);
}

// A waiter that leaves in the moment between is admitted all the same: its
// bytes are counted, and it is not notified.
TEST_F(BudgetTest, AdmittedAndNotNotified) {
  Waiting running;
  ASSERT_EQ(Admit(&running, 0, 600), Admission::kAdmitted);
  Waiting waits;
  ASSERT_EQ(Admit(&waits, 0, 70), Admission::kWaits);
  bool admitted = false;
  Do(0, [&] {
    budget_.Remove(Quota::kRunning, 0, 600);
    admitted = budget_.Forget(&waits);
  });
  EXPECT_TRUE(admitted);
  EXPECT_EQ(budget_.running(), 70u);
  Do(0, [] {});
  EXPECT_EQ(waits.admitted, 0);
}

TEST_F(BudgetTest, WhereTheFunctionHangsFurtherMissesAreRefused) {
  Waiting running;
  ASSERT_EQ(Admit(&running, 0, 600), Admission::kAdmitted);
  Waiting first;
  Waiting over;
  ASSERT_EQ(Admit(&first, 0, 90), Admission::kWaits);
  ASSERT_EQ(Admit(&over, 0, 20), Admission::kWaits);
  EXPECT_FALSE(budget_.GivesUp(&over));
  const absl::Time start = absl::Now();
  int waited = 0;
  // A miss that comes as soon as the queue is full may wait: it will move.
  EXPECT_TRUE(Eventually([&] {
    Waiting more;
    const Admission admission = Admit(&more, 0, 20);
    if (admission == Admission::kRefused) return true;
    ++waited;
    budget_.Forget(&more);
    return false;
  }));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(4900));
  EXPECT_GT(waited, 0);
  EXPECT_EQ(budget_.refused(), 1u);
  // So are those that came when it was full already, and no others.
  EXPECT_TRUE(budget_.GivesUp(&over));
  EXPECT_FALSE(budget_.GivesUp(&first));
  EXPECT_EQ(budget_.refused(), 2u);
  EXPECT_EQ(budget_.waiting(), 90u);
  EXPECT_FALSE(budget_.Forget(&over));
  // As long as the queue is not full, further ones wait.
  Waiting within;
  EXPECT_EQ(Admit(&within, 0, 5), Admission::kWaits);
  budget_.Remove(Quota::kRunning, 0, 600);
  EXPECT_TRUE(
      Eventually([&] { return first.admitted == 1 && within.admitted == 1; }));
  EXPECT_EQ(over.admitted, 0);
}

// A miss that leaves the queue by itself, as its deadline ends, moves nothing.
TEST_F(BudgetTest, OnlyAMissThatRunsMovesTheQueue) {
  Waiting running;
  Waiting first;
  Waiting over;
  Waiting late;
  ASSERT_EQ(Admit(&running, 0, 600), Admission::kAdmitted);
  ASSERT_EQ(Admit(&first, 0, 50), Admission::kWaits);
  ASSERT_EQ(Admit(&late, 0, 45), Admission::kWaits);
  ASSERT_EQ(Admit(&over, 0, 20), Admission::kWaits);
  EXPECT_FALSE(budget_.Forget(&late));
  EXPECT_TRUE(Eventually([&] { return budget_.GivesUp(&over); }));
  budget_.Remove(Quota::kRunning, 0, 600);
  EXPECT_TRUE(Eventually([&] { return first.admitted == 1; }));
}

TEST_F(BudgetTest, OthersWaitForMemory) {
  EXPECT_FALSE(budget_.OthersWait(Quota::kReading));
  {
    Charge relayed(&budget_, Quota::kRelayed, 0);
    relayed.Set(88);
    EXPECT_FALSE(budget_.OthersWait(Quota::kRelayed));
    relayed.Set(89);
    EXPECT_TRUE(budget_.OthersWait(Quota::kRelayed));
    EXPECT_FALSE(budget_.OthersWait(Quota::kRunning));
  }
  {
    Charge arriving(&budget_, Quota::kKept, 0);
    arriving.Set(600);
    EXPECT_FALSE(budget_.OthersWait(Quota::kReading));
    arriving.Set(601);
    EXPECT_TRUE(budget_.OthersWait(Quota::kReading));
    EXPECT_TRUE(budget_.LittleIsLeft());
  }
  budget_.CountWaiting(1);
  EXPECT_TRUE(budget_.OthersWait(Quota::kReading));
  budget_.CountWaiting(-1);
  EXPECT_FALSE(budget_.OthersWait(Quota::kReading));
  Waiting running;
  Waiting waits;
  ASSERT_EQ(Admit(&running, 0, 600), Admission::kAdmitted);
  EXPECT_FALSE(budget_.OthersWait(Quota::kReading));
  ASSERT_EQ(Admit(&waits, 0, 1), Admission::kWaits);
  EXPECT_TRUE(budget_.OthersWait(Quota::kReading));
  EXPECT_FALSE(budget_.Forget(&waits));
}

TEST_F(BudgetTest, CallsWithoutACallerHaveAnEighth) {
  Budget::Unattended first = budget_.TakeUnattended(5000);
  EXPECT_TRUE(first.taken()) << "one may have more";
  EXPECT_FALSE(budget_.TakeUnattended(1).taken());
  first = {};
  Budget::Unattended second = budget_.TakeUnattended(60);
  EXPECT_TRUE(budget_.TakeUnattended(40).taken());
  EXPECT_FALSE(budget_.TakeUnattended(41).taken());
  second = {};
  Waiting running;
  Waiting waits;
  ASSERT_EQ(Admit(&running, 0, 600), Admission::kAdmitted);
  ASSERT_EQ(Admit(&waits, 0, 1), Admission::kWaits);
  EXPECT_FALSE(budget_.TakeUnattended(1).taken()) << "a miss waits";
  EXPECT_FALSE(budget_.Forget(&waits));
}

// The bytes that a connection keeps, and no others.
TEST_F(BudgetTest, AnAccountCountsWhatIsKept) {
  size_t account = 0;
  Charge charge(&budget_, Quota::kKept, 0, &account);
  Charge other(&budget_, Quota::kKept, 0, &account);
  charge.Set(70);
  other.Set(20);
  EXPECT_EQ(account, 90u);
  charge.Move(Quota::kReading);
  EXPECT_EQ(account, 20u);
  charge.Set(100);
  EXPECT_EQ(account, 20u);
  charge.Move(Quota::kKept);
  EXPECT_EQ(account, 120u);
  charge.LeaveAccount();
  EXPECT_EQ(account, 20u);
  charge.Set(0);
  EXPECT_EQ(account, 20u);
  EXPECT_EQ(budget_.reading(), 20u);
}

TEST_F(BudgetTest, ALargerBoundLetsMissesRun) {
  Waiting running;
  Waiting waits;
  ASSERT_EQ(Admit(&running, 0, 600), Admission::kAdmitted);
  ASSERT_EQ(Admit(&waits, 1, 100), Admission::kWaits);
  budget_.SetBound(1000);
  EXPECT_TRUE(Eventually([&] { return waits.admitted == 1; }));
  EXPECT_EQ(budget_.running(), 700u);
}

}  // namespace
}  // namespace fncache::proxy::limits
