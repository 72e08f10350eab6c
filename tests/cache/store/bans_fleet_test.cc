// SPDX-License-Identifier: Apache-2.0
// Bans that the replicas of a fleet share: what they learn of each other, and
// how long the bans of keys last.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cache/store/bans.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::KeyOf;
using ::testing::Pair;
using Kind = Bans::Kind;

constexpr absl::Duration kLast = absl::Hours(1);
const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);
absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

// Bans of a replica, whose record is `record`.
struct Replica {
  Replica() {
    bans.Share(
        [this] {
          ++writes;
          return failure;
        },
        kLast);
  }
  void BanKey(uint64_t n, absl::Time before, bool soft = false,
              absl::Time until = absl::InfinitePast()) {
    ASSERT_TRUE(bans.BanKey(KeyOf(n), before, soft, until).has_value());
  }

  int writes = 0;
  absl::Status failure;
  Bans bans;
};

TEST(BansFleetTest, TheyLastAndAreSavedByTheGivenFunction) {
  Replica a;
  EXPECT_TRUE(a.bans.lasting());
  EXPECT_TRUE(a.bans.saved());
  EXPECT_TRUE(a.bans.Save().ok());
  EXPECT_EQ(a.writes, 0) << "there is nothing to write";
  const uint64_t changes = a.bans.changes();
  a.BanKey(1, At(1));
  EXPECT_GT(a.bans.changes(), changes);
  EXPECT_FALSE(a.bans.saved()) << "also a hard ban of a key is to be written";
  a.failure = absl::UnavailableError("connection refused");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(a.bans.Save().message(), "connection refused");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("other replicas do not have it"));
  a.failure = absl::OkStatus();
  a.bans.Retry();
  EXPECT_TRUE(a.bans.saved());
  EXPECT_EQ(a.writes, 2);
}

TEST(BansFleetTest, AHardBanOfAKeyLastsForTheTimeAfterItsPurge) {
  Replica a;
  const BanScope& scope = a.bans.Of("f", "r1");
  a.BanKey(1, At(1));
  const absl::Time end = At(1) + kLast;
  const absl::Time last = end - absl::Nanoseconds(1);
  // Operations come and go meanwhile.
  a.bans.Enter();
  EXPECT_EQ(a.bans.Shared(last).keys.at(KeyOf(1)).until,
            absl::ToUnixNanos(end));
  EXPECT_TRUE(scope.Covers(KeyOf(1), At(1)));
  EXPECT_THAT(a.bans.Shared(end).keys, IsEmpty());
  EXPECT_FALSE(scope.Covers(KeyOf(1), At(1)));
  EXPECT_EQ(a.bans.figures().keys, 0u);
}

TEST(BansFleetTest, ItLastsLongerWhileWhatWasUnderWayHasNotEnded) {
  Replica a;
  const BanScope& scope = a.bans.Of("f", "r1");
  auto running = std::make_unique<Bans::Entered>(a.bans.Enter());
  a.BanKey(1, At(1));
  EXPECT_THAT(a.bans.Shared(At(2) + kLast).keys, IsEmpty());
  EXPECT_TRUE(scope.Covers(KeyOf(1), At(1)));
  running.reset();
  EXPECT_FALSE(scope.Covers(KeyOf(1), At(1)));
}

TEST(BansFleetTest, ALearnedBanOfAKeyDoesNotEndBeforeWhatWasUnderWay) {
  Replica a;
  Replica b;
  a.BanKey(1, At(1));
  auto running = std::make_unique<Bans::Entered>(b.bans.Enter());
  const auto learned = b.bans.Learn(a.bans.Shared(At(1)), At(1));
  EXPECT_THAT(learned.keys, ElementsAre(Pair(KeyOf(1), At(1))));
  b.bans.Learn({}, At(2) + kLast);
  EXPECT_TRUE(b.bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
  running.reset();
  EXPECT_FALSE(b.bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
}

TEST(BansFleetTest, ABanWhoseMarkCouldNotBeWrittenIsKept) {
  Replica a;
  a.BanKey(1, At(1));
  a.bans.KeepKey(KeyOf(1));
  EXPECT_THAT(a.bans.Kept(), ElementsAre(Pair(KeyOf(1), At(1))));
  EXPECT_THAT(a.bans.Shared(At(2) + kLast).keys, IsEmpty());
  EXPECT_TRUE(a.bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
  a.bans.Deleted(KeyOf(1), At(1));
  EXPECT_FALSE(a.bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
}

TEST(BansFleetTest, ASoftBanOfAKeyLastsUntilNoReplicaCanHaveTheEntry) {
  Replica a;
  Replica b;
  a.BanKey(1, At(1), /*soft=*/true, At(2));
  a.BanKey(2, At(1), /*soft=*/true, At(1) + 2 * kLast);
  const auto learned = b.bans.Learn(a.bans.Shared(At(1)), At(1));
  EXPECT_THAT(learned.keys, IsEmpty());
  EXPECT_THAT(learned.soft_keys,
              ::testing::UnorderedElementsAre(KeyOf(1), KeyOf(2)));
  b.bans.Learn({}, At(2));
  const BanScope& scope = b.bans.Of("f", "r1");
  EXPECT_EQ(scope.SoftBefore(KeyOf(1), At(1)), At(1))
      << "memory of another replica may have it for longer";
  b.bans.Learn({}, At(1) + kLast);
  EXPECT_EQ(scope.SoftBefore(KeyOf(1), At(1)), absl::InfinitePast());
  EXPECT_EQ(scope.SoftBefore(KeyOf(2), At(1)), At(1));
}

TEST(BansFleetTest, OnlyNewBansAreReported) {
  Replica a;
  a.bans.Ban(Kind::kFunction, "f", "", At(5), /*soft=*/false);
  a.BanKey(1, At(5));
  StoredBans record;
  record.functions["f"].purged = absl::ToUnixNanos(At(5));
  record.functions["g"].stale = absl::ToUnixNanos(At(4));
  record.generations[{"f", "r1"}].purged = absl::ToUnixNanos(At(4));
  record.generations[{"f", "r2"}].purged = absl::ToUnixNanos(At(6));
  record.generations[{"f", "r2"}].stale = absl::ToUnixNanos(At(9));
  record.keys[KeyOf(1)] = {{absl::ToUnixNanos(At(5)), kNeverBanned},
                           absl::ToUnixNanos(At(5) + kLast)};
  record.keys[KeyOf(2)] = {{absl::ToUnixNanos(At(3)), kNeverBanned},
                           absl::ToUnixNanos(At(9))};
  const auto learned = a.bans.Learn(record, At(10));
  EXPECT_FALSE(learned.all);
  EXPECT_THAT(learned.functions, ElementsAre("g"));
  EXPECT_THAT(learned.generations, ElementsAre(Pair("f", "r2")));
  EXPECT_TRUE(learned.hard);
  EXPECT_EQ(learned.before, At(6));
  EXPECT_THAT(learned.keys, IsEmpty()) << "one is known, one has ended";
  EXPECT_TRUE(a.bans.Learn(record, At(10)).empty());

  StoredBans soft;
  soft.all.stale = absl::ToUnixNanos(At(20));
  const auto all = a.bans.Learn(soft, At(20));
  EXPECT_TRUE(all.all);
  EXPECT_FALSE(all.hard);
  EXPECT_EQ(all.before, absl::InfinitePast());
  EXPECT_FALSE(a.bans.Of("f", "r3").Covers(KeyOf(9), At(6)));
}

TEST(BansFleetTest, ALearnedBanIsNoChangeToWrite) {
  Replica a;
  StoredBans record;
  record.all.purged = absl::ToUnixNanos(At(5));
  const uint64_t changes = a.bans.changes();
  a.bans.Learn(record, At(5));
  EXPECT_EQ(a.bans.changes(), changes);
  EXPECT_TRUE(a.bans.saved());
}

TEST(BansFleetTest, LearningGoesBeyondTheLimitThatPurgesHave) {
  Replica a;
  StoredBans record;
  for (uint64_t n = 0; n <= Bans::kMostKeys; ++n) {
    record.keys[KeyOf(n)] = {{absl::ToUnixNanos(At(1)), kNeverBanned},
                             absl::ToUnixNanos(At(1) + kLast)};
  }
  EXPECT_EQ(a.bans.Learn(record, At(1)).keys.size(), Bans::kMostKeys + 1);
  EXPECT_FALSE(a.bans
                   .BanKey(KeyOf(Bans::kMostKeys + 1), At(1), false,
                           absl::InfinitePast())
                   .has_value());
  EXPECT_TRUE(a.bans
                  .BanKey(KeyOf(Bans::kMostKeys + 1), At(1) + kLast, false,
                          absl::InfinitePast())
                  .has_value())
      << "their time is over";
}

// Each fill that starts before a ban is learned either is made before Learn
// returns, or sees the ban.
TEST(BansFleetTest, NoFillIsMadeAfterItsBanWasLearned) {
  for (const bool wide : {false, true}) {
    Replica a;
    const BanScope& scope = a.bans.Of("f", "r1");
    std::atomic<bool> returned{false};
    std::atomic<bool> stop{false};
    std::atomic<int> late{0};
    std::atomic<int> fills{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        while (!stop) {
          const bool before = returned;
          if (scope.FillUnlessBanned(KeyOf(1), At(1), [&] { ++fills; }) &&
              before) {
            ++late;
          }
        }
      });
    }
    while (fills < 100) std::this_thread::yield();
    StoredBans record;
    const BanTimes times = {absl::ToUnixNanos(At(1)), kNeverBanned};
    if (wide) {
      record.functions["f"] = times;
    } else {
      record.keys[KeyOf(1)] = {times, absl::ToUnixNanos(At(1) + kLast)};
    }
    a.bans.Learn(record, At(1));
    const int at_return = fills;
    returned = true;
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(late, 0);
    EXPECT_EQ(fills, at_return);
  }
}

// ------------------------------------------------------------------ A model

// Two replicas purge, and read and write one record, in random orders. The
// model says by brute force what is banned.
struct Model {
  std::map<std::string, BanTimes> wide;  // by "", "f", "f/r1"
  std::map<uint64_t, StoredKeyBan> keys;

  BanTimes Of(const std::string& function, const std::string& generation,
              uint64_t key, int64_t now) const {
    BanTimes times;
    for (const std::string& name :
         {std::string(), function, absl::StrCat(function, "/", generation)}) {
      const auto it = wide.find(name);
      if (it != wide.end()) times.Add(it->second);
    }
    const auto it = keys.find(key);
    if (it != keys.end() && it->second.until > now) times.Add(it->second.times);
    return times;
  }
  void Add(const Model& other, int64_t now) {
    for (const auto& [name, times] : other.wide) wide[name].Add(times);
    for (const auto& [key, ban] : other.keys) {
      if (ban.until <= now) continue;
      End(now);
      keys[key].times.Add(ban.times);
      keys[key].until = std::max(keys[key].until, ban.until);
    }
  }
  void End(int64_t now) {
    for (auto it = keys.begin(); it != keys.end();) {
      it = it->second.until <= now ? keys.erase(it) : std::next(it);
    }
  }
};

TEST(BansFleetTest, ReplicasThatExchangeRecordsAgreeWithAModel) {
  const std::vector<std::string> functions = {"f", "g"};
  const std::vector<std::string> generations = {"r1", "r2"};
  for (int seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&random](int below) {
      return static_cast<int>(random() % below);
    };
    std::array<Replica, 2> replicas;
    std::array<Model, 2> models;
    StoredBans record;
    Model recorded;
    absl::Time now = kStart;
    for (int step = 0; step < 60; ++step) {
      now += absl::Minutes(draw(20));
      const int64_t at = absl::ToUnixNanos(now);
      const int r = draw(2);
      Bans& bans = replicas[r].bans;
      Model& model = models[r];
      bans.Learn({}, now);
      model.End(at);
      const bool soft = draw(2) == 0;
      BanTimes times;
      (soft ? times.stale : times.purged) = at;
      const std::string& function = functions[draw(2)];
      const std::string& generation = generations[draw(2)];
      switch (draw(6)) {
        case 0:
          bans.Ban(Kind::kGeneration, function, generation, now, soft);
          model.wide[absl::StrCat(function, "/", generation)].Add(times);
          break;
        case 1:
          if (draw(3) == 0) {
            bans.Ban(Kind::kAll, "", "", now, soft);
            model.wide[""].Add(times);
          } else {
            bans.Ban(Kind::kFunction, function, "", now, soft);
            model.wide[function].Add(times);
          }
          break;
        case 2: {
          const uint64_t key = draw(4);
          const absl::Time until = now + absl::Minutes(draw(100));
          bans.BanKey(KeyOf(key), now, soft, until).reset();
          StoredKeyBan& ban = model.keys[key];
          ban.times.Add(times);
          ban.until = std::max({ban.until, at + absl::ToInt64Nanoseconds(kLast),
                                absl::ToUnixNanos(until)});
          break;
        }
        default: {
          // A round with the record: learn, and write what it lacks.
          Model before = model;
          before.End(at);
          const Bans::Learned learned = bans.Learn(record, now);
          model.Add(recorded, at);
          // It reports each key whose bans have changed.
          std::set<std::string> changed;
          for (const auto& [key, ban] : model.keys) {
            BanTimes known = before.keys[key].times;
            if (known.Add(ban.times)) changed.insert(KeyOf(key).Hex());
          }
          std::set<std::string> reported;
          for (const auto& [key, until] : learned.keys)
            reported.insert(key.Hex());
          for (const key::Key& key : learned.soft_keys)
            reported.insert(key.Hex());
          ASSERT_EQ(reported, changed) << "seed " << seed << " step " << step;
          const StoredBans all = bans.Shared(now);
          record = all;
          recorded = model;
        }
      }
      for (const std::string& f : functions) {
        for (const std::string& g : generations) {
          for (uint64_t key = 0; key < 4; ++key) {
            const BanTimes expected = model.Of(f, g, key, at);
            const BanScope& scope = bans.Of(f, g);
            for (int back = 0; back < 90; back += 10) {
              const absl::Time started = now - absl::Minutes(back);
              const int64_t nanos = absl::ToUnixNanos(started);
              ASSERT_EQ(scope.Covers(KeyOf(key), started),
                        nanos <= expected.purged)
                  << "seed " << seed << " step " << step;
              ASSERT_EQ(
                  scope.SoftBefore(KeyOf(key), started) != absl::InfinitePast(),
                  nanos <= expected.stale)
                  << "seed " << seed << " step " << step;
              ASSERT_EQ(bans.CoversStored(f, g, KeyOf(key), started),
                        nanos <= expected.purged);
            }
          }
        }
      }
    }
  }
}

// Otherwise two replicas would replace each other's record for ever.
TEST(BansFleetTest, EqualBansHaveOneForm) {
  Replica a, b;
  a.bans.Ban(Kind::kGeneration, "f", "g", At(1), /*soft=*/false);
  for (Replica* const replica : {&a, &b}) {
    replica->bans.Ban(Kind::kGeneration, "f", "g", At(3), /*soft=*/true);
    replica->bans.Ban(Kind::kFunction, "f", "", At(2), /*soft=*/false);
  }
  EXPECT_TRUE(a.bans.Shared(At(4)) == b.bans.Shared(At(4)));
  EXPECT_TRUE(a.bans.Learn(b.bans.Shared(At(4)), At(4)).empty());
}

}  // namespace
}  // namespace fncache::cache::store
