// SPDX-License-Identifier: Apache-2.0
// Memory over the shared tier, on a simulated server: what other replicas fill,
// forget and erase meanwhile, and what becomes of fills that do not get there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "cache/store/shared_store.h"
#include "cache/store/tiered_store.h"
#include "tests/cache/store/shared_testing.h"
#include "tests/cache/store/store_testing.h"
#include "tests/cache/store/tiers_testing.h"

namespace fncache::cache::store::testing {
namespace {

using Fault = SimulatedServer::Fault;
using Figures = SharedFigures;

class TieredSharedTest : public FilledTiersTest {
 protected:
  TieredSharedTest() { options_.functions = {{"first", "r1"}}; }

  // Both replicas.
  void OpenTwo() {
    Open();
    auto other = fleet_->Open(options_, &clock_, /*observer=*/nullptr, 1);
    ASSERT_TRUE(other.ok()) << other.status();
    other_ = *std::move(other);
  }
  // The start of an entry that Fill makes now.
  absl::Time Started() { return now() - absl::Seconds(1); }
  // Each later fill starts later.
  void Later() { clock_.Advance(absl::Seconds(1)); }
  // The other replica's fill, which is below on return. Returns its start.
  absl::Time FillElsewhere(uint64_t n, uint64_t version) {
    EXPECT_EQ(FillIn(other_.get(), n, version), PutResult::kStored);
    other_->Flush();
    return Started();
  }
  // The version that the other replica finds below, or -1.
  int64_t Elsewhere(uint64_t n) {
    return Version(n, fleet_->store(1).Get(KeyOf(n), now()));
  }
  uint64_t lookups() {
    uint64_t all = 0;
    for (const uint64_t of : fleet_->store().figures().lookups) all += of;
    return all;
  }
  // Fills that wait while the queue's thread is busy with another one.
  void FillsThatWait(uint64_t count) {
    Hold();
    ASSERT_EQ(Fill(1000, 1), PutResult::kStored);
    AwaitWriter();
    for (uint64_t n = 0; n < count; ++n) {
      ASSERT_EQ(Fill(n, n), PutResult::kStored);
    }
  }
  // Ends the process: its queue is drained.
  void End() {
    std::thread end([this] { store_.reset(); });
    LetGo();
    end.join();
  }

  std::unique_ptr<TieredStore> other_;
  // For hooks: the store's threads send commands until TearDown, when a test's
  // own variables are gone.
  std::atomic<int> commands_{0};
  std::atomic<int> writes_{0};
  std::atomic<int> looks_{0};
  std::atomic<bool> learned_{false};
};

// ---------------------------------------------------------------- Look-ups

TEST_P(TieredSharedTest, OnlyWhatStartedLaterThanMemorysCounts) {
  OpenTwo();
  const absl::Time first = Started();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  store_->Flush();
  EXPECT_EQ(Below(1, first), -1) << "it is the same entry";
  Later();
  const absl::Time second = FillElsewhere(1, 2);
  EXPECT_EQ(Below(1, second), -1);
  EXPECT_EQ(InMemory(1), 1) << "no answer, so no promotion";
  EXPECT_EQ(Below(1, first), 2);
  EXPECT_EQ(InMemory(1), 2);
  EXPECT_EQ(observer_.written(Tier::kMemory), 1) << "a promotion is no fill";
}

TEST_P(TieredSharedTest, WhatMemoryGotMeanwhileIsTheAnswerWithoutACommand) {
  OpenTwo();
  const absl::Time first = Started();
  Later();
  ASSERT_EQ(Fill(1, 2), PutResult::kStored);
  const uint64_t before = lookups();
  EXPECT_EQ(Below(1, first), 2);
  EXPECT_EQ(lookups(), before);
}

TEST_P(TieredSharedTest, AnEarlierEntryBelowReplacesNothingInMemory) {
  OpenTwo();
  const absl::Time first = FillElsewhere(1, 1);
  Later();
  const absl::Time second = Started();
  ASSERT_EQ(Fill(1, 2, /*lower=*/false), PutResult::kStored);
  store_->Flush();
  EXPECT_EQ(Elsewhere(1), -1) << "a fill for memory alone erases it";
  ASSERT_LT(first, second);
  Hold();
  ASSERT_EQ(Fill(2, 2), PutResult::kStored);
  AwaitWriter();
  clock_.Advance(-absl::Seconds(1));
  FillElsewhere(2, 1);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Below(2, second), -1);
  EXPECT_EQ(InMemory(2), 2);
}

TEST_P(TieredSharedTest, AFillThatWaitsDoesNotHideAYoungerOneBelow) {
  OpenTwo();
  Hold();
  const absl::Time first = Started();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  AwaitWriter();
  EXPECT_EQ(Below(1, first), -1);
  EvictMemory();
  ASSERT_EQ(InMemory(1), -1);
  EXPECT_EQ(Below(1), 1) << "it waits, and memory gets it back";
  EXPECT_EQ(InMemory(1), 1);
  Later();
  FillElsewhere(1, 2);
  EXPECT_EQ(Below(1, first), 2);
  EXPECT_EQ(InMemory(1), 2);
  LetGo();
  store_->Flush();
  EXPECT_EQ(Elsewhere(1), 2);
  EXPECT_EQ(InMemory(1), 2);
}

TEST_P(TieredSharedTest, AnErasureThatWaitsHidesWhatItErasesAndNothingYounger) {
  OpenTwo();
  FillElsewhere(1, 1);
  FillElsewhere(2, 1);
  Later();
  FillsThatWait(0);
  ASSERT_EQ(Fill(1, 2, /*lower=*/false), PutResult::kStored);
  store_->Supersede(KeyOf(2), Started(), 0, now());
  EvictMemory();
  ASSERT_EQ(InMemory(1), -1);
  EXPECT_EQ(Elsewhere(1), 1);
  EXPECT_EQ(Below(1), -1);
  EXPECT_EQ(Below(2), -1);
  Later();
  FillElsewhere(1, 3);
  FillElsewhere(2, 3);
  EXPECT_EQ(Below(1), 3);
  EXPECT_EQ(Below(2), 3);
  LetGo();
  store_->Flush();
  EXPECT_EQ(Elsewhere(1), 3);
  EXPECT_EQ(Elsewhere(2), 3);
  EXPECT_EQ(InMemory(1), 3);
}

// Also if memory has lost it again.
TEST_P(TieredSharedTest, AFillDuringTheLookUpIsTheAnswer) {
  OpenTwo();
  FillElsewhere(1, 1);
  FillElsewhere(2, 1);
  Later();
  Hook([this](const resp::Command& command) {
    if (command.words[0] != "GET") return Fault::kNone;
    ++looks_;
    if (looks_ == 1) {
      EXPECT_EQ(Fill(1, 2), PutResult::kStored);
    }
    if (looks_ == 2) {
      EXPECT_EQ(Fill(2, 2), PutResult::kStored);
      EvictMemory();
    }
    return Fault::kNone;
  });
  FillsThatWait(0);
  EXPECT_EQ(Below(1), 2);
  EXPECT_EQ(InMemory(1), 2);
  EXPECT_EQ(Below(2), 2);
  EXPECT_EQ(looks_, 2);
  LetGo();
  store_->Flush();
  EXPECT_EQ(Elsewhere(1), 2);
  EXPECT_EQ(Elsewhere(2), 2);
}

TEST_P(TieredSharedTest, WhileItIsAwayALookUpMissesAtOnceAndIsCounted) {
  Open();
  EXPECT_TRUE(store_->MayFindBelow());
  fleet_->simulated().SetUp(false);
  EXPECT_FALSE(fleet_->store().Sync().ok());
  EXPECT_FALSE(store_->MayFindBelow());
  EXPECT_EQ(fleet_->store().figures().lookups[Figures::kDown], 1);
  EXPECT_TRUE(store_->has_lower());
  EXPECT_TRUE(store_->MayBeYoungerBelow());
  EXPECT_FALSE(store_->LowerStats().up);
  fleet_->simulated().SetUp(true);
  EXPECT_TRUE(fleet_->store().Sync().ok());
  EXPECT_TRUE(store_->MayFindBelow());
  fleet_->boottime += absl::ToInt64Nanoseconds(SharedStore::kRecordLimit) + 1;
  EXPECT_FALSE(store_->MayFindBelow()) << "the record is too old";
  EXPECT_EQ(fleet_->store().figures().lookups[Figures::kDown], 2);
}

// -------------------------------------------------------------- Forgetting

TEST_P(TieredSharedTest, ForgottenIsGoneFromMemoryAndTheQueueAndStaysBelow) {
  Open();
  ASSERT_EQ(Fill(1, 1), PutResult::kStored);
  store_->Flush();
  FillsThatWait(0);
  ASSERT_EQ(Fill(2, 1), PutResult::kStored);
  const absl::Time until = Started();
  Later();
  ASSERT_EQ(Fill(3, 1), PutResult::kStored);
  ASSERT_EQ(store_->QueueDepth(), 3);
  for (const uint64_t n : {1, 2, 3}) store_->Forget(KeyOf(n), until, now());
  EXPECT_EQ(InMemory(1), -1);
  EXPECT_EQ(InMemory(2), -1);
  EXPECT_EQ(InMemory(3), 1) << "it started later";
  EXPECT_EQ(store_->QueueDepth(), 2);
  LetGo();
  store_->Flush();
  EXPECT_EQ(Below(1), 1) << "the process that purges it erases it there";
  EXPECT_EQ(Below(2), -1);
  EXPECT_EQ(Below(3), 1);
}

TEST_P(TieredSharedTest, ALookUpThatIsUnderWayDoesNotBringForgottenBack) {
  OpenTwo();
  const absl::Time until = FillElsewhere(1, 1);
  Hook([this, until](const resp::Command& command) {
    if (command.words[0] == "GET" && !learned_) {
      learned_ = true;
      store_->bans().BanKey(KeyOf(1), until, /*soft=*/false, until);
      store_->Forget(KeyOf(1), until, now());
    }
    return Fault::kNone;
  });
  EXPECT_EQ(Below(1), -1);
  EXPECT_TRUE(learned_);
  EXPECT_EQ(InMemory(1), -1);
}

// ------------------------------------------------- Fills that do not get there

TEST_P(TieredSharedTest, ADroppedFillHidesTheOlderOneInThisProcessAlone) {
  options_.write_queue_entries = 1;
  OpenTwo();
  FillElsewhere(1, 1);
  ASSERT_EQ(Below(1), 1);
  Later();
  FillsThatWait(1);
  ASSERT_EQ(Fill(1, 2), PutResult::kStored) << "memory takes it";
  EXPECT_EQ(observer_.dropped(Tier::kShared, Dropped::kQueueFull), 1);
  EXPECT_EQ(fleet_->store().figures().writes[Figures::kDropped], 1);
  EvictMemory();
  ASSERT_EQ(InMemory(1), -1);
  for (const bool open : {false, true}) {
    EXPECT_EQ(Below(1), -1) << open;
    EXPECT_EQ(Elsewhere(1), 1) << open;
    LetGo();
    store_->Flush();
  }
  EXPECT_EQ(fleet_->store().figures().writes[Figures::kDropped], 1)
      << "fills for memory alone are none";
  Later();
  FillElsewhere(1, 3);
  EXPECT_EQ(Below(1), 3) << "it is younger than the dropped one";
}

TEST_P(TieredSharedTest, WhileItIsAwayNothingIsSentAndFillsHideOlderOnes) {
  OpenTwo();
  FillElsewhere(1, 1);
  FillElsewhere(2, 1);
  Later();
  Hook([this](const resp::Command&) {
    ++commands_;
    return Fault::kNone;
  });
  fleet_->boottime += absl::ToInt64Nanoseconds(SharedStore::kRecordLimit) + 1;
  ASSERT_EQ(Fill(1, 2), PutResult::kStored);
  ASSERT_EQ(Fill(2, 2, /*lower=*/false), PutResult::kStored);
  store_->Flush();
  EXPECT_EQ(commands_, 0);
  EXPECT_EQ(observer_.dropped(Tier::kShared, Dropped::kError), 1);
  for (const int replica : {0, 1}) {
    ASSERT_TRUE(fleet_->store(replica).Sync().ok());
  }
  EvictMemory();
  for (const uint64_t n : {1, 2}) {
    ASSERT_EQ(InMemory(n), -1);
    EXPECT_EQ(Below(n), -1);
    EXPECT_EQ(Elsewhere(n), 1);
  }
  Later();
  FillElsewhere(1, 3);
  EXPECT_EQ(Below(1), 3);
}

TEST_P(TieredSharedTest, ADrainWritesWhatIsQueuedWithOneCommandEach) {
  OpenTwo();
  Hook([this](const resp::Command& command) {
    ++(IsWrite(command) ? writes_ : commands_);
    return Fault::kNone;
  });
  FillsThatWait(200);
  End();
  EXPECT_EQ(writes_, 201);
  EXPECT_EQ(commands_, 0) << "others";
  EXPECT_EQ(observer_.written(Tier::kShared), 201);
  for (uint64_t n = 0; n < 200; ++n) {
    ASSERT_EQ(Elsewhere(n), static_cast<int64_t>(n));
  }
}

TEST_P(TieredSharedTest, ADrainDropsTheQueueOnceTheServerIsAway) {
  OpenTwo();
  FillsThatWait(200);
  fleet_->simulated().SetReachable(0, false);
  EXPECT_FALSE(fleet_->store().Sync().ok());
  End();
  EXPECT_EQ(observer_.written(Tier::kShared), 0);
  EXPECT_EQ(observer_.dropped(Tier::kShared, Dropped::kError), 201);
  for (uint64_t n = 0; n < 200; ++n) ASSERT_EQ(Elsewhere(n), -1);
}

TEST_P(TieredSharedTest, ADrainSendsNothingOnceTheRecordIsTooOld) {
  OpenTwo();
  Hook([this](const resp::Command&) {
    ++commands_;
    return Fault::kNone;
  });
  FillsThatWait(200);
  fleet_->boottime += absl::ToInt64Nanoseconds(SharedStore::kRecordLimit) + 1;
  End();
  EXPECT_EQ(commands_, 1) << "the one that was being written";
  EXPECT_EQ(observer_.dropped(Tier::kShared, Dropped::kError), 200);
}

// Each command takes all of its time here.
TEST_P(TieredSharedTest, ADrainGivesUpOnAServerThatDoesNotReply) {
  OpenTwo();
  Hook([this](const resp::Command&) {
    ++commands_;
    fleet_->boottime += absl::ToInt64Nanoseconds(SharedStore::kWriteLimit);
    return Fault::kLost;
  });
  FillsThatWait(200);
  End();
  EXPECT_LE(commands_,
            SharedStore::kRecordLimit / SharedStore::kWriteLimit + 1);
  EXPECT_EQ(observer_.written(Tier::kShared), 0);
  EXPECT_EQ(observer_.dropped(Tier::kShared, Dropped::kError), 201);
}

INSTANTIATE_TEST_SUITE_P(Below, TieredSharedTest,
                         ::testing::Values(OnSimulated()), NameOfBelow);

}  // namespace
}  // namespace fncache::cache::store::testing
