// SPDX-License-Identifier: Apache-2.0
// Bans by themselves: whom they cover, how long they last, how they outlive the
// process.
#include "cache/store/bans.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store {
namespace {

using testing::KeyOf;
using Kind = Bans::Kind;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);
absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

// A directory's file, as far as bans are concerned.
struct File {
  absl::optional<std::string> content;
  absl::Status failure;  // of writing
  int written = 0;

  void AttachTo(Bans* bans, absl::Time latest) {
    bans->Attach(
        content,
        [this](absl::string_view text) {
          if (!failure.ok()) return failure;
          content = std::string(text);
          ++written;
          return absl::OkStatus();
        },
        latest);
  }
};

TEST(BansTest, NothingIsBannedAtFirst) {
  Bans bans;
  const BanScope& scope = bans.Of("f", "r1");
  EXPECT_FALSE(scope.Covers(KeyOf(1), absl::UnixEpoch()));
  EXPECT_FALSE(scope.Covers(KeyOf(1), At(0)));
  EXPECT_EQ(scope.SoftBefore(KeyOf(1), At(0)), absl::InfinitePast());
  EXPECT_FALSE(bans.CoversStored("f", "r1", KeyOf(1), At(0)));
  EXPECT_TRUE(bans.saved());
}

TEST(BansTest, ABanCoversWhatStartedAtOrBeforeItAndNothingLater) {
  Bans bans;
  const BanScope& scope = bans.Of("f", "r1");
  bans.Ban(Kind::kFunction, "f", "", At(10), /*soft=*/false);
  EXPECT_TRUE(scope.Covers(KeyOf(1), At(9)));
  EXPECT_TRUE(scope.Covers(KeyOf(1), At(10)));
  EXPECT_FALSE(scope.Covers(KeyOf(1), At(10) + absl::Nanoseconds(1)));
  EXPECT_TRUE(bans.CoversStored("f", "r1", KeyOf(1), At(10)));
  EXPECT_FALSE(
      bans.CoversStored("f", "r1", KeyOf(1), At(10) + absl::Nanoseconds(1)));
  // An earlier one takes nothing back.
  bans.Ban(Kind::kFunction, "f", "", At(5), /*soft=*/false);
  EXPECT_TRUE(scope.Covers(KeyOf(1), At(10)));
}

TEST(BansTest, EachKindCoversItsOwn) {
  struct Row {
    Kind kind;
    bool f1, f2, g1;  // f in r1, f in r2, g in r1
  };
  for (const Row& row : {Row{Kind::kAll, true, true, true},
                         Row{Kind::kFunction, true, true, false},
                         Row{Kind::kGeneration, true, false, false}}) {
    Bans bans;
    // Known before, and asked for only after the ban.
    const BanScope& before = bans.Of("f", "r1");
    bans.Ban(row.kind, "f", "r1", At(1), /*soft=*/false);
    EXPECT_EQ(before.Covers(KeyOf(1), At(1)), row.f1);
    EXPECT_EQ(bans.Of("f", "r2").Covers(KeyOf(1), At(1)), row.f2);
    EXPECT_EQ(bans.Of("g", "r1").Covers(KeyOf(1), At(1)), row.g1);
    EXPECT_EQ(bans.CoversStored("f", "r1", KeyOf(1), At(1)), row.f1);
    EXPECT_EQ(bans.CoversStored("f", "r2", KeyOf(1), At(1)), row.f2);
    EXPECT_EQ(bans.CoversStored("g", "r1", KeyOf(1), At(1)), row.g1);
    const auto found = bans.Find("f", "r1", KeyOf(1), At(1));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->kind, row.kind);
    EXPECT_EQ(found->before, At(1));
    EXPECT_FALSE(found->soft);
  }
}

TEST(BansTest, ABannedFillIsNotMade) {
  Bans bans;
  const BanScope& scope = bans.Of("f", "r1");
  bans.Ban(Kind::kGeneration, "f", "r1", At(1), /*soft=*/false);
  int fills = 0;
  EXPECT_FALSE(scope.FillUnlessBanned(KeyOf(1), At(1), [&] { ++fills; }));
  EXPECT_TRUE(scope.FillUnlessBanned(KeyOf(1), At(2), [&] { ++fills; }));
  EXPECT_TRUE(
      bans.Of("f", "r2").FillUnlessBanned(KeyOf(1), At(1), [&] { ++fills; }));
  EXPECT_EQ(fills, 2);
}

TEST(BansTest, ASoftBanMakesStaleAndNothingElse) {
  Bans bans;
  const BanScope& scope = bans.Of("f", "r1");
  bans.Ban(Kind::kFunction, "f", "", At(10), /*soft=*/true);
  EXPECT_FALSE(scope.Covers(KeyOf(1), At(10)));
  EXPECT_FALSE(bans.CoversStored("f", "r1", KeyOf(1), At(10)));
  EXPECT_EQ(scope.SoftBefore(KeyOf(1), At(10)), At(10));
  EXPECT_EQ(scope.SoftBefore(KeyOf(1), At(11)), absl::InfinitePast());
  // Stale since the purge, or since its own end if that was earlier.
  EXPECT_EQ(scope.FreshFor(KeyOf(1), At(9), absl::Seconds(100), At(13)),
            absl::Seconds(-3));
  EXPECT_EQ(scope.FreshFor(KeyOf(1), At(9), absl::Seconds(-5), At(13)),
            absl::Seconds(-5));
  EXPECT_EQ(scope.FreshFor(KeyOf(1), At(11), absl::Seconds(100), At(13)),
            absl::Seconds(100));
  // A thread whose time is a moment older than the purge's.
  EXPECT_EQ(scope.FreshFor(KeyOf(1), At(9), absl::Seconds(100), At(8)),
            absl::ZeroDuration());
  int fills = 0;
  EXPECT_TRUE(scope.FillUnlessBanned(KeyOf(1), At(10), [&] { ++fills; }));
  const auto found = bans.Find("f", "r1", KeyOf(1), At(9));
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->soft);
}

TEST(BansTest, ABanOfAKeyIsOfThatKeyInEveryFunction) {
  Bans bans;
  const auto banned =
      bans.BanKey(KeyOf(1), At(1), /*soft=*/false, absl::InfinitePast());
  ASSERT_TRUE(banned.has_value());
  EXPECT_TRUE(bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
  EXPECT_TRUE(bans.Of("g", "r2").Covers(KeyOf(1), At(0)));
  EXPECT_FALSE(bans.Of("f", "r1").Covers(KeyOf(1), At(2)));
  // One that shares its stripe.
  key::Key other = KeyOf(1);
  ++other.low;
  EXPECT_FALSE(bans.Of("f", "r1").Covers(other, At(1)));
  EXPECT_TRUE(bans.CoversStored("f", "r1", KeyOf(1), At(1)));
  EXPECT_FALSE(bans.CoversStored("f", "r1", other, At(1)));
  EXPECT_EQ(bans.Find("f", "r1", KeyOf(1), At(1))->kind, Kind::kKey);
}

TEST(BansTest, ABanOfAKeyLastsUntilWhatWasUnderWayHasEnded) {
  Bans bans;
  const BanScope& scope = bans.Of("f", "r1");
  auto first = std::make_unique<Bans::Entered>(bans.Enter());
  auto second = std::make_unique<Bans::Entered>(bans.Enter());
  auto banned =
      bans.BanKey(KeyOf(1), At(1), /*soft=*/false, absl::InfinitePast());
  // A call that enters later does not keep the ban.
  const Bans::Entered later = bans.Enter();
  banned.reset();
  EXPECT_TRUE(scope.Covers(KeyOf(1), At(1)));
  first.reset();
  EXPECT_TRUE(scope.Covers(KeyOf(1), At(1)));
  EXPECT_EQ(bans.figures().keys, 1u);
  second.reset();
  EXPECT_FALSE(scope.Covers(KeyOf(1), At(1)));
  EXPECT_EQ(bans.figures().keys, 0u);
}

TEST(BansTest, WithNothingUnderWayItLastsAsLongAsThePurge) {
  Bans bans;
  const BanScope& scope = bans.Of("f", "r1");
  auto banned =
      bans.BanKey(KeyOf(1), At(1), /*soft=*/false, absl::InfinitePast());
  EXPECT_TRUE(scope.Covers(KeyOf(1), At(1)));
  banned.reset();
  EXPECT_FALSE(scope.Covers(KeyOf(1), At(1)));
}

TEST(BansTest, PurgedAgainItIsBannedForAsLongAsTheSecondTime) {
  Bans bans;
  const BanScope& scope = bans.Of("f", "r1");
  auto first = std::make_unique<Bans::Entered>(bans.Enter());
  bans.BanKey(KeyOf(1), At(1), /*soft=*/false, absl::InfinitePast()).reset();
  auto second = std::make_unique<Bans::Entered>(bans.Enter());
  bans.BanKey(KeyOf(1), At(2), /*soft=*/false, absl::InfinitePast()).reset();
  first.reset();
  EXPECT_TRUE(scope.Covers(KeyOf(1), At(2)));
  second.reset();
  EXPECT_FALSE(scope.Covers(KeyOf(1), At(2)));
}

TEST(BansTest, BeyondTenThousandKeysThereIsNoMoreRoom) {
  Bans bans;
  auto under_way = std::make_unique<Bans::Entered>(bans.Enter());
  for (uint64_t n = 0; n < Bans::kMostKeys; ++n) {
    ASSERT_TRUE(
        bans.BanKey(KeyOf(n), At(1), false, absl::InfinitePast()).has_value());
  }
  EXPECT_FALSE(
      bans.BanKey(KeyOf(Bans::kMostKeys), At(1), false, absl::InfinitePast())
          .has_value());
  EXPECT_TRUE(
      bans.BanKey(KeyOf(7), At(2), false, absl::InfinitePast()).has_value())
      << "it has its place";
  under_way.reset();
  EXPECT_EQ(bans.figures().keys, 0u);
  EXPECT_TRUE(
      bans.BanKey(KeyOf(Bans::kMostKeys), At(1), false, absl::InfinitePast())
          .has_value());
}

TEST(BansTest, TooManyGenerationsBecomeTheFunction) {
  Bans bans;
  for (size_t n = 0; n < Bans::kMostGenerations; ++n) {
    EXPECT_EQ(bans.Ban(Kind::kGeneration, "f", std::to_string(n), At(1), false),
              Kind::kGeneration);
  }
  EXPECT_EQ(bans.figures().functions, 0u);
  EXPECT_EQ(bans.Ban(Kind::kGeneration, "f", "one more", At(1), false),
            Kind::kFunction);
  EXPECT_TRUE(bans.Of("f", "one more").Covers(KeyOf(1), At(1)));
  EXPECT_TRUE(bans.Of("f", "never banned").Covers(KeyOf(1), At(1)));
  EXPECT_EQ(bans.figures().functions, 1u);
  EXPECT_EQ(bans.figures().generations, 0u) << "the function covers them";
}

TEST(BansTest, GenerationsThatWereAskedForAreKnown) {
  Bans bans;
  bans.Of("f", "r1");
  bans.Ban(Kind::kGeneration, "f", "r2", At(1), false);
  EXPECT_TRUE(bans.Knows("f", "r1"));
  EXPECT_FALSE(bans.Knows("f", "r2")) << "a ban makes none";
  EXPECT_FALSE(bans.Knows("g", "r1"));
}

TEST(BansTest, ASoftBanOfAKeyLastsUntilItsEntryIsGone) {
  Bans bans;
  const BanScope& scope = bans.Of("f", "r1");
  auto running = std::make_unique<Bans::Entered>(bans.Enter());
  bans.BanKey(KeyOf(1), At(1), /*soft=*/true, /*until=*/At(60)).reset();
  EXPECT_EQ(scope.SoftBefore(KeyOf(1), At(1)), At(1));
  EXPECT_FALSE(scope.Covers(KeyOf(1), At(1)));
  // An entry of a call under way would be stale at once, and outlive the ban.
  int fills = 0;
  EXPECT_FALSE(scope.FillUnlessBanned(KeyOf(1), At(1), [&] { ++fills; }));
  EXPECT_TRUE(scope.FillUnlessBanned(KeyOf(1), At(2), [&] { ++fills; }));
  running.reset();
  EXPECT_EQ(scope.SoftBefore(KeyOf(1), At(1)), At(1));
  // Another purge shows that time has passed.
  bans.BanKey(KeyOf(2), At(60), /*soft=*/false, absl::InfinitePast()).reset();
  EXPECT_EQ(scope.SoftBefore(KeyOf(1), At(1)), absl::InfinitePast());
  EXPECT_EQ(bans.figures().keys, 0u);
}

// ------------------------------------------------------------ Outliving

TEST(BansPersistenceTest, InMemoryAloneThereIsNothingToWrite) {
  Bans bans;
  EXPECT_FALSE(bans.lasting());
  bans.Ban(Kind::kAll, "", "", At(1), false);
  EXPECT_TRUE(bans.Save().ok());
  EXPECT_TRUE(bans.saved());
}

TEST(BansPersistenceTest, WhatIsSavedIsThereForTheNext) {
  File file;
  {
    Bans bans;
    file.AttachTo(&bans, At(0));
    EXPECT_TRUE(bans.lasting());
    EXPECT_EQ(file.written, 0) << "no bans, no file";
    bans.Ban(Kind::kFunction, "f", "", At(1), false);
    bans.Ban(Kind::kGeneration, "g", "not the one in use", At(2), false);
    bans.Ban(Kind::kFunction, "h", "", At(3), true);
    bans.BanKey(KeyOf(1), At(4), /*soft=*/true, At(100)).reset();
    ASSERT_TRUE(bans.Save().ok());
  }
  Bans bans;
  file.AttachTo(&bans, At(5));
  EXPECT_TRUE(bans.Of("f", "any").Covers(KeyOf(1), At(1)));
  EXPECT_TRUE(bans.Of("g", "not the one in use").Covers(KeyOf(1), At(2)));
  EXPECT_FALSE(bans.Of("g", "r1").Covers(KeyOf(1), At(2)));
  EXPECT_EQ(bans.Of("h", "r1").SoftBefore(KeyOf(2), At(3)), At(3));
  EXPECT_EQ(bans.Of("f", "r1").SoftBefore(KeyOf(1), At(4)), At(4));
  EXPECT_TRUE(bans.saved());
}

TEST(BansPersistenceTest, AKeyOutlivesTheProcessOnlyWhileItsEntryDoes) {
  File file;
  {
    Bans bans;
    file.AttachTo(&bans, At(0));
    const Bans::Entered running = bans.Enter();
    bans.BanKey(KeyOf(1), At(1), false, absl::InfinitePast()).reset();
    bans.BanKey(KeyOf(2), At(1), false, absl::InfinitePast()).reset();
    bans.KeepKey(KeyOf(2));
    bans.Ban(Kind::kFunction, "f", "", At(0), false);
    ASSERT_TRUE(bans.Save().ok());
  }
  Bans bans;
  file.AttachTo(&bans, At(5));
  EXPECT_FALSE(bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
  EXPECT_TRUE(bans.Of("f", "r1").Covers(KeyOf(2), At(1)));
  const auto kept = bans.Kept();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].first, KeyOf(2));
  EXPECT_EQ(kept[0].second, At(1));
  bans.Deleted(KeyOf(2), At(1));
  EXPECT_FALSE(bans.Of("f", "r1").Covers(KeyOf(2), At(1)));
  EXPECT_TRUE(bans.Kept().empty());
  EXPECT_FALSE(bans.saved()) << "the file still says so";
  bans.Retry();
  Bans last;
  file.AttachTo(&last, At(5));
  EXPECT_TRUE(last.Kept().empty());
}

TEST(BansPersistenceTest, ABanOfAKeyLastsAsLongAsItIsToldTo) {
  File file;
  {
    Bans bans;
    file.AttachTo(&bans, At(0));
    const BanScope& scope = bans.Of("f", "r1");
    EXPECT_FALSE(scope.MayCoverKeys(absl::InfinitePast()));
    bans.BanKey(KeyOf(1), At(1), false, absl::InfiniteFuture()).reset();
    bans.BanKey(KeyOf(2), At(2), true, absl::InfiniteFuture()).reset();
    ASSERT_TRUE(bans.Save().ok());
    EXPECT_TRUE(scope.CoversKey(KeyOf(1), At(1)));
    EXPECT_FALSE(scope.CoversKey(KeyOf(1), At(2)));
    EXPECT_TRUE(scope.CoversKey(KeyOf(2), At(2)));
    EXPECT_FALSE(scope.CoversKey(KeyOf(3), At(1)));
    EXPECT_TRUE(scope.MayCoverKeys(At(2)));
    EXPECT_FALSE(scope.MayCoverKeys(At(3)));
  }
  {
    Bans bans;
    file.AttachTo(&bans, At(5));
    bans.Deleted(KeyOf(1), At(1));
    EXPECT_TRUE(bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
    ASSERT_TRUE(bans.Save().ok());
  }
  Bans bans;
  file.AttachTo(&bans, At(6));
  EXPECT_TRUE(bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
  EXPECT_TRUE(bans.Of("f", "r1").CoversKey(KeyOf(2), At(2)));
  bans.Deleted(KeyOf(1), At(1));
  // Everything is more.
  bans.Ban(Kind::kAll, "", "", At(3), false);
  EXPECT_EQ(bans.figures().keys, 0u);
  EXPECT_FALSE(bans.Of("f", "r1").CoversKey(KeyOf(1), At(1)));
  EXPECT_TRUE(bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
}

TEST(BansPersistenceTest, ADeletionOfBeforeAnotherPurgeIsNotEnough) {
  Bans bans;
  bans.BanKey(KeyOf(1), At(1), false, absl::InfinitePast()).reset();
  // With nothing under way it is over: so hold it.
  const Bans::Entered running = bans.Enter();
  bans.BanKey(KeyOf(1), At(1), false, absl::InfinitePast()).reset();
  bans.KeepKey(KeyOf(1));
  bans.BanKey(KeyOf(1), At(2), false, absl::InfinitePast()).reset();
  bans.Deleted(KeyOf(1), At(1));
  EXPECT_EQ(bans.Kept().size(), 1u);
  bans.Deleted(KeyOf(1), At(2));
  EXPECT_TRUE(bans.Kept().empty());
}

TEST(BansPersistenceTest, WhatCannotBeWrittenIsInForceAndWrittenLater) {
  File file;
  Bans bans;
  file.AttachTo(&bans, At(0));
  file.failure = absl::UnavailableError("no space");
  bans.Ban(Kind::kFunction, "f", "", At(1), false);
  const absl::Status saved = bans.Save();
  EXPECT_TRUE(absl::IsUnavailable(saved));
  EXPECT_EQ(saved.message(), "no space");
  EXPECT_TRUE(bans.Of("f", "r1").Covers(KeyOf(1), At(1)));
  EXPECT_FALSE(bans.saved());
  bans.Retry();
  EXPECT_FALSE(bans.saved());
  file.failure = absl::OkStatus();
  bans.Retry();
  EXPECT_TRUE(bans.saved());
  Bans next;
  file.AttachTo(&next, At(5));
  EXPECT_TRUE(next.Of("f", "r1").Covers(KeyOf(1), At(1)));
}

TEST(BansPersistenceTest, BeforeTheDirectoryIsOpenAPurgeWaitsToBeWritten) {
  File file;
  {
    Bans before;
    file.AttachTo(&before, At(0));
    before.Ban(Kind::kFunction, "g", "", At(1), false);
    ASSERT_TRUE(before.Save().ok());
  }
  Bans bans;
  bans.Await();
  EXPECT_TRUE(bans.lasting());
  bans.Ban(Kind::kFunction, "f", "", At(2), false);
  EXPECT_TRUE(absl::IsUnavailable(bans.Save()));
  file.AttachTo(&bans, At(3));
  EXPECT_TRUE(bans.saved());
  // Both are in force, and both are written.
  Bans next;
  file.AttachTo(&next, At(4));
  for (Bans* const one : {&bans, &next}) {
    EXPECT_TRUE(one->Of("f", "r1").Covers(KeyOf(1), At(2)));
    EXPECT_TRUE(one->Of("g", "r1").Covers(KeyOf(1), At(1)));
  }
  bans.Detach();
  bans.Ban(Kind::kAll, "", "", At(5), false);
  EXPECT_FALSE(bans.Save().ok());
}

TEST(BansPersistenceTest, ADamagedFileBansAllThatIsStored) {
  File good;
  {
    Bans bans;
    good.AttachTo(&bans, At(0));
    bans.Ban(Kind::kFunction, "f", "", At(1), false);
    ASSERT_TRUE(bans.Save().ok());
  }
  std::vector<absl::optional<std::string>> contents = {
      std::string(), good.content->substr(0, good.content->size() - 1),
      std::string(good.content->size(), '\0')};
  std::string flipped = *good.content;
  flipped.back() ^= 1;
  contents.push_back(flipped);
  std::string later_version = *good.content;
  ++later_version[7];
  contents.push_back(later_version);
  for (const auto& content : contents) {
    File file;
    file.content = content;
    Bans bans;
    const BanScope& scope = bans.Of("whatever", "r1");
    ::testing::internal::CaptureStderr();
    file.AttachTo(&bans, At(10));
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("error"),
              std::string::npos)
        << "it is said aloud";
    EXPECT_TRUE(scope.Covers(KeyOf(1), At(10)));
    EXPECT_FALSE(scope.Covers(KeyOf(1), At(10) + absl::Nanoseconds(1)));
    // For good, and in a file that is whole again.
    Bans next;
    file.AttachTo(&next, At(20));
    EXPECT_TRUE(next.Of("whatever", "r1").Covers(KeyOf(1), At(10)));
    EXPECT_FALSE(next.Of("whatever", "r1").Covers(KeyOf(1), At(11)));
  }
  // So does one that cannot be read.
  Bans bans;
  bans.Attach(
      absl::FailedPreconditionError("permission denied"),
      [](absl::string_view) { return absl::UnavailableError("no"); }, At(10));
  EXPECT_TRUE(bans.Of("f", "r1").Covers(KeyOf(1), At(10)));
}

TEST(BansPersistenceTest, ABanOfATimeToComeKeepsNoAnswersOut) {
  File file;
  {
    Bans bans;
    file.AttachTo(&bans, At(0));
    bans.Ban(Kind::kAll, "", "", At(1'000'000), false);  // a clock gone astray
    ASSERT_TRUE(bans.Save().ok());
  }
  Bans bans;
  file.AttachTo(&bans, /*latest=*/At(10));
  EXPECT_TRUE(bans.Of("f", "r1").Covers(KeyOf(1), At(10)));
  EXPECT_FALSE(bans.Of("f", "r1").Covers(KeyOf(1), At(11)));
}

// ---------------------------------------------------------------- Threads

// A fill that its purge did not keep out is one that its purge finds: whatever
// the order, nothing of before a purge is there after it.
TEST(BansThreadsTest, NoFillSlipsPastAPurge) {
  Bans bans;
  const BanScope& scope = bans.Of("f", "r1");
  constexpr int kRounds = 20000;
  std::atomic<int64_t> clock{1};
  std::atomic<int64_t> stored{0};  // the start of the fill that is there
  std::atomic<bool> done{false};
  const auto time = [&] { return absl::FromUnixNanos(clock.fetch_add(1) + 1); };
  std::vector<std::thread> fillers;
  std::atomic<int> fills{0};
  for (int t = 0; t < 2; ++t) {
    fillers.emplace_back([&] {
      while (!done) {
        const Bans::Entered entered = bans.Enter();
        const absl::Time started = time();
        scope.FillUnlessBanned(KeyOf(1), started, [&] {
          stored.store(absl::ToUnixNanos(started));
          ++fills;
        });
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    const absl::Time before = time();
    if (round % 2 == 0) {
      const auto banned =
          bans.BanKey(KeyOf(1), before, false, absl::InfinitePast());
      // The store's part: it deletes what is as old.
      int64_t there = stored.load();
      while (there <= absl::ToUnixNanos(before) &&
             !stored.compare_exchange_weak(there, INT64_MAX)) {
      }
    } else {
      bans.Ban(Kind::kFunction, "f", "", before, false);
      int64_t there = stored.load();
      while (there <= absl::ToUnixNanos(before) &&
             !stored.compare_exchange_weak(there, INT64_MAX)) {
      }
    }
    ASSERT_GT(stored.load(), absl::ToUnixNanos(before)) << round;
  }
  done = true;
  for (std::thread& thread : fillers) thread.join();
  EXPECT_GT(fills, 0);
  EXPECT_EQ(bans.figures().keys, 0u);
}

}  // namespace
}  // namespace fncache::cache::store
