// SPDX-License-Identifier: Apache-2.0
#include "cache/store/entry.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "cache/store/memory_store.h"
#include "gtest/gtest.h"

namespace fncache::cache::store {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'750'000'000);

EntryInfo SomeInfo() {
  EntryInfo info;
  info.function = 7;
  info.started = kStart + absl::Nanoseconds(1);
  info.arrived = kStart + absl::Nanoseconds(120'000'003);
  info.lifetime = absl::Seconds(60) + absl::Nanoseconds(5);
  info.ttl = absl::Seconds(90) + absl::Nanoseconds(999'999'999);
  info.cost = absl::Microseconds(120'000);
  info.secrets = true;
  return info;
}

EntryRef Make(const EntryInfo& info, absl::string_view rest,
              std::vector<absl::string_view> body) {
  return Entry::Create(info, rest, body);
}

TEST(EntryTest, GivesBackWhatItWasCreatedFrom) {
  const EntryRef entry = Make(SomeInfo(), "rest", {"one", "", "two"});
  const EntryInfo info = entry->info();
  EXPECT_EQ(info.function, 7u);
  EXPECT_EQ(info.started, SomeInfo().started);
  EXPECT_EQ(info.arrived, SomeInfo().arrived);
  EXPECT_EQ(info.lifetime, SomeInfo().lifetime);
  EXPECT_EQ(info.ttl, SomeInfo().ttl);
  EXPECT_EQ(info.cost, SomeInfo().cost);
  EXPECT_TRUE(info.secrets);
  EXPECT_EQ(entry->body(), "onetwo");
  EXPECT_EQ(entry->meta_rest(), "rest");
  EXPECT_EQ(entry->function(), 7u);
  EXPECT_EQ(entry->started(), info.started);
  EXPECT_EQ(entry->arrived(), info.arrived);
  EXPECT_EQ(entry->deadline(), info.deadline());
}

TEST(EntryTest, EmptyBodyRestAndTtlStayEmpty) {
  EntryInfo info = SomeInfo();
  info.ttl = absl::nullopt;
  info.secrets = false;
  const EntryRef entry = Make(info, "", {});
  EXPECT_EQ(entry->body(), "");
  EXPECT_EQ(entry->meta_rest(), "");
  EXPECT_FALSE(entry->info().ttl.has_value());
  EXPECT_FALSE(entry->info().secrets);
}

TEST(EntryTest, ZeroTtlIsNotAnAbsentOne) {
  EntryInfo info = SomeInfo();
  info.ttl = absl::ZeroDuration();
  EXPECT_EQ(Make(info, "", {"x"})->info().ttl, absl::ZeroDuration());
}

TEST(EntryTest, TtlKeepsTheWholeRangeOfAProtobufDuration) {
  for (const absl::Duration ttl :
       {absl::Nanoseconds(1), absl::Seconds(315'576'000'000),
        absl::Seconds(315'576'000'000) + absl::Nanoseconds(999'999'999)}) {
    EntryInfo info = SomeInfo();
    info.ttl = ttl;
    EXPECT_EQ(Make(info, "", {"x"})->info().ttl, ttl);
  }
}

TEST(EntryTest, TtlAndRestAreKeptWhetherOrNotTheTtlIsTheLifetime) {
  const absl::Duration lifetime = SomeInfo().lifetime;
  for (const absl::optional<absl::Duration> ttl :
       {absl::optional<absl::Duration>(), absl::make_optional(lifetime),
        absl::make_optional(lifetime + absl::Nanoseconds(1)),
        absl::make_optional(absl::ZeroDuration())}) {
    for (const absl::string_view rest : {"", "rest"}) {
      EntryInfo info = SomeInfo();
      info.ttl = ttl;
      const EntryRef entry = Make(info, rest, {"body"});
      EXPECT_EQ(entry->info().ttl, ttl);
      EXPECT_EQ(entry->info().lifetime, lifetime);
      EXPECT_EQ(entry->body(), "body");
      EXPECT_EQ(entry->meta_rest(), rest);
    }
  }
}

TEST(EntryTest, WhatIsKeptBeyondItsLifetimeSaysForHowLong) {
  const absl::Duration lifetime = SomeInfo().lifetime;
  for (const absl::Duration retention :
       {absl::ZeroDuration(), lifetime - absl::Nanoseconds(1), lifetime,
        lifetime + absl::Nanoseconds(1),
        absl::Nanoseconds(std::numeric_limits<int64_t>::max())}) {
    for (const absl::optional<absl::Duration> ttl :
         {absl::optional<absl::Duration>(), absl::make_optional(lifetime),
          absl::make_optional(absl::Seconds(315'576'000'000))}) {
      for (const absl::string_view rest : {"", "rest"}) {
        EntryInfo info = SomeInfo();
        info.retention = retention;
        info.ttl = ttl;
        const EntryRef entry = Make(info, rest, {"body"});
        EXPECT_EQ(entry->info().retention, std::max(retention, lifetime));
        EXPECT_EQ(entry->kept_until(), info.kept_until());
        EXPECT_EQ(entry->deadline(), info.deadline());
        EXPECT_EQ(entry->info().ttl, ttl);
        EXPECT_EQ(entry->body(), "body");
        EXPECT_EQ(entry->meta_rest(), rest);
      }
    }
  }
}

TEST(EntryTest, ADriftDigestComesBackWhateverElseIsApart) {
  for (const absl::Duration retention :
       {absl::ZeroDuration(), absl::Seconds(100)}) {
    for (const absl::optional<absl::Duration> ttl :
         {absl::optional<absl::Duration>(),
          absl::make_optional(absl::Seconds(9))}) {
      for (const absl::string_view rest : {"", "rest"}) {
        EntryInfo info = SomeInfo();
        info.retention = retention;
        info.ttl = ttl;
        EXPECT_FALSE(Make(info, rest, {"body"})->drift().has_value());
        info.drift = key::Key{1, 2};
        const EntryRef entry = Make(info, rest, {"body"});
        EXPECT_EQ(entry->drift(), (key::Key{1, 2}));
        EXPECT_EQ(entry->info().drift, (key::Key{1, 2}));
        EXPECT_EQ(entry->info().ttl, ttl);
        EXPECT_EQ(entry->kept_until(), info.kept_until());
        EXPECT_EQ(entry->body(), "body");
        EXPECT_EQ(entry->meta_rest(), rest);
      }
    }
  }
}

TEST(EntryTest, ADriftDigestTakesSixteenBytesAndNothingWithoutTuning) {
  EntryInfo info = SomeInfo();
  const size_t charge = Make(info, "", {std::string(24, 'b')})->charge();
  info.drift = key::Key{1, 2};
  EXPECT_EQ(Make(info, "", {std::string(24, 'b')})->charge(), charge + 16);
}

TEST(EntryTest, AnEntryWithoutRetentionPaysNothingForIt) {
  EntryInfo info = SomeInfo();
  const size_t charge = Make(info, "", {std::string(24, 'b')})->charge();
  info.retention = info.lifetime;
  EXPECT_EQ(Make(info, "", {std::string(24, 'b')})->charge(), charge);
}

TEST(EntryTest, TheMarkOfBeingSupersededIsNoReference) {
  const EntryRef entry = Make(SomeInfo(), "", {"body"});
  EXPECT_FALSE(entry->superseded());
  {
    const EntryRef other = entry;
    other->Supersede();
    other->Supersede();
    const EntryRef third = other;
    EXPECT_TRUE(third->superseded());
  }
  EXPECT_TRUE(entry->superseded());
  EXPECT_EQ(entry->body(), "body");
  // asan says whether it is freed, and once.
}

TEST(EntryTest, TheMarksOfBeingInMemoryAndSupersededAreApart) {
  const EntryRef entry = Make(SomeInfo(), "", {"body"});
  EXPECT_FALSE(entry->in_memory());
  MemoryStore store({1 << 20, 1 << 16}, nullptr);
  const absl::Time now = entry->arrived();
  const key::Key key = {1, 2};
  ASSERT_EQ(store.Put(key, entry, now), PutResult::kStored);
  EXPECT_FALSE(entry->superseded());
  entry->Supersede();
  EXPECT_TRUE(store.Erase(key));
  EXPECT_FALSE(entry->in_memory());
  EXPECT_TRUE(entry->superseded());
  ASSERT_EQ(store.Put(key, entry, now), PutResult::kStored);
  EXPECT_TRUE(EntryRef(entry)->in_memory());
}

TEST(EntryTest, CostIsCappedNotWrapped) {
  EntryInfo info = SomeInfo();
  info.cost = absl::Hours(100);
  EXPECT_GT(Make(info, "", {"x"})->info().cost, absl::Minutes(71));
  info.cost = -absl::Seconds(1);
  EXPECT_EQ(Make(info, "", {"x"})->info().cost, absl::ZeroDuration());
}

TEST(EntryTest, DeadlineOfTheLongestLifetimeDoesNotOverflow) {
  EntryInfo info = SomeInfo();
  info.lifetime = absl::Nanoseconds(std::numeric_limits<int64_t>::max());
  const EntryRef entry = Make(info, "", {"x"});
  EXPECT_EQ(entry->deadline(), info.arrived + info.lifetime);
  EXPECT_GT(entry->deadline(), info.arrived);
}

TEST(EntryTest, ChargeCountsEverythingAndLittleMore) {
  for (const size_t size :
       {0, 1, 24, 1000, 13'000, 127'000, 129'000, 5'000'000}) {
    const std::string body(size, 'b');
    const EntryRef entry = Make(SomeInfo(), "", {body});
    EXPECT_GE(entry->charge(), size + 88) << size;
    // Blocks are rounded up to 16 bytes, mapped ones to pages; 16 bytes that
    // would be left of a free block stay with it.
    EXPECT_LE(entry->charge(), size + (size < 100'000 ? 128 : 4096 + 128))
        << size;
    EXPECT_EQ(entry->charge(), EntryRef(entry)->charge());
  }
}

TEST(EntryTest, OneThatIsTooLargeIsNotMade) {
  // Never read: only the sizes count.
  const absl::string_view half("", Entry::kMaxBytes / 2);
  EXPECT_FALSE(Make(SomeInfo(), "", {half, half}));
  EXPECT_FALSE(Make(SomeInfo(), half, {half}));
}

TEST(EntryRefTest, TheLastHolderFreesIt) {
  // asan finds what frees too early or never.
  EntryRef first = Make(SomeInfo(), "", {"body"});
  EntryRef second = first;
  const EntryRef third = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  second = nullptr;
  EXPECT_EQ(third->body(), "body");
  second = third;
  second = *&second;
  EXPECT_EQ(second.get(), third.get());
  EntryRef released = third;
  const Entry* raw = released.Release();
  EXPECT_FALSE(released);
  EXPECT_EQ(EntryRef(raw)->body(), "body");
}

TEST(EntryRefTest, ManyThreadsShareOne) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 50; ++round) {
    EntryRef shared = Make(SomeInfo(), "", {"body"});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([mine = shared, &wrong]() mutable {
        for (int j = 0; j < 1000; ++j) {
          const EntryRef copy = mine;
          if (copy->body() != "body") ++wrong;
        }
        mine = nullptr;  // perhaps the last
      });
    }
    shared = nullptr;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace fncache::cache::store
