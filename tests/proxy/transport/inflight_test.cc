// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/inflight.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "proxy/transport/read_grants.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::transport {
namespace {

using Quota = Inflight::Quota;
using Admission = Inflight::Admission;

struct Waiting : Inflight::Waiter {
  void OnAdmitted() override { ++admitted; }
  std::atomic<int> admitted{0};
};

class InflightTest : public ::testing::Test {
 protected:
  InflightTest() {
    for (const auto& worker : workers_) worker->Start();
  }
  ~InflightTest() override {
    for (const auto& worker : workers_) worker->Stop();
  }
  Worker* worker(int i) { return workers_[static_cast<size_t>(i)].get(); }

  const std::vector<std::unique_ptr<Worker>> workers_ = MakeWorkers(2);
  Inflight inflight_{800, 2};  // reading 100, waiting 100, running 600
};

TEST_F(InflightTest, SharesAreHeldByAllWorkersTogether) {
  EXPECT_TRUE(inflight_.Fits(Quota::kReading, 100));
  EXPECT_FALSE(inflight_.Fits(Quota::kReading, 101));
  Charge first(&inflight_, Quota::kReading, worker(0));
  Charge second(&inflight_, Quota::kReading, worker(1));
  first.Set(60);
  second.Set(30);
  EXPECT_EQ(inflight_.reading(), 90u);
  EXPECT_TRUE(inflight_.Fits(Quota::kReading, 10));
  EXPECT_FALSE(inflight_.Fits(Quota::kReading, 11));
  EXPECT_TRUE(inflight_.Fits(Quota::kRunning, 600));
  second.Set(5);
  EXPECT_EQ(inflight_.reading(), 65u);
}

TEST_F(InflightTest, WhatArrivesOnAConnectionLeavesSomeToOthers) {
  Charge first(&inflight_, Quota::kArriving, worker(0));
  first.Set(640);
  EXPECT_TRUE(inflight_.LeavesCapacity(640));
  first.Set(641);
  EXPECT_FALSE(inflight_.LeavesCapacity(641));
  // Another has four fifths of what is left, and so has a third.
  Charge second(&inflight_, Quota::kArriving, worker(1));
  second.Set(127);
  EXPECT_TRUE(inflight_.LeavesCapacity(127));
  second.Set(129);
  EXPECT_FALSE(inflight_.LeavesCapacity(129));
  Charge third(&inflight_, Quota::kArriving, worker(1));
  third.Set(24);
  EXPECT_TRUE(inflight_.LeavesCapacity(24));
  // The first has too much by now.
  EXPECT_FALSE(inflight_.LeavesCapacity(641));
  third.Set(40);
  EXPECT_FALSE(inflight_.LeavesCapacity(40));
  EXPECT_EQ(inflight_.reading(), 810u);
}

// Many large connections leave nothing of all; a small one is served.
TEST_F(InflightTest, WhoHoldsLittleFindsRoomThatOthersCannotTake) {
  inflight_.SetBound(8000);
  Charge much(&inflight_, Quota::kArriving, worker(0));
  much.Set(8000);
  EXPECT_FALSE(inflight_.LeavesCapacity(32));
  EXPECT_TRUE(inflight_.LeavesCapacity(31));
  Charge little(&inflight_, Quota::kArriving, worker(1));
  little.Set(992);
  EXPECT_TRUE(inflight_.LeavesCapacity(31));
  // That is bounded, too.
  little.Set(993);
  EXPECT_FALSE(inflight_.LeavesCapacity(31));
  EXPECT_TRUE(inflight_.LeavesCapacity(28));
  little.Set(1000);
  EXPECT_FALSE(inflight_.LeavesCapacity(1));
}

TEST_F(InflightTest, WhatArrivesOrIsBeyondTakesNoRoomFromWhatIsRead) {
  Charge arriving(&inflight_, Quota::kArriving, worker(0));
  Charge held(&inflight_, Quota::kReading, worker(1));
  arriving.Set(700);
  held.Set(5000);
  held.Move(Quota::kBeyond);
  EXPECT_EQ(inflight_.reading(), 5700u);
  EXPECT_TRUE(inflight_.Fits(Quota::kReading, 100));
  EXPECT_TRUE(inflight_.LeavesCapacity(400));
  // But calls that stall are ended, as they have many bytes.
  EXPECT_TRUE(inflight_.readers_wait());
  arriving.Set(100);
  EXPECT_FALSE(inflight_.readers_wait());
  held.Move(Quota::kReading);
  EXPECT_FALSE(inflight_.Fits(Quota::kReading, 0));
}

// One reads beyond the capacity, and earlier reads beyond it leave capacity for
// it.
TEST_F(InflightTest, BeyondIsReadByOneAtATime) {
  int a = 0;
  int b = 0;
  Charge held(&inflight_, Quota::kBeyond, worker(0));
  EXPECT_TRUE(inflight_.ReadBeyond(&a, 5000));
  EXPECT_FALSE(inflight_.ReadBeyond(&b, 1));
  held.Set(60);
  inflight_.Yield(Quota::kBeyond, &a);  // which is looked up
  EXPECT_FALSE(inflight_.ReadBeyond(&b, 341));
  EXPECT_TRUE(inflight_.ReadBeyond(&b, 340));
  inflight_.Yield(Quota::kBeyond, &b);
  // Some continue, however many bytes are kept.
  held.Set(5000);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(inflight_.ReadBeyond(&b, 12));
  inflight_.Yield(Quota::kBeyond, &b);
  EXPECT_FALSE(inflight_.ReadBeyond(&b, 13));
  EXPECT_FALSE(inflight_.ReadBeyond(&b, 12));
  EXPECT_TRUE(Eventually([&] { return inflight_.ReadBeyond(&b, 12); }));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(4990));
  EXPECT_FALSE(inflight_.ReadBeyond(&a, 12));
  inflight_.Yield(Quota::kBeyond, &b);
  held.Set(0);
  EXPECT_TRUE(inflight_.ReadBeyond(&b, 5000));
}

TEST_F(InflightTest, RelayedCallsAreRefusedBeyondTheirShare) {
  Charge first(&inflight_, Quota::kRelayed, worker(0));
  Charge second(&inflight_, Quota::kRelayed, worker(1));
  // One may always come.
  EXPECT_FALSE(inflight_.RefuseRelayed(5000));
  first.Set(60);
  EXPECT_FALSE(inflight_.RefuseRelayed(40));
  EXPECT_TRUE(inflight_.RefuseRelayed(41));
  EXPECT_EQ(inflight_.refused(), 1u);
  second.Set(30);
  EXPECT_EQ(inflight_.relayed(), 90u);
  EXPECT_TRUE(inflight_.RefuseRelayed(11));
  // Requests that are read have their own.
  EXPECT_TRUE(inflight_.Fits(Quota::kReading, 100));
  EXPECT_EQ(inflight_.reading(), 0u);
}

TEST_F(InflightTest, RelayedCallsThatHoldTooMuchAreEndedButForOne) {
  int a = 0;
  int b = 0;
  Charge held(&inflight_, Quota::kRelayed, worker(0));
  held.Set(200);
  EXPECT_FALSE(inflight_.EndRelayed(&b));
  held.Set(201);
  EXPECT_FALSE(inflight_.EndRelayed(&a));
  EXPECT_FALSE(inflight_.EndRelayed(&a));
  EXPECT_TRUE(inflight_.EndRelayed(&b));
  EXPECT_EQ(inflight_.refused(), 1u);
  inflight_.Yield(Quota::kRelayed, &a);
  EXPECT_FALSE(inflight_.EndRelayed(&b));
}

TEST_F(InflightTest, RunningCallsHaveWhatRelayedOnesLeave) {
  EXPECT_EQ(inflight_.limit(Quota::kRunning), 600u);
  Charge relayed(&inflight_, Quota::kRelayed, worker(0));
  relayed.Set(50);
  EXPECT_EQ(inflight_.limit(Quota::kRunning), 550u);
  relayed.Set(5000);
  EXPECT_EQ(inflight_.limit(Quota::kRunning), 400u);
  Waiting first;
  Waiting second;
  ASSERT_EQ(inflight_.Admit(&first, worker(0), 400), Admission::kAdmitted);
  ASSERT_EQ(inflight_.Admit(&second, worker(1), 100), Admission::kWaits);
  // Relayed calls that end let misses run, too.
  relayed.Set(0);
  EXPECT_TRUE(Eventually([&] { return second.admitted == 1; }));
  inflight_.Remove(Quota::kRunning, worker(0), 400);
  inflight_.Remove(Quota::kRunning, worker(1), 100);
}

TEST_F(InflightTest, OneAtATimeGoesBeyond) {
  int a = 0;
  int b = 0;
  EXPECT_TRUE(inflight_.GoBeyond(Quota::kBeyond, &a));
  EXPECT_TRUE(inflight_.GoBeyond(Quota::kBeyond, &a));
  EXPECT_FALSE(inflight_.GoBeyond(Quota::kBeyond, &b));
  EXPECT_TRUE(inflight_.GoBeyond(Quota::kRunning, &b));
  inflight_.Yield(Quota::kBeyond, &b);  // which it is not
  EXPECT_FALSE(inflight_.GoBeyond(Quota::kBeyond, &b));
  inflight_.Yield(Quota::kBeyond, &a);
  EXPECT_TRUE(inflight_.GoBeyond(Quota::kBeyond, &b));
}

TEST_F(InflightTest, MissesRunInOrderAsRoomComes) {
  Waiting large;
  Waiting small;
  ASSERT_EQ(inflight_.Admit(&large, worker(0), 500), Admission::kAdmitted);
  Waiting next;
  EXPECT_EQ(inflight_.Admit(&next, worker(0), 200), Admission::kWaits);
  // The capacity would suffice for this one, but no miss is overtaken. As
  // waiting is full, its bytes still count as reading.
  EXPECT_EQ(inflight_.Admit(&small, worker(1), 10), Admission::kWaitsInPlace);
  EXPECT_EQ(inflight_.waiting(), 200u);
  EXPECT_EQ(inflight_.running(), 500u);
  EXPECT_TRUE(inflight_.readers_wait());
  inflight_.Remove(Quota::kRunning, worker(0), 500);
  EXPECT_TRUE(
      Eventually([&] { return next.admitted == 1 && small.admitted == 1; }));
  EXPECT_EQ(inflight_.waiting(), 0u);
  EXPECT_EQ(inflight_.running(), 210u);
  inflight_.Remove(Quota::kRunning, worker(0), 200);
  inflight_.Remove(Quota::kRunning, worker(1), 10);
  EXPECT_EQ(inflight_.running(), 0u);
}

// A miss that queues up as the last one ends sees that, or is seen.
TEST_F(InflightTest, NobodyIsForgottenInTheMomentBetween) {
  std::atomic<int> runs{0};
  const absl::Time until = absl::Now() + absl::Seconds(60);
  const auto run = [&](int i) {
    for (int j = 0; j < 50'000; ++j) {
      Waiting waiter;
      bool runs_now =
          inflight_.Admit(&waiter, worker(i), 600) == Admission::kAdmitted;
      while (!runs_now && absl::Now() < until) runs_now = waiter.admitted == 1;
      if (!runs_now) {
        inflight_.Forget(&waiter);
        return;
      }
      ++runs;
      inflight_.Remove(Quota::kRunning, worker(i), 600);
    }
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  EXPECT_EQ(runs, 100'000);
}

TEST_F(InflightTest, WhatIsLargerThanAllRunsAlone) {
  Waiting first;
  ASSERT_EQ(inflight_.Admit(&first, worker(0), 5000), Admission::kAdmitted);
  Waiting second;
  EXPECT_EQ(inflight_.Admit(&second, worker(0), 1), Admission::kWaits);
  Waiting empty;
  EXPECT_EQ(inflight_.Admit(&empty, worker(0), 0), Admission::kWaits);
  EXPECT_FALSE(inflight_.Forget(&second));
  EXPECT_FALSE(inflight_.Forget(&empty));
  EXPECT_EQ(inflight_.waiting(), 0u);
  inflight_.Remove(Quota::kRunning, worker(0), 5000);
}

TEST_F(InflightTest, WhoStopsWaitingHoldsUpNobody) {
  Waiting running;
  ASSERT_EQ(inflight_.Admit(&running, worker(0), 550), Admission::kAdmitted);
  Waiting gone;
  Waiting stays;
  ASSERT_EQ(inflight_.Admit(&gone, worker(0), 600), Admission::kWaits);
  ASSERT_EQ(inflight_.Admit(&stays, worker(1), 50), Admission::kWaitsInPlace);
  // The capacity sufficed for `stays` all the time.
  EXPECT_FALSE(inflight_.Forget(&gone));
  EXPECT_TRUE(Eventually([&] { return stays.admitted == 1; }));
  EXPECT_EQ(gone.admitted, 0);
  EXPECT_EQ(inflight_.running(), 600u);
  inflight_.Remove(Quota::kRunning, worker(0), 550);
  EXPECT_EQ(inflight_.running(), 50u);
}

// A waiter that leaves in the moment between is admitted all the same: its
// bytes are counted, and it is not notified.
TEST_F(InflightTest, AdmittedAndNotTold) {
  Waiting running;
  ASSERT_EQ(inflight_.Admit(&running, worker(0), 600), Admission::kAdmitted);
  Waiting waits;
  ASSERT_EQ(inflight_.Admit(&waits, worker(0), 70), Admission::kWaits);
  std::atomic<bool> admitted{false};
  std::atomic<bool> done{false};
  worker(0)->Post([&] {
    inflight_.Remove(Quota::kRunning, worker(0), 600);
    admitted = inflight_.Forget(&waits);
    done = true;
  });
  ASSERT_TRUE(Eventually([&] { return done.load(); }));
  EXPECT_TRUE(admitted);
  EXPECT_EQ(inflight_.running(), 70u);
  std::atomic<bool> later{false};
  worker(0)->Post([&] { later = true; });
  ASSERT_TRUE(Eventually([&] { return later.load(); }));
  EXPECT_EQ(waits.admitted, 0);
}

TEST_F(InflightTest, WhereTheFunctionHangsMissesAreRefused) {
  Waiting running;
  ASSERT_EQ(inflight_.Admit(&running, worker(0), 600), Admission::kAdmitted);
  Waiting first;
  ASSERT_EQ(inflight_.Admit(&first, worker(0), 90), Admission::kWaits);
  const absl::Time start = absl::Now();
  int waited = 0;
  // A miss that comes as soon as waiting is full may wait: it will move.
  EXPECT_TRUE(Eventually([&] {
    Waiting more;
    const Admission admission = inflight_.Admit(&more, worker(0), 20);
    if (admission == Admission::kRefused) return true;
    ++waited;
    inflight_.Forget(&more);
    return false;
  }));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(4990));
  EXPECT_GT(waited, 0);
  EXPECT_EQ(inflight_.refused(), 1u);
  // Within the quota it may still wait.
  Waiting within;
  EXPECT_EQ(inflight_.Admit(&within, worker(0), 5), Admission::kWaits);
  inflight_.Remove(Quota::kRunning, worker(0), 600);
  EXPECT_TRUE(
      Eventually([&] { return first.admitted == 1 && within.admitted == 1; }));
}

// Those beyond the limit of waiting wait in place while the queue moves.
TEST_F(InflightTest, WhereTheFunctionHangsThoseInPlaceGiveUp) {
  Waiting running;
  ASSERT_EQ(inflight_.Admit(&running, worker(0), 600), Admission::kAdmitted);
  Waiting first;
  ASSERT_EQ(inflight_.Admit(&first, worker(0), 90), Admission::kWaits);
  Waiting in_place;
  Waiting counted;
  ASSERT_EQ(inflight_.Admit(&in_place, worker(0), 20),
            Admission::kWaitsInPlace);
  ASSERT_EQ(inflight_.Admit(&counted, worker(0), 30), Admission::kWaitsInPlace);
  EXPECT_FALSE(inflight_.GivesUp(&in_place));
  // Its owner has released it, so its bytes count as waiting, once.
  inflight_.Count(&counted);
  inflight_.Count(&counted);
  EXPECT_EQ(inflight_.waiting(), 120u);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(Eventually([&] { return inflight_.GivesUp(&in_place); }));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(4900));
  EXPECT_FALSE(inflight_.GivesUp(&counted));
  EXPECT_FALSE(inflight_.GivesUp(&first));
  EXPECT_EQ(inflight_.refused(), 1u);
  EXPECT_FALSE(inflight_.Forget(&in_place));
  inflight_.Remove(Quota::kRunning, worker(0), 600);
  EXPECT_TRUE(
      Eventually([&] { return first.admitted == 1 && counted.admitted == 1; }));
  EXPECT_EQ(in_place.admitted, 0);
  EXPECT_EQ(inflight_.waiting(), 0u);
}

struct Reading : ReadGrants::Reader {
  void OnGranted(Quota quota) override {
    as = quota;
    if (on_room) on_room();
    ++told;
  }
  std::atomic<int> told{0};
  Quota as = Quota::kArriving;
  std::function<void()> on_room;
};

// Everything runs on the worker's thread, whose timer polls for capacity.
class ReadRoomTest : public InflightTest {
 protected:
  void Do(absl::AnyInvocable<void()> task) {
    ASSERT_TRUE(DoOn(worker(0), std::move(task)));
  }
  ReadGrants grants_{&inflight_, worker(0)};
};

TEST_F(ReadRoomTest, SmallestFirstAndOneAlwaysGoesOn) {
  Reading first;
  Reading large;
  Reading small;
  Do([&] {
    grants_.Ask(&first, this, 40, 40);
    EXPECT_EQ(first.told, 1);
    EXPECT_EQ(first.as, Quota::kReading);
    inflight_.Add(Quota::kReading, worker(0), 90);
    // No capacity for this one, but one may always continue.
    grants_.Ask(&large, this, 5000, 5000);
    EXPECT_EQ(large.told, 1);
    EXPECT_EQ(large.as, Quota::kBeyond);
    inflight_.Add(Quota::kBeyond, worker(0), 5000);
  });
  Reading middle;
  Do([&] {
    grants_.Ask(&middle, this, 95, 95);
    grants_.Ask(&small, this, 10, 10);
    EXPECT_EQ(middle.told, 0);
    EXPECT_EQ(small.told, 0);
    // Capacity for one of them: it is the smaller, though it came later.
    inflight_.Remove(Quota::kReading, worker(0), 50);
  });
  EXPECT_TRUE(Eventually([&] { return small.told == 1; }));
  EXPECT_EQ(small.as, Quota::kReading);
  EXPECT_EQ(middle.told, 0);
  Do([&] {
    grants_.Forget(&large);
    inflight_.Remove(Quota::kBeyond, worker(0), 5000);
  });
  // Now no request is beyond, and the oldest one that waits goes there.
  EXPECT_TRUE(Eventually([&] { return middle.told == 1; }));
  EXPECT_EQ(middle.as, Quota::kBeyond);
  Do([&] {
    for (Reading* one : {&first, &middle, &small, &large}) grants_.Forget(one);
    inflight_.Remove(Quota::kReading, worker(0), 40);
  });
  EXPECT_EQ(inflight_.reading(), 0u);
}

// A request that comes after a quiet time has not waited.
TEST_F(ReadRoomTest, WhoWaitsStandsStillSinceThen) {
  Reading first;
  Reading beyond;
  Reading next;
  Do([&] { grants_.Ask(&first, this, 40, 40); });
  absl::SleepFor(absl::Milliseconds(600));
  absl::Time asked;
  Do([&] {
    inflight_.Add(Quota::kReading, worker(0), 90);
    grants_.Ask(&beyond, this, 200, 200);
    EXPECT_EQ(beyond.told, 1);  // one always does
    EXPECT_EQ(beyond.as, Quota::kBeyond);
    inflight_.Add(Quota::kBeyond, worker(0), 200);
    asked = absl::Now();
    grants_.Ask(&next, this, 95, 95);
    EXPECT_EQ(next.told, 0);
  });
  EXPECT_TRUE(Eventually([&] { return next.told == 1; }));
  EXPECT_EQ(next.as, Quota::kBeyond);
  EXPECT_GE(absl::Now() - asked, absl::Milliseconds(490));
  Do([&] {
    for (Reading* one : {&first, &beyond, &next}) grants_.Forget(one);
    inflight_.Remove(Quota::kReading, worker(0), 90);
    inflight_.Remove(Quota::kBeyond, worker(0), 200);
  });
}

// Or one that asks for much and sends little would keep all others waiting.
TEST_F(ReadRoomTest, AConnectionLeavesAsMuchAsItHas) {
  int greedy = 0;
  int others[3] = {};
  Reading held[4];
  Reading small[3];
  EXPECT_TRUE(inflight_.GoBeyond(Quota::kBeyond, this));
  Do([&] {
    for (Reading& one : held) {
      one.on_room = [&] { inflight_.Add(Quota::kReading, worker(0), 20); };
      grants_.Ask(&one, &greedy, 20, 20);
    }
    EXPECT_EQ(held[0].told + held[1].told, 2);
    EXPECT_EQ(held[2].told + held[3].told, 0);
    // One that is complete, and looked up, holds what it held.
    grants_.Complete(&held[0]);
    grants_.Ask(&small[0], &others[0], 20, 20);
    EXPECT_EQ(small[0].told, 1);
    inflight_.Add(Quota::kReading, worker(0), 20);
    grants_.Ask(&small[1], &others[1], 20, 20);
    EXPECT_EQ(small[1].told, 1);
    inflight_.Add(Quota::kReading, worker(0), 20);
    grants_.Ask(&small[2], &others[2], 11, 11);
    EXPECT_EQ(small[2].told, 0);
    EXPECT_EQ(held[2].told, 0);
    for (Reading* one : {&held[0], &held[1], &small[0], &small[1]}) {
      grants_.Forget(one);
    }
    inflight_.Remove(Quota::kReading, worker(0), 80);
  });
  EXPECT_TRUE(Eventually([&] {
    return small[2].told == 1 && held[2].told == 1 && held[3].told == 1;
  }));
  Do([&] {
    for (Reading& one : held) grants_.Forget(&one);
    grants_.Forget(&small[2]);
    inflight_.Remove(Quota::kReading, worker(0), 40);
    inflight_.Yield(Quota::kBeyond, this);
  });
  EXPECT_EQ(inflight_.reading(), 0u);
}

// The bytes that are kept need capacity, however few are missing.
TEST_F(ReadRoomTest, OfWhichLittleIsMissingNeedsItsRoomToo) {
  Reading held[3];
  EXPECT_TRUE(inflight_.GoBeyond(Quota::kBeyond, this));
  Do([&] {
    for (Reading& one : held) {
      one.on_room = [&] { inflight_.Add(Quota::kReading, worker(0), 20); };
      grants_.Ask(&one, this, 1, 20);
    }
    EXPECT_EQ(held[0].told + held[1].told, 2);
    EXPECT_EQ(held[2].told, 0);
    for (Reading& one : held) grants_.Forget(&one);
    inflight_.Remove(Quota::kReading, worker(0), 40);
    inflight_.Yield(Quota::kBeyond, this);
  });
}

// A smaller request whose connection has reached its quota does not delay the
// next one.
TEST_F(ReadRoomTest, AConnectionThatHasItsPartHoldsUpNobody) {
  int greedy = 0;
  int others = 0;
  Reading held;
  Reading small;
  Reading larger;
  EXPECT_TRUE(inflight_.GoBeyond(Quota::kBeyond, this));
  Do([&] {
    held.on_room = [&] { inflight_.Add(Quota::kReading, worker(0), 20); };
    grants_.Ask(&held, &greedy, 20, 20);
    inflight_.Add(Quota::kReading, worker(0), 70);
    grants_.Ask(&small, &greedy, 6, 6);
    grants_.Ask(&larger, &others, 10, 10);
    EXPECT_EQ(small.told + larger.told, 0);
    inflight_.Remove(Quota::kReading, worker(0), 10);
  });
  EXPECT_TRUE(Eventually([&] { return larger.told == 1; }));
  EXPECT_EQ(small.told, 0);
  Do([&] {
    for (Reading* one : {&held, &small, &larger}) grants_.Forget(one);
    inflight_.Remove(Quota::kReading, worker(0), 80);
    inflight_.Yield(Quota::kBeyond, this);
  });
}

TEST_F(ReadRoomTest, WhatIsUnpackedNeedsRoomToo) {
  Reading packed;
  Reading other;
  Do([&] {
    EXPECT_TRUE(grants_.Hold(&packed, this, 30));
    inflight_.Add(Quota::kReading, worker(0), 30);
    EXPECT_TRUE(grants_.Hold(&packed, this, 50));
    inflight_.Add(Quota::kReading, worker(0), 20);
    EXPECT_FALSE(grants_.Hold(&packed, this, 51));
    // It has 50, so its connection's quota is used up.
    EXPECT_FALSE(grants_.Hold(&other, this, 1));
    int connection = 0;
    EXPECT_TRUE(grants_.Hold(&other, &connection, 25));
    grants_.Forget(&other);
    grants_.Forget(&packed);
    inflight_.Remove(Quota::kReading, worker(0), 50);
    EXPECT_TRUE(grants_.Hold(&other, this, 50));
    grants_.Forget(&other);
  });
}

TEST_F(ReadRoomTest, OneConnectionLeavesRoomForOthers) {
  int greedy = 0;
  int other = 0;
  Reading held[2];
  Reading small;
  Reading larger;
  Do([&] {
    // A quarter of the capacity is 25 bytes: it has that, as no other asks.
    grants_.Ask(&held[0], &greedy, 20, 20);
    inflight_.Add(Quota::kReading, worker(0), 20);
    grants_.Ask(&held[1], &greedy, 30, 30);
    inflight_.Add(Quota::kReading, worker(0), 30);
    // A request goes beyond, so that from now on capacity is needed.
    EXPECT_TRUE(inflight_.GoBeyond(Quota::kBeyond, this));
    inflight_.Add(Quota::kReading, worker(0), 50);
    grants_.Ask(&small, &greedy, 10, 10);
    grants_.Ask(&larger, &other, 30, 30);
    EXPECT_EQ(small.told + larger.told, 0);
    // Capacity for either of them. The other connection's is let in, though
    // larger, and then none is left.
    inflight_.Remove(Quota::kReading, worker(0), 70);
    larger.on_room = [&] { inflight_.Add(Quota::kReading, worker(0), 30); };
  });
  EXPECT_TRUE(Eventually([&] { return larger.told == 1; }));
  EXPECT_EQ(small.told, 0);
  Do([&] {
    EXPECT_EQ(held[0].told + held[1].told, 2);
    inflight_.Remove(Quota::kReading, worker(0), 60);
    grants_.Forget(&held[0]);
    grants_.Forget(&held[1]);
    inflight_.Yield(Quota::kBeyond, this);
  });
  // No other connection asks any more.
  EXPECT_TRUE(Eventually([&] { return small.told == 1; }));
  Do([&] {
    for (Reading* one : {&held[0], &held[1], &small, &larger}) {
      grants_.Forget(one);
    }
  });
}

// Which those on other workers hear of.
TEST_F(ReadRoomTest, SomebodyWaits) {
  Reading large;
  Reading waits;
  EXPECT_FALSE(inflight_.readers_wait());
  Do([&] {
    grants_.Ask(&large, this, 5000, 5000);  // beyond
    EXPECT_FALSE(inflight_.readers_wait());
    grants_.Ask(&waits, this, 5000, 5000);
    EXPECT_TRUE(inflight_.readers_wait());
    grants_.Forget(&waits);
    EXPECT_FALSE(inflight_.readers_wait());
    grants_.Forget(&large);
  });
  Charge held(&inflight_, Quota::kReading, worker(0));
  held.Set(101);
  EXPECT_TRUE(inflight_.readers_wait());
}

TEST_F(ReadRoomTest, WithoutABoundThereIsRoom) {
  ReadGrants open(nullptr, worker(0));
  Reading reader;
  Do([&] {
    open.Ask(&reader, this, 1, size_t{1} << 40);
    open.Forget(&reader);
    open.Forget(&reader);
  });
  EXPECT_EQ(reader.told, 1);
}

}  // namespace
}  // namespace fncache::proxy::transport
