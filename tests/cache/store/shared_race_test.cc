// SPDX-License-Identifier: Apache-2.0
// Races between replicas on the shared server, step by step. The schedules
// (fleet_schedule_test.cc) found them.
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "cache/store/bans.h"
#include "cache/store/seal.h"
#include "cache/store/shared_store.h"
#include "gtest/gtest.h"
#include "tests/cache/store/fleet_testing.h"
#include "tests/cache/store/simulated_server.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

class SharedRaceTest : public ::testing::Test {
 protected:
  struct Member {
    Bans bans;
    std::unique_ptr<SharedStore> store;
  };

  SharedRaceTest() {
    server_.SetHooks({[this](int r, const resp::Command& command) {
                        if (before_) before_(r, command);
                        return fault_;
                      },
                      nullptr});
    for (int r = 0; r < kReplicas; ++r) {
      SharedStoreOptions options;
      options.server = server_.Connect(r);
      options.secret = kFleetSecret;
      options.timeout = absl::Hours(1);
      options.boottime = [this] { return clock_.Now() - kStart; };
      options.sync_by_itself = false;
      for (FunctionId function = 0; function < kFunctions; ++function) {
        options.functions.push_back(
            {FunctionName(function), GenerationName(function), false});
      }
      Member& member = fleet_[r];
      member.store = SharedStore::Create(std::move(options), &member.bans,
                                         &clock_, nullptr);
      member.store->Attach(&member.bans, clock_.Now());
      EXPECT_TRUE(member.store->Sync().ok());
    }
  }

  PutResult Put(int r, absl::Time started) {
    EntrySpec spec;
    spec.started = started;
    spec.took = clock_.Now() - started;
    spec.lifetime = absl::Hours(3);
    return fleet_[r].store->Put(KeyOf(0), EntryOf(0, spec), clock_.Now());
  }
  bool Finds(int r) {
    return static_cast<bool>(
        fleet_[r].store->Get(KeyOf(0), clock_.Now()).entry);
  }

  SimulatedClock clock_{kStart};
  SimulatedServer server_{&clock_};
  SimulatedServer::Fault fault_ = SimulatedServer::Fault::kNone;
  std::function<void(int, const resp::Command&)> before_;
  std::array<Member, kReplicas> fleet_;
};

TEST_F(SharedRaceTest, ABanThatIsMadeAfterTheLookKeepsItsTime) {
  // Replica 1 looks at the record and is suspended. Replica 0 purges meanwhile.
  fleet_[0].bans.Ban(Bans::Kind::kFunction, FunctionName(1), "", kStart, false);
  ASSERT_TRUE(fleet_[0].bans.Save().ok());
  absl::Time before;
  before_ = [&](int r, const resp::Command& command) {
    if (r != 1 || command.words[0] != "GET") return;
    before_ = nullptr;
    clock_.Advance(absl::Minutes(1));
    before = fleet_[0].store->LatestTime();
    fleet_[0].bans.Ban(Bans::Kind::kAll, "", "", before, false);
    EXPECT_TRUE(fleet_[0].bans.Save().ok());
  };
  EXPECT_TRUE(fleet_[1].store->Sync().ok());
  ASSERT_EQ(before_, nullptr);
  EXPECT_TRUE(
      fleet_[1].bans.CoversStored(FunctionName(0), "g0", KeyOf(0), before));
  // The record has it, too.
  EXPECT_TRUE(fleet_[2].store->Sync().ok());
  EXPECT_TRUE(
      fleet_[2].bans.CoversStored(FunctionName(0), "g0", KeyOf(0), before));
}

TEST_F(SharedRaceTest, ARecordThatDoesNotOpenBansWhatStartedUntilThen) {
  fleet_[0].bans.Ban(Bans::Kind::kFunction, FunctionName(1), "", kStart, false);
  ASSERT_TRUE(fleet_[0].bans.Save().ok());
  const std::string name = Seal(kFleetSecret, "fncache").NameOfBans();
  before_ = [&](int r, const resp::Command& command) {
    if (r != 1 || command.words[0] != "GET") return;
    before_ = nullptr;
    clock_.Advance(absl::Minutes(1));
    server_.Write(name, {"1 not sealed, and long enough for a beginning", {}});
  };
  EXPECT_TRUE(fleet_[1].store->Sync().ok());
  ASSERT_EQ(before_, nullptr);
  EXPECT_TRUE(fleet_[1].bans.CoversStored(FunctionName(0), "g0", KeyOf(0),
                                          kStart + absl::Minutes(1)));
}

TEST_F(SharedRaceTest, AnOlderFillDoesNotComeBackAfterAnErasure) {
  const absl::Time old = clock_.Now();
  clock_.Advance(absl::Seconds(2));
  ASSERT_EQ(Put(0, clock_.Now() - absl::Seconds(1)), PutResult::kStored);
  // Replica 1 got an answer that is not stored.
  EXPECT_EQ(fleet_[1].store->EraseUpTo(KeyOf(0), clock_.Now(), 0, clock_.Now(),
                                       nullptr),
            PutResult::kStored);
  EXPECT_EQ(Put(2, old), PutResult::kOlder);
  EXPECT_FALSE(Finds(0));
  EXPECT_EQ(Put(2, clock_.Now() + absl::Nanoseconds(1)), PutResult::kStored);
  EXPECT_TRUE(Finds(0));
}

TEST_F(SharedRaceTest, AnErasureDoesNotUndoAPurge) {
  const absl::Time old = clock_.Now();
  clock_.Advance(absl::Seconds(1));
  // Replica 0 purges the key.
  Bans& bans = fleet_[0].bans;
  const absl::Time before = fleet_[0].store->LatestTime();
  const auto banned = bans.BanKey(KeyOf(0), before, false, before);
  EXPECT_TRUE(fleet_[0].store->Purge(KeyOf(0), before, clock_.Now()).lasting);
  EXPECT_TRUE(bans.Save().ok());
  // Replica 1 got an answer that is not stored. Replica 2 has not learned yet.
  clock_.Advance(absl::Seconds(2));
  fleet_[1].store->EraseUpTo(KeyOf(0), clock_.Now(), 0, clock_.Now(), nullptr);
  EXPECT_EQ(Put(2, old), PutResult::kOlder);
  // Its entry would outlive the ban.
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(absl::Minutes(30));
    EXPECT_TRUE(fleet_[0].store->Sync().ok());
  }
  EXPECT_FALSE(Finds(0));
}

TEST_F(SharedRaceTest, AFillThatArrivesLateReplacesNothing) {
  // The kernel sends a command also after its connection was closed.
  fault_ = SimulatedServer::Fault::kLate;
  EXPECT_EQ(Put(0, clock_.Now()), PutResult::kFailed);
  fault_ = SimulatedServer::Fault::kNone;
  clock_.Advance(absl::Seconds(9));
  const absl::Time started = clock_.Now();
  ASSERT_EQ(Put(1, started), PutResult::kStored);
  EXPECT_EQ(server_.DeliverLate(), 1u);
  const Found found = fleet_[2].store->Get(KeyOf(0), clock_.Now());
  ASSERT_TRUE(found.entry);
  EXPECT_EQ(found.entry->started(), started);
}

TEST_F(SharedRaceTest, AFullServerErasesWithoutAMark) {
  ASSERT_EQ(Put(0, clock_.Now()), PutResult::kStored);
  server_.SetFull(true);
  EXPECT_EQ(fleet_[1].store->EraseUpTo(KeyOf(0), clock_.Now(), 0, clock_.Now(),
                                       nullptr),
            PutResult::kStored);
  EXPECT_FALSE(Finds(0));
}

}  // namespace
}  // namespace fncache::cache::store::testing
