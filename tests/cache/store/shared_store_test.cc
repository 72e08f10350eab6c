// SPDX-License-Identifier: Apache-2.0
// Holds the shared store to what it owes beyond the contract of every store:
// its values, its fills, the record of bans and the clocks, on a simulated
// server and in simulated time.
#include "cache/store/shared_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cache/store/open_tiers.h"
#include "cache/store/shared_value.h"
#include "common/clock.h"
#include "tests/cache/store/simulated_server.h"
#include "tests/cache/store/store_testing.h"
#include "tests/common/eventually.h"

namespace fncache::cache::store::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Fault = SimulatedServer::Fault;
using Figures = SharedFigures;

constexpr char kSecret[] = "0123456789abcdef0123456789abcdef";
const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

absl::optional<StoredScope> NoScope(absl::string_view) { return absl::nullopt; }

// A process of a fleet.
struct Replica {
  explicit Replica(absl::Time start) : clock(start) {}

  uint64_t lookups(Figures::Lookup how) const {
    return store->figures().lookups[how];
  }
  uint64_t writes(Figures::Write how) const {
    return store->figures().writes[how];
  }

  SimulatedClock clock;
  std::atomic<int64_t> boottime{absl::ToInt64Nanoseconds(absl::Hours(5))};
  CountingObserver observer;
  std::vector<Bans::Learned> learned;
  Bans bans;
  std::unique_ptr<SharedStore> store;
};

class SharedStoreTest : public ::testing::Test {
 protected:
  SharedStoreTest() : seal_(kSecret, "fncache") {}

  Replica& Start(absl::Duration ahead = absl::ZeroDuration()) {
    replicas_.push_back(std::make_unique<Replica>(clock_.Now() + ahead));
    Replica* const replica = replicas_.back().get();
    SharedStoreOptions options;
    options.server = server_.Connect(static_cast<int>(replicas_.size()) - 1);
    options.secret = secret_;
    options.functions = {{"f", "r1", true}, {"g", "r1", false}};
    options.max_entry_bytes = 10'000;
    options.timeout = absl::Seconds(1);
    options.learned = [replica](const Bans::Learned& learned) {
      replica->learned.push_back(learned);
    };
    options.boottime = [replica] {
      return absl::Nanoseconds(replica->boottime.load());
    };
    options.sync_by_itself = false;
    replica->store = SharedStore::Create(std::move(options), &replica->bans,
                                         &replica->clock, &replica->observer);
    replica->store->Attach(&replica->bans, replica->clock.Now());
    return *replica;
  }
  Replica& StartUp(absl::Duration ahead = absl::ZeroDuration()) {
    Replica& replica = Start(ahead);
    EXPECT_TRUE(replica.store->Sync().ok());
    return replica;
  }

  void Advance(absl::Duration by) {
    clock_.Advance(by);
    for (const auto& replica : replicas_) {
      replica->clock.Advance(by);
      replica->boottime += absl::ToInt64Nanoseconds(by);
    }
  }

  EntryRef Entry(uint64_t n, uint64_t version, absl::Time started,
                 absl::Duration lifetime = absl::Hours(1), size_t size = 100) {
    EntrySpec spec;
    spec.version = version;
    spec.started = started;
    spec.lifetime = lifetime;
    spec.size = size;
    spec.took = absl::ZeroDuration();
    return EntryOf(n, spec);
  }
  static EntryRef WithSecrets(absl::Time started) {
    EntryInfo info;
    info.started = info.arrived = started;
    info.lifetime = absl::Hours(1);
    info.secrets = true;
    return store::Entry::Create(info, "", {"secret"});
  }
  PutResult Put(Replica& replica, uint64_t n, uint64_t version,
                absl::Time started, EntryRef* later = nullptr) {
    return replica.store->PutOrGet(KeyOf(n), Entry(n, version, started),
                                   replica.clock.Now(), later);
  }
  // The version that a look-up finds, or -1.
  int64_t Get(Replica& replica, uint64_t n) {
    const Found found = replica.store->Get(KeyOf(n), replica.clock.Now());
    return found.entry ? VersionOf(n, found.entry->body()) : -1;
  }
  std::string NameOf(uint64_t n) { return seal_.NameOf(KeyOf(n)); }
  bool HasMark(uint64_t n) {
    const auto value = server_.Read(NameOf(n));
    return value.has_value() &&
           DecodeShared(seal_, KeyOf(n), value->bytes, [](absl::string_view) {
             return absl::optional<StoredScope>();
           }).mark;
  }
  StoredBans Record() {
    const auto value = server_.Read(seal_.NameOfBans());
    if (!value.has_value()) return {};
    const auto bans = DecodeRecord(seal_, value->bytes);
    EXPECT_TRUE(bans.ok()) << bans.status();
    return bans.ok() ? *bans : StoredBans();
  }
  void Ban(Replica& replica, absl::string_view function) {
    replica.bans.Ban(Bans::Kind::kFunction, function, "",
                     replica.store->LatestTime(), /*soft=*/false);
  }
  // Counts the commands whose first words are these.
  void CountCommands() {
    SimulatedServer::Hooks hooks;
    hooks.after = [this](int, const resp::Command& command) {
      commands_.push_back(
          std::string(command.words[command.words[0] == "EVAL" ? 1 : 0]));
    };
    server_.SetHooks(std::move(hooks));
  }
  void FailAll(Fault fault) {
    SimulatedServer::Hooks hooks;
    hooks.before = [fault](int, const resp::Command&) { return fault; };
    server_.SetHooks(std::move(hooks));
  }

  SimulatedClock clock_{kStart};  // the server's
  SimulatedServer server_{&clock_};
  Seal seal_;
  std::string secret_ = kSecret;
  std::vector<std::string> commands_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

// ------------------------------------------------------------------ Values

TEST_F(SharedStoreTest, OneReplicasFillIsFoundByAnother) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  EXPECT_EQ(a.store->seed(), b.store->seed());
  EXPECT_EQ(a.store->tier(), Tier::kShared);
  EXPECT_TRUE(a.store->is_shared());
  EXPECT_EQ(Put(a, 1, 7, kStart), PutResult::kStored);
  EXPECT_EQ(Get(b, 1), 7);
  EXPECT_EQ(Get(b, 2), -1);
  EXPECT_EQ(b.lookups(Figures::kHit), 1u);
  EXPECT_EQ(b.lookups(Figures::kMiss), 1u);
  EXPECT_EQ(a.writes(Figures::kStored), 1u);
  EXPECT_EQ(a.observer.written(Tier::kShared), 1u);
  const auto there = b.store->Inspect(KeyOf(1));
  ASSERT_THAT(there, SizeIs(1));
  EXPECT_EQ(there[0].tier, Tier::kShared);
  EXPECT_EQ(there[0].function, "f");
  EXPECT_EQ(there[0].generation, "r1");
  EXPECT_EQ(there[0].bytes, server_.Read(NameOf(1))->bytes.size());
}

TEST_F(SharedStoreTest, ReplicasOfAnotherSecretNeverMeet) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart);
  secret_ = "another secret of at least 32 bytes";
  Replica& b = StartUp();
  EXPECT_FALSE(a.store->seed() == b.store->seed());
  EXPECT_EQ(Get(b, 1), -1);
  EXPECT_EQ(b.lookups(Figures::kMiss), 1u) << "not one to reject";
  Ban(b, "f");
  EXPECT_TRUE(b.bans.Save().ok());
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_THAT(a.learned, IsEmpty());
}

TEST_F(SharedStoreTest, AValueThatDoesNotOpenIsAMissCountedLoggedAndDeleted) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart);
  Put(a, 2, 8, kStart);
  const std::string of_2 = server_.Read(NameOf(2))->bytes;
  std::string flipped = server_.Read(NameOf(1))->bytes;
  flipped.back() ^= 1;
  ::testing::internal::CaptureStderr();
  uint64_t rejected = 0;
  for (const std::string& bytes :
       {of_2, flipped, std::string("x"), flipped.substr(0, 30),
        std::string(5000, '1')}) {
    server_.Write(NameOf(1), {bytes, absl::nullopt});
    EXPECT_EQ(Get(a, 1), -1);
    EXPECT_EQ(a.lookups(Figures::kRejected), ++rejected);
    EXPECT_EQ(a.observer.errors(Tier::kShared, TierError::kCorrupt), rejected);
    EXPECT_TRUE(a.store->Sync().ok());
    EXPECT_FALSE(server_.Read(NameOf(1)).has_value());
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("does not open"));
  EXPECT_EQ(log.find("does not open"), log.rfind("does not open"))
      << "one line a minute";
  EXPECT_EQ(Get(a, 2), 8);
}

TEST_F(SharedStoreTest, ALaterFillIsNotDeletedWithTheRejectedValue) {
  Replica& a = StartUp();
  server_.Write(NameOf(1), {"x", absl::nullopt});
  EXPECT_EQ(Get(a, 1), -1);
  EXPECT_EQ(Put(a, 1, 7, kStart), PutResult::kStored);
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_EQ(Get(a, 1), 7);
}

TEST_F(SharedStoreTest, EveryReadChecksTheLifetimeInside) {
  Replica& a = StartUp();
  a.store->Put(KeyOf(1), Entry(1, 7, kStart, absl::Seconds(5)), kStart);
  // The server would keep it.
  server_.Write(NameOf(1), {server_.Read(NameOf(1))->bytes, absl::nullopt});
  Advance(absl::Seconds(4));
  EXPECT_EQ(Get(a, 1), 7);
  Advance(absl::Seconds(1));
  const Found found = a.store->Get(KeyOf(1), a.clock.Now());
  EXPECT_FALSE(found.entry);
  EXPECT_TRUE(found.expired);
  EXPECT_EQ(a.lookups(Figures::kMiss), 1u);
}

TEST_F(SharedStoreTest, AnotherGenerationIsAMissAndAnEarlierOneIsNot) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  Put(a, 1, 7, kStart);
  LowerChange change;
  change.shared_timeout = absl::Seconds(1);
  change.shared_max_entry_bytes = 10'000;
  change.functions = {{"f", "r2", true}, {"g", "r1", false}};
  ASSERT_TRUE(a.store->Change(change).ok());
  EXPECT_EQ(Get(a, 1), 7) << "keys lead each generation to its own";
  Put(a, 2, 8, kStart);
  EXPECT_EQ(Get(b, 2), -1);
  EXPECT_THAT(b.store->Inspect(KeyOf(2)), SizeIs(1));
  EXPECT_EQ(b.store->Inspect(KeyOf(2))[0].generation, "r2");
}

// ------------------------------------------------------------------- Fills

TEST_F(SharedStoreTest, AFillIsOneEvalWithTheTimeThatIsLeft) {
  Replica& a = StartUp();
  CountCommands();
  Put(a, 1, 7, kStart);
  EXPECT_THAT(commands_, ElementsAre(kFillScript));
  EXPECT_EQ(server_.Read(NameOf(1))->ends,
            absl::ToUnixMillis(kStart + absl::Hours(1)));
  Advance(absl::Minutes(30));
  EXPECT_TRUE(a.store->Sync().ok());
  a.store->Put(KeyOf(2), Entry(2, 7, kStart), a.clock.Now());
  EXPECT_EQ(server_.Read(NameOf(2))->ends,
            absl::ToUnixMillis(kStart + absl::Hours(1)));
  Advance(absl::Minutes(30));
  EXPECT_EQ(Put(a, 3, 7, kStart), PutResult::kExpired);
}

TEST_F(SharedStoreTest, AFillStoresUnlessTheValueThereStartedLater) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  Put(a, 1, 2, kStart + absl::Seconds(2));
  EntryRef later;
  EXPECT_EQ(Put(b, 1, 1, kStart + absl::Seconds(1), &later), PutResult::kOlder);
  ASSERT_TRUE(later);
  EXPECT_EQ(VersionOf(1, later->body()), 2);
  EXPECT_EQ(b.writes(Figures::kOlder), 1u);
  EXPECT_EQ(Put(b, 1, 3, kStart + absl::Seconds(3)), PutResult::kStored);
  EXPECT_EQ(Get(a, 1), 3);
}

TEST_F(SharedStoreTest, AStartOverFiveSecondsAheadDoesNotCount) {
  Replica& a = StartUp();
  const absl::Time ahead = kStart + kClockTolerance;
  Put(a, 1, 1, ahead);
  EXPECT_EQ(Put(a, 1, 2, kStart), PutResult::kOlder);
  Put(a, 2, 1, ahead + absl::Nanoseconds(1));
  EXPECT_EQ(Put(a, 2, 2, kStart), PutResult::kStored);
}

TEST_F(SharedStoreTest, ALaterValueThatDoesNotOpenIsRejectedAndTheFillFails) {
  Replica& a = StartUp();
  server_.Write(NameOf(1),
                {absl::StrCat(ClearHeader(kStart + absl::Seconds(1)), "forged"),
                 absl::nullopt});
  EntryRef later;
  EXPECT_EQ(Put(a, 1, 7, kStart, &later), PutResult::kFailed);
  EXPECT_FALSE(later);
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_EQ(Put(a, 1, 7, kStart), PutResult::kStored);
}

TEST_F(SharedStoreTest, AnErasureTakesWhatStartedThenOrEarlier) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart + absl::Seconds(1));
  EntryRef later;
  EXPECT_EQ(a.store->EraseUpTo(KeyOf(1), kStart, 0, a.clock.Now(), &later),
            PutResult::kOlder);
  ASSERT_TRUE(later);
  EXPECT_EQ(Get(a, 1), 7);
  EXPECT_EQ(a.store->EraseUpTo(KeyOf(1), kStart + absl::Seconds(1), 0,
                               a.clock.Now(), nullptr),
            PutResult::kStored);
  EXPECT_TRUE(HasMark(1)) << "it keeps older fills out";
  EXPECT_EQ(a.store->EraseUpTo(KeyOf(1), kStart, 0, a.clock.Now(), nullptr),
            PutResult::kOlder);
  EXPECT_EQ(a.store->EraseUpTo(KeyOf(2), kStart, 0, a.clock.Now(), nullptr),
            PutResult::kStored);
  EXPECT_FALSE(server_.Read(NameOf(2)).has_value()) << "nothing was there";
}

TEST_F(SharedStoreTest, ConnectionDetailsAreNeverStoredAndEraseAnOlderValue) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart);
  const EntryRef secret = WithSecrets(kStart + absl::Seconds(1));
  EXPECT_FALSE(a.store->MayKeep(*secret)) << "also with store_secrets: all";
  EXPECT_EQ(a.store->Put(KeyOf(1), secret, a.clock.Now()), PutResult::kStored);
  EXPECT_TRUE(HasMark(1));
  EXPECT_EQ(Get(a, 1), -1);
}

TEST_F(SharedStoreTest, ConnectionDetailsThatAreThereAreNotFound) {
  Replica& a = StartUp();
  server_.Write(NameOf(1),
                {EncodeShared(seal_, KeyOf(1), "f", "r1", *WithSecrets(kStart)),
                 absl::nullopt});
  EXPECT_EQ(Get(a, 1), -1);
}

TEST_F(SharedStoreTest, EntriesThatAreTooLargeAreNotStoredAndEraseAnOlderOne) {
  Replica& a = StartUp();
  std::mt19937 random(1);
  // The second is too large only when it is sealed: it does not compress.
  uint64_t n = 0;
  for (const size_t size : {size_t{10'001}, size_t{9'990}}) {
    Put(a, ++n, 7, kStart);
    std::string body(size, '\0');
    for (char& c : body) c = static_cast<char>(random());
    EntryInfo info;
    info.started = info.arrived = kStart + absl::Seconds(1);
    info.lifetime = absl::Hours(1);
    EXPECT_EQ(a.store->Put(KeyOf(n), store::Entry::Create(info, "", {body}),
                           a.clock.Now()),
              PutResult::kTooLarge);
    EXPECT_TRUE(HasMark(n));
  }
  EXPECT_EQ(a.observer.dropped(Tier::kShared, Dropped::kTooLarge), 2u);
  EXPECT_EQ(a.writes(Figures::kDropped), 2u);
}

TEST_F(SharedStoreTest, AFillThatTheServerRefusesIsCountedAndHidesOlderOnes) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart);
  server_.SetFull(true);
  EXPECT_EQ(Put(a, 1, 8, kStart + absl::Seconds(1)), PutResult::kFailed);
  EXPECT_EQ(a.writes(Figures::kRefused), 1u);
  EXPECT_EQ(a.observer.dropped(Tier::kShared, Dropped::kError), 1u);
  EXPECT_EQ(Get(a, 1), -1) << "an older one does not come back";
  server_.SetFull(false);
  EXPECT_EQ(Put(a, 1, 8, kStart + absl::Seconds(1)), PutResult::kStored);
  EXPECT_EQ(Get(a, 1), 8);
}

TEST_F(SharedStoreTest, AFillWithoutAReplyIsDropped) {
  Replica& a = StartUp();
  for (const Fault fault : {Fault::kLost, Fault::kClosed, Fault::kDown}) {
    FailAll(fault);
    EXPECT_EQ(Put(a, 1, 8, kStart), PutResult::kFailed);
  }
  EXPECT_EQ(a.writes(Figures::kDropped), 3u);
  a.store->OnNotWritten(Dropped::kQueueFull, 0);
  EXPECT_EQ(a.writes(Figures::kDropped), 4u);
  EXPECT_EQ(a.observer.dropped(Tier::kShared, Dropped::kQueueFull), 1u);
}

TEST_F(SharedStoreTest, AboveATierThatIsDownAFillIsDroppedAtOnce) {
  Replica& other = StartUp();
  Put(other, 1, 6, kStart - absl::Seconds(1));
  SharedStore* shared = nullptr;
  TieredOptions tiers;
  tiers.functions = {{"f", "r1", true}, {"g", "r1", false}};
  tiers.open_shared = [&](Bans* bans, Clock* clock, Observer* observer) {
    SharedStoreOptions options;
    options.server = server_.Connect(1);
    options.secret = secret_;
    options.functions = tiers.functions;
    options.sync_by_itself = false;
    auto store = SharedStore::Create(std::move(options), bans, clock, observer);
    shared = store.get();
    return store;
  };
  CountingObserver observer;
  const auto store = OpenTiers(tiers, &clock_, &observer).value();
  EXPECT_FALSE(shared->MayStore());
  EXPECT_EQ(store->Fill(KeyOf(1), Entry(1, 7, kStart), true, kStart),
            PutResult::kStored)
      << "memory takes it";
  // It did not wait for the queue's thread.
  EXPECT_EQ(shared->figures().writes[Figures::kDropped], 1u);
  EXPECT_EQ(observer.dropped(Tier::kShared, Dropped::kError), 1u);
  ASSERT_TRUE(shared->Sync().ok());
  EXPECT_TRUE(shared->MayStore());
  EXPECT_FALSE(shared->Get(KeyOf(1), kStart).entry)
      << "the older one is hidden";
  EXPECT_EQ(store->Fill(KeyOf(2), Entry(2, 7, kStart), true, kStart),
            PutResult::kStored);
  store->Flush();
  EXPECT_EQ(shared->figures().writes[Figures::kStored], 1u);
  EXPECT_EQ(Get(other, 2), 7);
}

TEST_F(SharedStoreTest, TimeOutsAndErrorsNeverCountAsPlainMisses) {
  Replica& a = StartUp();
  const auto lookup = [&](Fault fault) {
    FailAll(fault);
    EXPECT_EQ(Get(a, 1), -1);
  };
  lookup(Fault::kLost);
  EXPECT_EQ(a.lookups(Figures::kTimeout), 1u);
  lookup(Fault::kClosed);
  lookup(Fault::kError);
  lookup(Fault::kDown);
  EXPECT_EQ(a.lookups(Figures::kDown), 3u);
  EXPECT_EQ(a.observer.errors(Tier::kShared, TierError::kRead), 3u);
  EXPECT_EQ(a.lookups(Figures::kMiss), 0u);
}

TEST_F(SharedStoreTest, ALookUpWhoseTimeIsOverIsNotSent) {
  Replica& a = StartUp();
  CountCommands();
  const auto began = std::chrono::steady_clock::now() - std::chrono::seconds(2);
  EXPECT_FALSE(a.store->Find(KeyOf(1), 0, kStart, began).entry);
  EXPECT_EQ(a.lookups(Figures::kTimeout), 1u);
  EXPECT_THAT(commands_, IsEmpty());
}

// -------------------------------------------------------------- The record

TEST_F(SharedStoreTest, TheRecordIsReadOnlyIfItsBeginningChanged) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  EXPECT_FALSE(server_.Read(seal_.NameOfBans()).has_value())
      << "no bans, no record";
  Ban(a, "f");
  EXPECT_TRUE(a.bans.Save().ok());
  CountCommands();
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_THAT(commands_, ElementsAre(kLookScript, "GET"));
  commands_.clear();
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_THAT(commands_, ElementsAre(kLookScript, kLookScript));
}

TEST_F(SharedStoreTest, APurgeIsLearnedByTheOthers) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  Put(a, 1, 7, kStart);
  Ban(a, "f");
  EXPECT_FALSE(a.store->figures().bans_written);
  EXPECT_TRUE(a.bans.Save().ok());
  EXPECT_TRUE(a.bans.lasting());
  EXPECT_TRUE(a.store->figures().bans_written);
  EXPECT_TRUE(b.store->Sync().ok());
  ASSERT_THAT(b.learned, SizeIs(1));
  EXPECT_THAT(b.learned[0].functions, ElementsAre("f"));
  EXPECT_TRUE(b.learned[0].hard);
  EXPECT_EQ(b.learned[0].before, kStart + absl::Seconds(1));
  EXPECT_EQ(Get(b, 1), -1);
  EXPECT_EQ(b.lookups(Figures::kLookupPurged), 1u);
  EXPECT_THAT(a.learned, IsEmpty());
}

TEST_F(SharedStoreTest, TheRecordIsTheUnionOfWhatWasThereAndWhatIsKnown) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  Ban(a, "f");
  EXPECT_TRUE(a.bans.Save().ok());
  Ban(b, "g");
  EXPECT_TRUE(b.bans.Save().ok());
  EXPECT_THAT(Record().functions, SizeIs(2));
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_THAT(a.learned, SizeIs(1));
}

TEST_F(SharedStoreTest, AWriteInBetweenStartsTheRoundOver) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  Ban(b, "g");
  SimulatedServer::Hooks hooks;
  int writes = 0;
  hooks.before = [&](int replica, const resp::Command& command) {
    if (replica == 0 && command.words[0] == "EVAL" &&
        command.words[1] == kRecordScript && ++writes == 1) {
      EXPECT_TRUE(b.bans.Save().ok());
    }
    return Fault::kNone;
  };
  server_.SetHooks(std::move(hooks));
  Ban(a, "f");
  EXPECT_TRUE(a.bans.Save().ok());
  EXPECT_EQ(writes, 2);
  EXPECT_THAT(Record().functions, SizeIs(2));
  EXPECT_THAT(a.learned, SizeIs(1));
}

TEST_F(SharedStoreTest, APoorerRecordIsWrittenAgain) {
  Replica& a = StartUp();
  Ban(a, "f");
  EXPECT_TRUE(a.bans.Save().ok());
  const SimulatedServer::Copy copy = server_.Take();
  Ban(a, "g");
  EXPECT_TRUE(a.bans.Save().ok());
  const StoredBans all = Record();
  for (const auto& lose : std::vector<std::function<void()>>{
           [&] { server_.Clear(); }, [&] { server_.Evict(seal_.NameOfBans()); },
           [&] { server_.Promote(copy); }}) {
    lose();
    EXPECT_TRUE(a.store->Sync().ok());
    EXPECT_EQ(Record().functions, all.functions);
  }
  EXPECT_THAT(a.learned, IsEmpty());
}

TEST_F(SharedStoreTest, IfTheRecordDoesNotOpenAllThatIsStoredCountsAsPurged) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  Ban(a, "g");
  EXPECT_TRUE(a.bans.Save().ok());
  Put(a, 1, 7, kStart);
  std::string bytes = server_.Read(seal_.NameOfBans())->bytes;
  bytes.back() ^= 1;
  bytes[1] ^= 1;  // its beginning shows it
  server_.Write(seal_.NameOfBans(), {bytes, absl::nullopt});
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("error"));
  EXPECT_EQ(Get(a, 1), -1);
  ASSERT_THAT(a.learned, SizeIs(1));
  EXPECT_TRUE(a.learned[0].all);
  EXPECT_TRUE(a.learned[0].hard);
  EXPECT_EQ(Record().all.purged,
            absl::ToUnixNanos(kStart + SharedStore::kPurgeAhead))
      << "it was written again, for the others";
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_TRUE(b.learned[0].all);
  Advance(absl::Seconds(2));
  EXPECT_EQ(Put(a, 1, 8, a.clock.Now()), PutResult::kStored);
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_EQ(Get(b, 1), 8);
}

TEST_F(SharedStoreTest, BeforeTheRecordWasReadTheTierIsNotUsed) {
  Replica& a = Start();
  EXPECT_EQ(Get(a, 1), -1);
  EXPECT_EQ(a.lookups(Figures::kDown), 1u);
  EXPECT_FALSE(a.store->MayFind());
  EXPECT_EQ(a.lookups(Figures::kDown), 2u) << "it counts as a look-up";
  EXPECT_EQ(Put(a, 1, 7, kStart), PutResult::kFailed);
  EXPECT_THAT(a.store->Inspect(KeyOf(1)), IsEmpty());
  EXPECT_FALSE(a.store->Stats().up);
  EXPECT_EQ(a.store->figures().bans_age, absl::InfiniteDuration());
  EXPECT_THAT(server_.Names(), IsEmpty());
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_TRUE(a.store->MayFind());
  EXPECT_TRUE(a.store->Stats().up);
  EXPECT_EQ(Put(a, 1, 7, kStart + absl::Seconds(1)), PutResult::kStored);
}

TEST_F(SharedStoreTest, TenSecondsAfterTheRecordWasReadTheTierIsNotUsed) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart);
  Advance(SharedStore::kRecordLimit);
  EXPECT_EQ(Get(a, 1), 7);
  Advance(absl::Milliseconds(1));
  EXPECT_EQ(Get(a, 1), -1);
  EXPECT_EQ(a.lookups(Figures::kDown), 1u);
  EXPECT_EQ(Put(a, 2, 7, kStart), PutResult::kFailed);
  EXPECT_FALSE(a.store->Purge(KeyOf(1), kStart, a.clock.Now()).lasting);
  const SharedFigures figures = a.store->figures();
  EXPECT_FALSE(figures.up);
  EXPECT_EQ(figures.bans_age, absl::Milliseconds(10'001));
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_EQ(Get(a, 1), -1) << "the purge hides it here";
}

TEST_F(SharedStoreTest, TheTenSecondsCountSuspensionAlsoDuringALookUp) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart);
  SimulatedServer::Hooks hooks;
  hooks.after = [&](int, const resp::Command&) {
    // Neither the wall clock nor the steady one moves.
    a.boottime += absl::ToInt64Nanoseconds(absl::Seconds(11));
  };
  server_.SetHooks(std::move(hooks));
  EXPECT_EQ(Get(a, 1), -1);
  EXPECT_EQ(a.lookups(Figures::kDown), 1u);
}

TEST_F(SharedStoreTest, TheRecordCountsAsReadWhenTheLookWasSent) {
  Replica& a = StartUp();
  SimulatedServer::Hooks hooks;
  hooks.after = [&](int, const resp::Command&) {
    a.boottime += absl::ToInt64Nanoseconds(absl::Seconds(3));
  };
  server_.SetHooks(std::move(hooks));
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_EQ(a.store->figures().bans_age, absl::Seconds(3));
}

TEST_F(SharedStoreTest, AnAbsenceOfMoreThanAnHourEmptiesMemory) {
  Replica& a = StartUp();
  server_.SetReachable(0, false);
  Advance(SharedStore::kKeyLasts);
  EXPECT_FALSE(a.store->Sync().ok());
  server_.SetReachable(0, true);
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_THAT(a.learned, IsEmpty());
  Advance(SharedStore::kKeyLasts + absl::Seconds(1));
  EXPECT_TRUE(a.store->Sync().ok());
  ASSERT_THAT(a.learned, SizeIs(1));
  EXPECT_TRUE(a.learned[0].all);
  EXPECT_TRUE(a.learned[0].hard);
  EXPECT_EQ(a.learned[0].before, a.clock.Now());
  EXPECT_EQ(a.bans.figures().all, 0u) << "it is no ban";
  // Also if it was never read.
  Replica& b = Start();
  Advance(SharedStore::kKeyLasts + absl::Seconds(1));
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_THAT(b.learned, SizeIs(1));
}

// ------------------------------------------------------------------ Purges

TEST_F(SharedStoreTest, APurgeOfAKeyLeavesAMarkForAnHour) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart);
  const absl::Time until = a.store->LatestTime();
  const PurgedKey purged = a.store->Purge(KeyOf(1), until, a.clock.Now());
  EXPECT_EQ(purged.removed, 1);
  EXPECT_TRUE(purged.lasting);
  const auto value = server_.Read(NameOf(1));
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->ends, absl::ToUnixMillis(kStart + absl::Hours(1)));
  const SharedValue mark = DecodeShared(seal_, KeyOf(1), value->bytes, NoScope);
  EXPECT_TRUE(mark.mark);
  EXPECT_EQ(mark.started, until);
  EXPECT_EQ(Get(a, 1), -1);
  EXPECT_EQ(a.lookups(Figures::kLookupPurged), 1u);
  EXPECT_THAT(a.store->Inspect(KeyOf(1)), IsEmpty());
  EXPECT_EQ(a.store->Purge(KeyOf(1), until, a.clock.Now()).removed, 0);
}

TEST_F(SharedStoreTest, NoOlderFillOfAnotherReplicaComesAfterTheMark) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  const absl::Time until = a.store->LatestTime();
  a.store->Purge(KeyOf(1), until, a.clock.Now());
  EntryRef later;
  EXPECT_EQ(Put(b, 1, 7, until - absl::Nanoseconds(1), &later),
            PutResult::kOlder);
  EXPECT_FALSE(later);
  Advance(absl::Seconds(2));
  EXPECT_EQ(Put(b, 1, 8, b.clock.Now()), PutResult::kStored);
  EXPECT_EQ(Get(a, 1), 8);
}

TEST_F(SharedStoreTest, AMarkThatCannotBeWrittenIsKeptAndWrittenLater) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart);
  server_.SetFull(true);
  const absl::Time until = a.store->LatestTime();
  EXPECT_FALSE(a.store->Purge(KeyOf(1), until, a.clock.Now()).lasting);
  EXPECT_EQ(Get(a, 1), -1);
  server_.SetFull(false);
  EXPECT_TRUE(a.store->Purge(KeyOf(1), until, a.clock.Now()).lasting);
}

TEST_F(SharedStoreTest, AKeysBanIsInTheRecordForAnHour) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  const absl::Time until = a.store->LatestTime();
  a.bans.BanKey(KeyOf(1), until, /*soft=*/false, absl::InfinitePast()).reset();
  EXPECT_TRUE(a.bans.Save().ok());
  EXPECT_TRUE(b.store->Sync().ok());
  ASSERT_THAT(b.learned, SizeIs(1));
  ASSERT_THAT(b.learned[0].keys, SizeIs(1));
  EXPECT_EQ(b.learned[0].keys[0].second, until);
  EXPECT_TRUE(b.bans.Of("f", "r1").Covers(KeyOf(1), until));
  Advance(absl::Hours(1) - absl::Seconds(1));
  EXPECT_TRUE(a.store->Sync().ok());
  server_.Clear();
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_THAT(Record().keys, SizeIs(1));
  Advance(absl::Seconds(3));
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_EQ(a.bans.figures().keys, 0u);
  EXPECT_EQ(b.bans.figures().keys, 0u);
  EXPECT_THAT(Record().keys, SizeIs(1)) << "nothing writes it for that alone";
  Ban(b, "f");
  EXPECT_TRUE(b.bans.Save().ok());
  EXPECT_THAT(Record().keys, IsEmpty());
}

TEST_F(SharedStoreTest, APurgeThatCannotBeWrittenIsInForceHereAndRetried) {
  Replica& a = StartUp();
  Replica& b = StartUp();
  Put(a, 1, 7, kStart);
  server_.SetFull(true);
  Ban(a, "f");
  ::testing::internal::CaptureStderr();
  const absl::Status saved = a.bans.Save();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("other replicas do not have it"));
  EXPECT_TRUE(absl::IsUnavailable(saved));
  EXPECT_THAT(saved.message(), HasSubstr("OOM"));
  EXPECT_EQ(Get(a, 1), -1);
  EXPECT_FALSE(a.bans.saved());
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_EQ(Get(b, 1), 7);
  server_.SetFull(false);
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_EQ(Get(b, 1), -1);
  a.bans.Retry();
  EXPECT_TRUE(a.bans.saved());
}

TEST_F(SharedStoreTest, AWriteWhoseReplyIsLostIsFoundByTheNextRound) {
  Replica& a = StartUp();
  SimulatedServer::Hooks hooks;
  hooks.before = [](int, const resp::Command& command) {
    return command.words[1] == kRecordScript ? Fault::kNoReply : Fault::kNone;
  };
  server_.SetHooks(std::move(hooks));
  Ban(a, "f");
  EXPECT_FALSE(a.bans.Save().ok());
  CountCommands();
  EXPECT_TRUE(a.bans.Save().ok());
  EXPECT_THAT(commands_, ElementsAre(kLookScript, "GET"));
}

TEST_F(SharedStoreTest, EraseDeletesWhateverIsThere) {
  Replica& a = StartUp();
  Put(a, 1, 7, kStart);
  EXPECT_TRUE(a.store->Erase(KeyOf(1)));
  EXPECT_FALSE(a.store->Erase(KeyOf(1)));
  EXPECT_EQ(Get(a, 1), -1);
  Put(a, 2, 7, kStart);
  FailAll(Fault::kLost);
  EXPECT_FALSE(a.store->Erase(KeyOf(2)));
  server_.SetHooks({});
  EXPECT_EQ(Get(a, 2), -1) << "it is hidden";
}

// ------------------------------------------------------------------ Clocks

TEST_F(SharedStoreTest, AClockDifferenceOfMoreThanASecondPutsTheTierDown) {
  for (const bool ahead : {true, false}) {
    const absl::Duration sign = absl::Seconds(ahead ? 1 : -1);
    Replica& near = StartUp(sign);
    EXPECT_EQ(near.store->figures().clock_difference, sign);
    EXPECT_TRUE(near.store->figures().up);
    Replica& far = Start(1.001 * sign);
    EXPECT_TRUE(far.store->Sync().ok()) << "there is nothing to write";
    const SharedFigures figures = far.store->figures();
    EXPECT_FALSE(figures.up);
    EXPECT_THAT(figures.why, HasSubstr("1.001s"));
    EXPECT_THAT(figures.why, HasSubstr(ahead ? "ahead" : "behind"));
    EXPECT_EQ(Get(far, 1), -1);
    EXPECT_EQ(far.lookups(Figures::kDown), 1u);
    EXPECT_EQ(Put(far, 1, 7, kStart), PutResult::kFailed);
  }
}

TEST_F(SharedStoreTest, TheDifferenceIsCorrectedByHalfTheRoundTrip) {
  Replica& a = Start();
  SimulatedServer::Hooks hooks;
  const auto delay = [&](int, const resp::Command&) {
    Advance(absl::Milliseconds(200));
  };
  hooks.after = delay;
  hooks.before = [&](int replica, const resp::Command& command) {
    delay(replica, command);
    return Fault::kNone;
  };
  server_.SetHooks(std::move(hooks));
  EXPECT_TRUE(a.store->Sync().ok());
  const SharedFigures figures = a.store->figures();
  EXPECT_EQ(figures.clock_difference, absl::ZeroDuration());
  EXPECT_EQ(figures.round_trip, absl::Milliseconds(400));
}

TEST_F(SharedStoreTest, WithItsClockApartAReplicaLearnsPurgesButWritesNone) {
  Replica& a = StartUp();
  Replica& b = Start(absl::Seconds(10));
  EXPECT_TRUE(b.store->Sync().ok());
  Ban(a, "f");
  EXPECT_TRUE(a.bans.Save().ok());
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_THAT(b.learned, SizeIs(1));
  Ban(b, "g");
  EXPECT_THAT(b.bans.Save().message(), HasSubstr("10s ahead"));
  EXPECT_THAT(Record().functions, SizeIs(1));
  EXPECT_FALSE(b.store->figures().bans_written);
  // The server's time was the wrong one.
  clock_.Advance(absl::Seconds(10));
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_TRUE(b.store->figures().up);
  EXPECT_TRUE(b.store->figures().bans_written);
  EXPECT_THAT(Record().functions, SizeIs(2));
}

TEST_F(SharedStoreTest, AServerWhoseClockIsBehindTakesNoPurgeBack) {
  Replica& a = StartUp();
  Ban(a, "f");
  EXPECT_TRUE(a.bans.Save().ok());
  const absl::Time before = a.store->LatestTime();
  Replica& b = Start();
  clock_.Advance(-absl::Hours(1));
  EXPECT_TRUE(b.store->Sync().ok());
  EXPECT_TRUE(b.bans.Of("f", "r1").Covers(KeyOf(1), before));
}

TEST_F(SharedStoreTest, APurgeReachesASecondPastTheServersTime) {
  EXPECT_EQ(StartUp().store->LatestTime(), kStart + absl::Seconds(1));
  EXPECT_EQ(StartUp(-absl::Seconds(1)).store->LatestTime(),
            kStart + absl::Seconds(1));
  EXPECT_EQ(StartUp(absl::Seconds(1)).store->LatestTime(),
            kStart + absl::Seconds(2));
  // A server may not make a purge reach far into the future.
  Replica& a = Start();
  clock_.Advance(absl::Hours(1000));
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_EQ(a.store->LatestTime(),
            kStart + absl::Minutes(10) + absl::Seconds(1));
}

TEST_F(SharedStoreTest, BansFarAheadOfTheServersTimeAreLimited) {
  StoredBans far;
  const absl::Time ahead = kStart + absl::Hours(1);
  far.all.purged = absl::ToUnixNanos(ahead);
  server_.Write(seal_.NameOfBans(), {EncodeRecord(seal_, far), absl::nullopt});
  Replica& a = StartUp();
  const absl::Time latest = kStart + absl::Seconds(3);
  const BanScope& scope = a.bans.Of("f", "r1");
  EXPECT_TRUE(scope.Covers(KeyOf(1), latest));
  EXPECT_FALSE(scope.Covers(KeyOf(1), latest + absl::Nanoseconds(1)));
  EXPECT_EQ(Record().all.purged, absl::ToUnixNanos(latest))
      << "so that it does not grow with time";
}

TEST_F(SharedStoreTest, NothingNewThatThePurgeCoversIsStoredForThatSecond) {
  Replica& a = StartUp();
  Ban(a, "f");
  EXPECT_TRUE(a.bans.Save().ok());
  EXPECT_EQ(Put(a, 1, 7, kStart + absl::Milliseconds(999)), PutResult::kPurged);
  Advance(absl::Milliseconds(1001));
  EXPECT_EQ(Put(a, 1, 7, a.clock.Now()), PutResult::kStored);
}

// --------------------------------------------------------------- Its states

TEST_F(SharedStoreTest, OneLogLineSaysThatTheTierIsDownAndOneThatItIsBack) {
  ::testing::internal::CaptureStderr();
  Replica& a = StartUp();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the shared tier is up"));
  ::testing::internal::CaptureStderr();
  server_.SetUp(false);
  Advance(absl::Seconds(1));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(a.store->Sync().ok());
  const std::string down = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(down, HasSubstr("the shared tier is down"));
  EXPECT_EQ(down.find("is down"), down.rfind("is down"));
  SharedFigures figures = a.store->figures();
  EXPECT_FALSE(figures.up);
  EXPECT_EQ(figures.since, a.clock.Now());
  EXPECT_FALSE(figures.why.empty());
  EXPECT_FALSE(a.store->MayFind());
  ::testing::internal::CaptureStderr();
  server_.SetUp(true);
  Advance(absl::Seconds(1));
  EXPECT_TRUE(a.store->Sync().ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the shared tier is back"));
  figures = a.store->figures();
  EXPECT_TRUE(figures.up);
  EXPECT_EQ(figures.since, a.clock.Now());
  EXPECT_EQ(figures.why, "");
}

TEST_F(SharedStoreTest, ItSyncsByItselfAndEndsPromptly) {
  SharedStoreOptions options;
  SystemClock clock;
  SimulatedServer server(&clock);
  Bans bans;
  Bans other;
  std::atomic<bool> learned{false};
  options.server = server.Connect(0);
  options.secret = kSecret;
  options.functions = {{"f", "r1", true}};
  options.learned = [&](const Bans::Learned& what) { learned = !what.empty(); };
  auto store = SharedStore::Create(std::move(options), &bans, &clock, nullptr);
  store->Attach(&bans, clock.Now());
  EXPECT_TRUE(Eventually([&] { return store->figures().up; }));
  other.Ban(Bans::Kind::kAll, "", "", clock.Now(), false);
  server.Write(seal_.NameOfBans(),
               {EncodeRecord(seal_, other.Shared(clock.Now())), absl::nullopt});
  EXPECT_TRUE(Eventually([&] { return learned.load(); }));
  EXPECT_EQ(bans.figures().all, 1u);
  const auto begin = std::chrono::steady_clock::now();
  bans.Detach();
  store.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

}  // namespace
}  // namespace fncache::cache::store::testing
