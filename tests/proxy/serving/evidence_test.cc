// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/evidence.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"

namespace fncache::proxy::serving {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
constexpr Key kKey{1, 1};
constexpr Key kOtherKey{1, 2};
constexpr Key kStep{7, 7};
constexpr Key kOtherStep{7, 8};
constexpr FunctionId kFunction = 3;

// The drift of a request: versions, and times under two map keys.
struct Drift {
  uint64_t version = 0;
  uint64_t heartbeat = 0;
  uint64_t transition = 0;
  uint64_t digits = 0;  // of the version

  DriftKinds Kinds() const {
    return {{1, version, /*is_time=*/false, digits},
            {2, heartbeat, /*is_time=*/true},
            {3, transition, /*is_time=*/true}};
  }
  Key Digest() const {
    return {1, version * 1'000'000 + heartbeat * 1'000 + transition};
  }
};

// A daemon with one function, and with the entries that it stored.
class EvidenceTest : public ::testing::Test {
 protected:
  // The run that a request of this drift would cause now.
  struct Call {
    Key key = kKey;
    Drift drift;
    uint64_t answer = 1;
    absl::Duration ttl = absl::Hours(48);
    Key step = kStep;
    bool stored = true;
    bool for_caller = true;
    double tune_share = 0.1;
    FunctionId function = kFunction;
  };

  RunNote Run(const Call& call) {
    now_ += absl::Seconds(1);
    const DriftKinds kinds = call.drift.Kinds();
    TunedRun run;
    run.function = call.function;
    run.step = call.step;
    run.key = call.key;
    run.entry = {now_, call.drift.Digest(), Key{2, call.answer}, call.ttl};
    run.kinds = &kinds;
    run.stored = call.stored;
    run.for_caller = call.for_caller;
    run.tune_share = call.tune_share;
    const auto it = entries_.find(call.key);
    const absl::optional<TunedEntry> older =
        it == entries_.end() ? absl::nullopt : absl::make_optional(it->second);
    entries_[call.key] = run.entry;
    if (!call.stored) entries_.erase(call.key);
    return evidence_.OnRun(run, older.has_value() ? &*older : nullptr, now_);
  }
  RunNote Run(const Key& key, const Drift& drift, uint64_t answer = 1) {
    Call call;
    call.key = key;
    call.drift = drift;
    call.answer = answer;
    return Run(call);
  }

  Judgement Judge(const Key& key, const Drift& drift) {
    const TunedEntry& entry = entries_.at(key);
    const DriftKinds kinds = drift.Kinds();
    const Judgement judgement =
        evidence_.Judge(key, entry.started, entry.drift, kinds, now_);
    if (judgement.verdict == DriftVerdict::kHit) evidence_.OnHit(key, kinds);
    return judgement;
  }
  DriftVerdict VerdictOf(const Key& key, const Drift& drift) {
    return Judge(key, drift).verdict;
  }

  absl::optional<Evidence::Running> Begin(const Key& key) {
    auto running = evidence_.Begin(key, 0.1, now_);
    if (running.has_value()) running->seen.composite = "composite a";
    return running;
  }
  // Takes a question for each of these answers (s: same, d: differs, n: none).
  void Answer(Evidence::Running* running, const std::string& answers) {
    for (const char answer : answers) {
      ASSERT_TRUE(evidence_.Take(running, now_)) << answers;
      evidence_.Report(running,
                       answer == 's'   ? Answered::kSame
                       : answer == 'd' ? Answered::kDiffers
                                       : Answered::kNone,
                       now_);
    }
  }
  void Prove(const Key& key, const std::string& answers = "ssss") {
    auto running = Begin(key);
    ASSERT_TRUE(running.has_value());
    Answer(&*running, answers);
    EXPECT_FALSE(evidence_.Take(&*running, now_));
  }

  // Runs with drifts {n, n, 0} for n = from to from + 2: all but the transition
  // ticks.
  RunNote Repeat(const Key& key, uint64_t from = 0) {
    Run(key, {from, from, 0});
    Run(key, {from + 1, from + 1, 0});
    return Run(key, {from + 2, from + 2, 0});
  }

  Evidence::FunctionFigures Figures() {
    return evidence_.Figures(now_)[kFunction];
  }

  Evidence evidence_;
  absl::Time now_ = kStart;
  absl::flat_hash_map<Key, TunedEntry> entries_;
};

TEST_F(EvidenceTest, AnEntryAnswersIfRepeatedTickingProvenAndRecent) {
  EXPECT_FALSE(Run(kKey, {0, 0, 0}).questions_due);
  EXPECT_EQ(VerdictOf(kKey, {1, 1, 0}), DriftVerdict::kUnproven);
  RunNote note = Run(kKey, {1, 1, 0});
  EXPECT_EQ(note.news, RunNews::kRepeat);
  EXPECT_FALSE(note.questions_due);
  EXPECT_EQ(VerdictOf(kKey, {2, 2, 0}), DriftVerdict::kUnproven);
  note = Run(kKey, {2, 2, 0});
  EXPECT_EQ(note.news, RunNews::kRepeat);
  EXPECT_TRUE(note.questions_due);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
  Prove(kKey);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kHit);
  EXPECT_EQ(VerdictOf(kKey, {2, 4, 0}), DriftVerdict::kHit);
  // The proof is for this key alone.
  Run(kOtherKey, {0, 0, 0});
  EXPECT_EQ(VerdictOf(kOtherKey, {3, 3, 0}), DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, ADriftThatComesBackIsNoThirdDrift) {
  for (uint64_t i = 0; i < 10; ++i)
    EXPECT_FALSE(Run(kKey, {i % 2, i % 2, 0}).questions_due) << i;
  EXPECT_TRUE(Run(kKey, {2, 2, 0}).questions_due);
}

TEST_F(EvidenceTest, ARunOfEqualDriftIsNoRepeat) {
  Run(kKey, {0, 0, 0});
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(Run(kKey, {0, 0, 0}).news, RunNews::kNothing);
  EXPECT_EQ(Figures().keys_repeating, 0u);
  Run(kKey, {1, 1, 0});
  EXPECT_EQ(Run(kKey, {1, 1, 0}).news, RunNews::kNothing);
  EXPECT_FALSE(Run(kKey, {1, 1, 0}).questions_due);
}

TEST_F(EvidenceTest, ARefreshIsARepeatButAddsNothingToTheBudget) {
  Call call;
  call.for_caller = false;
  for (uint64_t i = 0; i < 3; ++i) {
    call.drift = {i, i, 0};
    EXPECT_EQ(Run(call).questions_due, i == 2) << i;
  }
  EXPECT_EQ(Figures().budget, Evidence::kFirstBudget);
}

TEST_F(EvidenceTest, AKindThatMovesForTheFirstTimeIsAMissThatNamesIt) {
  Repeat(kKey);
  Prove(kKey);
  const Judgement judgement = Judge(kKey, {3, 3, 1});
  EXPECT_EQ(judgement.verdict, DriftVerdict::kMoved);
  EXPECT_EQ(judgement.moved, 2u);
  // The function is called. It repeats, so this kind is known to tick.
  Run(kKey, {3, 3, 1});
  EXPECT_EQ(VerdictOf(kKey, {4, 4, 2}), DriftVerdict::kHit);
}

TEST_F(EvidenceTest, AKindThatMovedBetweenFillAndFirstRepeatIsNotKnownToTick) {
  Run(kKey, {0, 0, 0});
  Run(kKey, {1, 1, 1});
  Run(kKey, {2, 1, 1});
  Prove(kKey);
  EXPECT_EQ(VerdictOf(kKey, {3, 1, 1}), DriftVerdict::kHit);
  EXPECT_EQ(Judge(kKey, {3, 2, 1}).moved, 1u);
  EXPECT_EQ(Judge(kKey, {3, 1, 2}).moved, 2u);
}

TEST_F(EvidenceTest, AnEntryAnswersForAnHourAfterItsCall) {
  Repeat(kKey);
  Prove(kKey);
  const absl::Time started = now_;
  now_ = started + absl::Hours(1) - absl::Nanoseconds(1);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kHit);
  now_ = started + absl::Hours(1);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kOld);
  // The next run begins another hour.
  Run(kKey, {3, 3, 0});
  EXPECT_EQ(VerdictOf(kKey, {4, 4, 0}), DriftVerdict::kHit);
}

TEST_F(EvidenceTest, AProofCountsForADayOverRefillsWithTheSameAnswer) {
  Repeat(kKey);
  Prove(kKey);
  const absl::Time proven = now_;
  uint64_t drift = 3;
  for (; now_ < proven + absl::Hours(23.5); now_ += absl::Minutes(59)) {
    EXPECT_FALSE(Run(kKey, {drift, drift, 0}).questions_due);
    ++drift;
    EXPECT_EQ(VerdictOf(kKey, {drift, drift, 0}), DriftVerdict::kHit);
  }
  now_ = proven + absl::Hours(24) - absl::Seconds(1);
  EXPECT_FALSE(Run(kKey, {drift, drift, 0}).questions_due);
  ++drift;
  EXPECT_EQ(VerdictOf(kKey, {drift, drift, 0}), DriftVerdict::kHit);
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(VerdictOf(kKey, {drift, drift, 0}), DriftVerdict::kOld);
  EXPECT_TRUE(Run(kKey, {drift, drift, 0}).questions_due);
  Prove(kKey);
  EXPECT_EQ(VerdictOf(kKey, {drift + 1, 0, 0}), DriftVerdict::kHit);
}

TEST_F(EvidenceTest, ARefillOfEqualDriftKeepsTheProof) {
  Repeat(kKey);
  Prove(kKey);
  now_ += absl::Hours(2);
  Run(kKey, {2, 2, 0});
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kHit);
}

TEST_F(EvidenceTest, BetweenFillAndEvidenceOtherDriftMisses) {
  Repeat(kKey);
  Prove(kKey);
  entries_[kKey].started += absl::Nanoseconds(1);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
  entries_[kKey].started -= absl::Nanoseconds(1);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kHit);
  entries_[kKey].drift = {1, 77};
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, KindsThatDoNotFitTheEntrysAreAMiss) {
  Repeat(kKey);
  Prove(kKey);
  const TunedEntry& entry = entries_[kKey];
  const DriftKinds fewer{{1, 3, /*is_time=*/false}};
  DriftKinds others = Drift{3, 3, 0}.Kinds();
  others[1].kind = 99;
  // A digest differs, and no kind does.
  const DriftKinds none = Drift{2, 2, 0}.Kinds();
  for (const DriftKinds& kinds : {fewer, others, none})
    EXPECT_EQ(
        evidence_.Judge(kKey, entry.started, entry.drift, kinds, now_).verdict,
        DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, ARequestWithTooManyKindsIsNotTuned) {
  Repeat(kKey);
  DriftKinds kinds;
  for (uint64_t i = 0; i <= kMostKinds; ++i)
    kinds.push_back({i, 3, /*is_time=*/true});
  TunedRun run;
  run.function = kFunction;
  run.step = kStep;
  run.key = kKey;
  run.kinds = &kinds;
  for (uint64_t i = 0; i < 5; ++i) {
    run.entry = {now_ + absl::Seconds(i), Key{1, 500 + i}, Key{2, 1},
                 absl::Hours(48)};
    const TunedEntry older = entries_[kKey];
    EXPECT_EQ(evidence_.OnRun(run, &older, now_).news, RunNews::kNothing);
    entries_[kKey] = run.entry;
    EXPECT_EQ(
        evidence_.Judge(kKey, run.entry.started, run.entry.drift, kinds, now_)
            .verdict,
        DriftVerdict::kUnproven);
  }
  EXPECT_EQ(Figures().keys_repeating, 0u);
}

TEST_F(EvidenceTest, AnotherAnswerEndsTheProofAndIsAskedAboutAtOnce) {
  Repeat(kKey);
  Prove(kKey);
  RunNote note = Run(kKey, {3, 3, 1}, 2);
  EXPECT_EQ(note.news, RunNews::kOther);
  EXPECT_TRUE(note.questions_due);
  EXPECT_EQ(VerdictOf(kKey, {4, 4, 1}), DriftVerdict::kUnproven);
  Prove(kKey);
  // It is proven, and must be repeated once more.
  EXPECT_EQ(VerdictOf(kKey, {4, 4, 1}), DriftVerdict::kUnproven);
  EXPECT_FALSE(Run(kKey, {4, 4, 2}, 2).questions_due);
  EXPECT_FALSE(Run(kKey, {5, 5, 2}, 2).questions_due);
  EXPECT_EQ(VerdictOf(kKey, {6, 6, 2}), DriftVerdict::kHit);
  // A move between the fill and the first repeat is not known to tick.
  EXPECT_EQ(VerdictOf(kKey, {6, 6, 3}), DriftVerdict::kMoved);
}

TEST_F(EvidenceTest, AnotherTtlIsAnotherAnswer) {
  Repeat(kKey);
  Prove(kKey);
  Call call;
  call.drift = {3, 3, 0};
  call.ttl = absl::Hours(47);
  EXPECT_EQ(Run(call).news, RunNews::kOther);
  EXPECT_EQ(VerdictOf(kKey, {4, 4, 0}), DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, AnotherAnswerToTheFillIsAskedAboutAtOnce) {
  Run(kKey, {0, 0, 0}, 1);
  EXPECT_TRUE(Run(kKey, {1, 1, 0}, 2).questions_due);
}

TEST_F(EvidenceTest, AnotherAnswerToEqualDriftEndsTheProofWithoutQuestions) {
  Repeat(kKey);
  Prove(kKey);
  EXPECT_FALSE(Run(kKey, {2, 2, 0}, 2).questions_due);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, AnAnswerThatIsNotStoredEndsTheProof) {
  Repeat(kKey);
  Prove(kKey);
  Call call;
  call.drift = {3, 3, 0};
  call.stored = false;
  EXPECT_FALSE(Run(call).questions_due);
  EXPECT_FALSE(Run(kKey, {2, 2, 0}).questions_due);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, ARunThatStartedEarlierThanTheEntryIsNoRepeat) {
  Repeat(kKey);
  Prove(kKey);
  const DriftKinds kinds = Drift{8, 8, 1}.Kinds();
  TunedRun run;
  run.function = kFunction;
  run.step = kStep;
  run.key = kKey;
  run.kinds = &kinds;
  run.entry = entries_[kKey];
  run.entry.started -= absl::Milliseconds(1);
  run.entry.drift = Drift{8, 8, 1}.Digest();
  EXPECT_EQ(evidence_.OnRun(run, &entries_[kKey], now_).news,
            RunNews::kNothing);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kHit);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 1}), DriftVerdict::kMoved);
  // With another answer, it is in doubt.
  run.entry.answer = Key{2, 2};
  EXPECT_EQ(evidence_.OnRun(run, &entries_[kKey], now_).news,
            RunNews::kNothing);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, AnAnswerThatCameFromElsewhereEndsTheProof) {
  Repeat(kKey);
  Prove(kKey);
  // Another daemon's entry, in a shared tier.
  now_ += absl::Seconds(1);
  entries_[kKey] = {now_, Key{1, 77}, Key{2, 2}, absl::Hours(48)};
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
  EXPECT_EQ(Run(kKey, {3, 3, 0}).news, RunNews::kOther);
  EXPECT_EQ(VerdictOf(kKey, {4, 4, 0}), DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, TheSameAnswerFromElsewhereKeepsTheProof) {
  Repeat(kKey);
  Prove(kKey);
  now_ += absl::Seconds(1);
  entries_[kKey].started = now_;
  entries_[kKey].drift = {1, 77};
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
  EXPECT_EQ(Run(kKey, {3, 3, 0}).news, RunNews::kRepeat);
  EXPECT_EQ(VerdictOf(kKey, {4, 4, 0}), DriftVerdict::kHit);
}

TEST_F(EvidenceTest, TimesThatAreReadCountForAllKeysOfTheStep) {
  Repeat(kKey);
  Prove(kKey);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kHit);
  EXPECT_EQ(VerdictOf(kKey, {3, 2, 0}), DriftVerdict::kHit);
  Repeat(kOtherKey);
  Prove(kOtherKey, "dsddssss");
  for (const Key& key : {kKey, kOtherKey}) {
    EXPECT_EQ(VerdictOf(key, {3, 3, 0}), DriftVerdict::kRead);
    EXPECT_EQ(VerdictOf(key, {2, 3, 0}), DriftVerdict::kRead);
    EXPECT_EQ(VerdictOf(key, {3, 2, 0}), DriftVerdict::kHit);
  }
  // Another step is another function of drift.
  Call call;
  call.key = {1, 3};
  call.step = kOtherStep;
  for (uint64_t i = 0; i < 3; ++i) {
    call.drift = {i, i, 0};
    Run(call);
  }
  Prove(call.key);
  EXPECT_EQ(VerdictOf(call.key, {3, 3, 0}), DriftVerdict::kHit);
}

// The log has each finding, and its number of revoked hits.
TEST_F(EvidenceTest, AFindingIsReportedOnce) {
  for (const Key& key : {kKey, kOtherKey}) Repeat(key);
  Prove(kKey);
  EXPECT_EQ(Judge(kKey, {3, 3, 0}).verdict, DriftVerdict::kHit);
  EXPECT_EQ(Judge(kKey, {3, 2, 0}).verdict, DriftVerdict::kHit);
  auto running = Begin(kOtherKey);
  const auto answer = [&](Answered answer) {
    EXPECT_TRUE(evidence_.Take(&*running, now_));
    return evidence_.Report(&*running, answer, now_);
  };
  const auto expect = [](const Finding& finding, bool reads, bool varies,
                         uint64_t revoked) {
    EXPECT_EQ(finding.reads, reads);
    EXPECT_EQ(finding.varies, varies);
    EXPECT_EQ(finding.revoked_hits, revoked);
  };
  expect(answer(Answered::kDiffers), false, false, 0);
  expect(answer(Answered::kSame), false, false, 0);
  expect(answer(Answered::kDiffers), false, false, 0);
  // Times differed in one of the two hits.
  expect(answer(Answered::kDiffers), true, false, 1);
  expect(answer(Answered::kDiffers), false, false, 0);
  expect(answer(Answered::kSame), false, false, 0);
  expect(answer(Answered::kDiffers), false, false, 0);
  expect(answer(Answered::kDiffers), true, false, 1);
  EXPECT_TRUE(running->proof.ended());

  Call call;
  call.step = kOtherStep;
  call.key = {1, 3};
  for (uint64_t i = 0; i < 3; ++i) {
    call.drift = {i, i, 0};
    Run(call);
  }
  for (const bool first : {true, false}) {
    running = Begin(call.key);
    ASSERT_TRUE(running.has_value());
    expect(answer(Answered::kDiffers), false, false, 0);
    expect(answer(Answered::kDiffers), false, first, 0);
    now_ += absl::Minutes(10);
  }
  EXPECT_EQ(Figures().revoked_hits, 2u);
}

TEST_F(EvidenceTest, AStepThatReadsVersionsIsNeitherAskedNorBelieved) {
  Repeat(kKey);
  Prove(kKey);
  Repeat(kOtherKey);
  Prove(kOtherKey, "dsdddsdd");
  EXPECT_EQ(VerdictOf(kKey, {3, 2, 0}), DriftVerdict::kRead);
  EXPECT_FALSE(Run(kOtherKey, {3, 3, 0}).questions_due);
  EXPECT_FALSE(Run(kOtherKey, {4, 4, 0}, 2).questions_due);
  EXPECT_FALSE(Begin(kOtherKey).has_value());
}

TEST_F(EvidenceTest, WhileVersionsAreUndecidedNoDriftIsBelieved) {
  Repeat(kKey);
  Prove(kKey);
  Repeat(kOtherKey);
  auto running = Begin(kOtherKey);
  Answer(&*running, "dsdd");
  EXPECT_EQ(VerdictOf(kKey, {3, 2, 0}), DriftVerdict::kRead);
  Answer(&*running, "sn");
  EXPECT_EQ(VerdictOf(kKey, {3, 2, 0}), DriftVerdict::kRead);
  // A later repeat asks about versions alone, also one of a key that is proven.
  now_ += Evidence::kErrorPause;
  EXPECT_TRUE(Run(kKey, {3, 3, 0}).questions_due);
  Prove(kKey);
  EXPECT_EQ(VerdictOf(kKey, {4, 3, 0}), DriftVerdict::kHit);
  EXPECT_EQ(VerdictOf(kKey, {4, 4, 0}), DriftVerdict::kRead);
}

TEST_F(EvidenceTest, WhereTimesAreReadAnotherAnswerAfterOtherTimesIsNoNews) {
  Repeat(kKey);
  Prove(kKey, "dsddssss");
  EXPECT_FALSE(Run(kKey, {3, 3, 0}, 2).questions_due);
  EXPECT_TRUE(Run(kKey, {4, 3, 0}, 3).questions_due);
}

TEST_F(EvidenceTest, AProofThatComesBackLaterCountsOnlyForTheSameAnswer) {
  Repeat(kKey);
  auto running = Begin(kKey);
  Answer(&*running, "sss");
  ASSERT_TRUE(evidence_.Take(&*running, now_));
  Run(kKey, {3, 3, 0}, 2);
  Run(kKey, {4, 4, 0}, 1);
  evidence_.Report(&*running, Answered::kSame, now_);
  Run(kKey, {5, 5, 0}, 1);
  Run(kKey, {6, 6, 0}, 1);
  EXPECT_EQ(VerdictOf(kKey, {7, 7, 0}), DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, AProofThatComesBackLaterCountsOverARefill) {
  Repeat(kKey);
  auto running = Begin(kKey);
  Answer(&*running, "sss");
  Run(kKey, {3, 3, 0});
  Answer(&*running, "s");
  EXPECT_EQ(VerdictOf(kKey, {4, 4, 0}), DriftVerdict::kHit);
}

// Questions keep how drift is written, and a version of four digits is never
// above one of five.
TEST_F(EvidenceTest, AProofSaysNothingOfDriftThatIsWrittenInAnotherWay) {
  Repeat(kKey);
  Prove(kKey);
  Drift longer = {3, 3, 0};
  EXPECT_EQ(VerdictOf(kKey, longer), DriftVerdict::kHit);
  longer.digits = 5;
  EXPECT_EQ(VerdictOf(kKey, longer), DriftVerdict::kUnproven);
  // The evidence begins again with the first such run.
  longer = {4, 4, 0, 5};
  EXPECT_FALSE(Run(kKey, longer).questions_due);
  longer = {5, 5, 0, 5};
  EXPECT_EQ(VerdictOf(kKey, longer), DriftVerdict::kUnproven);
  EXPECT_TRUE(Run(kKey, longer).questions_due);
  Prove(kKey);
  longer = {6, 6, 0, 5};
  Run(kKey, longer);
  longer = {7, 7, 0, 5};
  EXPECT_EQ(VerdictOf(kKey, longer), DriftVerdict::kHit);
}

// Where a refresh runs the function, a hit saves nothing.
TEST_F(EvidenceTest, AHitWithARefreshAddsNothingToTheBudget) {
  Repeat(kKey);
  Prove(kKey);
  const double budget = Figures().budget;
  evidence_.OnHit(kKey, Drift{3, 3, 0}.Kinds(), /*saves_run=*/false);
  EXPECT_EQ(Figures().budget, budget);
  evidence_.OnHit(kKey, Drift{3, 3, 0}.Kinds());
  EXPECT_GT(Figures().budget, budget);
  EXPECT_EQ(Figures().hits, 2u);
}

TEST_F(EvidenceTest, AFailureOfAnyCallEndsTheProofsOfTheFunction) {
  Repeat(kKey);
  auto running = Begin(kKey);
  Answer(&*running, "sss");
  ASSERT_TRUE(evidence_.Take(&*running, now_));
  evidence_.OnFailure(kFunction, now_);
  evidence_.Report(&*running, Answered::kSame, now_);
  EXPECT_TRUE(running->proof.ended());
  EXPECT_EQ(running->proof.result(), ProofResult::kFailed);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
}

TEST_F(EvidenceTest, AProofThatComesBackLaterIsNotBelievedWhereItsStepReads) {
  Repeat(kKey);
  Repeat(kOtherKey);
  auto running = Begin(kKey);
  Answer(&*running, "sss");
  ASSERT_TRUE(evidence_.Take(&*running, now_));
  Prove(kOtherKey, "dsddssss");
  evidence_.Report(&*running, Answered::kSame, now_);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kRead);
  EXPECT_EQ(VerdictOf(kKey, {3, 2, 0}), DriftVerdict::kHit);
}

TEST_F(EvidenceTest, TwoProofsMayFindThatTheStepReadsTimes) {
  Repeat(kKey);
  Repeat(kOtherKey);
  auto running = Begin(kKey);
  Answer(&*running, "dsd");
  ASSERT_TRUE(evidence_.Take(&*running, now_));
  Prove(kOtherKey, "dsddssss");
  evidence_.Report(&*running, Answered::kDiffers, now_);
  Answer(&*running, "ssss");
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kRead);
  EXPECT_EQ(VerdictOf(kKey, {3, 2, 0}), DriftVerdict::kHit);
}

TEST_F(EvidenceTest, AProofStopsWhereItsStepIsFoundToReadOrPauses) {
  for (const char* const others : {"dsddssss", "dsdddsdd", "dd", "n"}) {
    evidence_.ForgetFunction(absl::nullopt);
    entries_.clear();
    Repeat(kKey);
    Repeat(kOtherKey);
    auto running = Begin(kKey);
    Answer(&*running, "s");
    Prove(kOtherKey, others);
    EXPECT_FALSE(evidence_.Take(&*running, now_)) << others;
    EXPECT_EQ(VerdictOf(kKey, {3, 2, 0}), others == std::string("dsdddsdd")
                                              ? DriftVerdict::kRead
                                              : DriftVerdict::kUnproven);
  }
}

TEST_F(EvidenceTest, ARunningProofEndsWithItsEvidence) {
  for (const int how : {0, 1, 2, 3, 4}) {
    evidence_.ForgetFunction(absl::nullopt);
    entries_.clear();
    Repeat(kKey);
    auto running = Begin(kKey);
    ASSERT_TRUE(running.has_value()) << how;
    Answer(&*running, "ss");
    if (how == 0) evidence_.Forget(kKey);
    if (how == 1) evidence_.ForgetFunction(kFunction);
    if (how == 2) evidence_.ForgetFunction(absl::nullopt);
    if (how == 3) Run(kKey, {3, 3, 0}, 2);
    if (how == 4) evidence_.Abort(&*running);
    EXPECT_FALSE(evidence_.Take(&*running, now_)) << how;
    EXPECT_TRUE(running->proof.ended()) << how;
    evidence_.Abort(&*running);
  }
  EXPECT_EQ(Figures().proofs[static_cast<int>(ProofResult::kFailed)], 5u);
}

TEST_F(EvidenceTest, AFindingOfBeforeThePurgeDoesNotCount) {
  Repeat(kKey);
  auto running = Begin(kKey);
  Answer(&*running, "ds");
  ASSERT_TRUE(evidence_.Take(&*running, now_));
  evidence_.ForgetFunction(kFunction);
  Repeat(kOtherKey);
  evidence_.Report(&*running, Answered::kDiffers, now_);
  evidence_.Abort(&*running);
  EXPECT_TRUE(evidence_.StepsOf(kFunction).empty());
  // Neither does an error.
  running = Begin(kOtherKey);
  ASSERT_TRUE(evidence_.Take(&*running, now_));
  evidence_.ForgetFunction(kFunction);
  Repeat(kKey, 10);
  evidence_.Report(&*running, Answered::kNone, now_);
  EXPECT_TRUE(Begin(kKey).has_value());
}

TEST_F(EvidenceTest, AKeyHasOneProofAtATime) {
  Repeat(kKey);
  auto running = Begin(kKey);
  EXPECT_FALSE(Begin(kKey).has_value());
  EXPECT_FALSE(Run(kKey, {3, 3, 0}).questions_due);
  // Also where its question comes back after the evidence is gone.
  ASSERT_TRUE(evidence_.Take(&*running, now_));
  EXPECT_FALSE(Run(kKey, {4, 4, 0}, 2).questions_due);
  evidence_.Report(&*running, Answered::kSame, now_);
  evidence_.Abort(&*running);
  EXPECT_TRUE(Run(kKey, {5, 5, 0}, 3).questions_due);
}

TEST_F(EvidenceTest, TwoProofsOfAFunctionRunAtOnce) {
  for (uint64_t i = 0; i < 3; ++i) Repeat({5, i});
  auto first = Begin({5, 0});
  auto second = Begin({5, 1});
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(Begin({5, 2}).has_value());
  evidence_.Abort(&*first);
  EXPECT_TRUE(Begin({5, 2}).has_value());
}

TEST_F(EvidenceTest, TheBudgetBeginsAtFortyQuestionsAndRunsAddToIt) {
  for (uint64_t i = 0; i < 10; ++i) {
    Call call;
    call.key = {5, i};
    call.tune_share = 1e-9;
    for (uint64_t n = 0; n < 3; ++n) {
      call.drift = {n, n, 0};
      EXPECT_EQ(Run(call).questions_due, n == 2) << i;
    }
    Prove(call.key);
  }
  // 41 more runs add four questions.
  for (uint64_t n = 0; n < 39; ++n)
    EXPECT_FALSE(Run({5, 11}, {n, n, 0}).questions_due) << n;
  EXPECT_FALSE(Begin({5, 11}).has_value());
  Run({5, 11}, {39, 0, 0});
  EXPECT_TRUE(Run({5, 11}, {40, 0, 0}).questions_due);
  Prove({5, 11});
}

TEST_F(EvidenceTest, AProofKeepsWhatItNeedsOfTheBudget) {
  Call call;
  call.tune_share = 1e-9;
  for (uint64_t i = 0; i < 11; ++i) {
    call.key = {5, i};
    for (uint64_t n = 0; n < 3; ++n) {
      call.drift = {n, n, 0};
      Run(call);
    }
    if (i < 9) Prove(call.key);
  }
  // Four questions are left. A second proof would end both without a result.
  auto first = Begin({5, 9});
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(Begin({5, 10}).has_value());
  Answer(&*first, "s");
  EXPECT_FALSE(Begin({5, 10}).has_value());
  EXPECT_FALSE(
      evidence_.MayAskLater(kFunction, kStep, {5, 10}, call.tune_share, now_));
  Answer(&*first, "sss");
  EXPECT_EQ(VerdictOf({5, 9}, {2, 2, 0}), DriftVerdict::kUnproven);
  // 40 more runs add four questions.
  for (uint64_t n = 3; n < 44; ++n)
    EXPECT_EQ(Run({5, 10}, {n, n, 0}).questions_due, n >= 42) << n;
  // Those of a proof that was stopped are free again.
  auto stopped = Begin({5, 10});
  ASSERT_TRUE(stopped.has_value());
  evidence_.Abort(&*stopped);
  Prove({5, 10});
  EXPECT_EQ(VerdictOf({5, 10}, {44, 44, 0}), DriftVerdict::kHit);
}

TEST_F(EvidenceTest, AProofThatRunsOutOfBudgetWaitsForALaterRepeat) {
  Call call;
  call.tune_share = 1e-9;
  for (uint64_t i = 0; i < 10; ++i) {
    call.key = {5, i};
    for (uint64_t n = 0; n < 3; ++n) {
      call.drift = {n, n, 0};
      Run(call);
    }
    if (i < 9) Prove(call.key);
  }
  // The four questions that are left show that the step reads drift. Those
  // about versions alone are not asked yet.
  auto running = Begin({5, 9});
  ASSERT_TRUE(running.has_value());
  Answer(&*running, "dsdd");
  EXPECT_FALSE(evidence_.Take(&*running, now_));
  EXPECT_EQ(VerdictOf({5, 9}, {3, 3, 0}), DriftVerdict::kRead);
  for (uint64_t n = 3; n < 44; ++n)
    EXPECT_EQ(Run({5, 9}, {n, n, 0}).questions_due, n >= 42) << n;
  Prove({5, 9});
  EXPECT_EQ(Figures().keys_proven, 10u);
}

TEST_F(EvidenceTest, AHitAcrossDriftAddsHalfAQuestionAndFourHundredAreSaved) {
  Repeat(kKey);
  Prove(kKey);
  const double before = Figures().budget;
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kHit);
  EXPECT_EQ(Figures().budget, before + 0.5);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 1}), DriftVerdict::kMoved);
  EXPECT_EQ(Figures().budget, before + 0.5);
  for (int i = 0; i < 1000; ++i) Judge(kKey, {3, 3, 0});
  EXPECT_EQ(Figures().budget, 400);
  Run(kKey, {3, 3, 0});
  EXPECT_EQ(Figures().budget, 400);
}

TEST_F(EvidenceTest, WithAShareOfZeroNothingIsAsked) {
  Call call;
  call.tune_share = 0;
  for (uint64_t n = 0; n < 10; ++n) {
    call.drift = {n, n, 0};
    EXPECT_FALSE(Run(call).questions_due);
  }
  EXPECT_FALSE(evidence_.Begin(kKey, 0, now_).has_value());
}

TEST_F(EvidenceTest, AfterAnErrorTheStepPausesTenSecondsDoublingToTenMinutes) {
  Repeat(kKey);
  Repeat(kOtherKey);
  for (int i = 0; i < 400; ++i) Run({9, 9}, {});  // budget
  for (const int seconds : {10, 20, 40, 80, 160, 320, 600, 600}) {
    Prove(kKey, "n");
    now_ += absl::Seconds(seconds) - absl::Nanoseconds(1);
    EXPECT_FALSE(Begin(kKey).has_value());
    EXPECT_FALSE(Begin(kOtherKey).has_value());
    now_ += absl::Nanoseconds(1);
  }
  Prove(kKey);
  Prove(kOtherKey, "n");
  now_ += absl::Seconds(10);
  EXPECT_TRUE(Begin(kOtherKey).has_value());
}

TEST_F(EvidenceTest, AStepThatVariesPausesTenMinutesDoublingToADay) {
  Repeat(kKey);
  for (int i = 0; i < 400; ++i) Run({9, 9}, {});  // budget
  for (const int minutes : {10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440}) {
    Prove(kKey, "dd");
    EXPECT_EQ(Figures().steps_vary, 1u);
    now_ += absl::Minutes(minutes) - absl::Nanoseconds(1);
    EXPECT_FALSE(Begin(kKey).has_value());
    now_ += absl::Nanoseconds(1);
  }
  // Also another answer asks nothing while it pauses.
  Prove(kKey, "dss");
  EXPECT_FALSE(Run(kKey, {3, 3, 0}, 2).questions_due);
  now_ += absl::Hours(24);
  EXPECT_TRUE(Run(kKey, {4, 4, 0}, 3).questions_due);
  Prove(kKey);
  EXPECT_EQ(Figures().steps_vary, 0u);
}

TEST_F(EvidenceTest, WithinTenSecondsOfAFailureTheFunctionIsNotAsked) {
  Repeat(kKey);
  auto running = Begin(kKey);
  Answer(&*running, "s");
  evidence_.OnFailure(kFunction, now_);
  EXPECT_FALSE(evidence_.Take(&*running, now_));
  EXPECT_FALSE(Run(kKey, {3, 3, 0}).questions_due);
  now_ += absl::Seconds(9);
  EXPECT_TRUE(Run(kKey, {4, 4, 0}).questions_due);
}

TEST_F(EvidenceTest, APurgeForgetsAKeyAFunctionOrAll) {
  Repeat(kKey);
  Prove(kKey);
  Repeat(kOtherKey);
  Prove(kOtherKey);
  evidence_.Forget(kKey);
  EXPECT_EQ(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven);
  EXPECT_EQ(VerdictOf(kOtherKey, {3, 3, 0}), DriftVerdict::kHit);
  evidence_.ForgetFunction(kFunction + 1);
  EXPECT_EQ(VerdictOf(kOtherKey, {3, 3, 0}), DriftVerdict::kHit);
  // A purge of the function also forgets what its steps read.
  Repeat(kKey, 10);
  Prove(kKey, "dsdddsdd");
  EXPECT_EQ(evidence_.StepsOf(kFunction).size(), 1u);
  evidence_.ForgetFunction(kFunction);
  EXPECT_EQ(VerdictOf(kOtherKey, {3, 3, 0}), DriftVerdict::kUnproven);
  EXPECT_TRUE(evidence_.StepsOf(kFunction).empty());
  Repeat(kKey, 20);
  Prove(kKey);
  EXPECT_EQ(VerdictOf(kKey, {23, 23, 0}), DriftVerdict::kHit);
  evidence_.ForgetFunction(absl::nullopt);
  EXPECT_EQ(VerdictOf(kKey, {23, 23, 0}), DriftVerdict::kUnproven);
  EXPECT_EQ(evidence_.bytes(), 0u);
}

TEST_F(EvidenceTest, FiguresCountKeysQuestionsProofsAndRevokedHits) {
  Repeat(kKey);
  EXPECT_EQ(Figures().keys_repeating, 1u);
  Prove(kKey);
  EXPECT_EQ(Figures().keys_repeating, 0u);
  EXPECT_EQ(Figures().keys_proven, 1u);
  for (int i = 0; i < 3; ++i) Judge(kKey, {3, 3, 0});
  for (int i = 0; i < 2; ++i) Judge(kKey, {3, 2, 0});
  EXPECT_EQ(Figures().hits, 5u);
  EXPECT_EQ(Figures().revoked_hits, 0u);
  Repeat(kOtherKey);
  const absl::Time found = now_;
  Prove(kOtherKey, "dsddssss");
  // The hits where versions alone differed stay good.
  EXPECT_EQ(Figures().revoked_hits, 3u);
  const auto steps = evidence_.StepsOf(kFunction);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].reads, Reads::kTimes);
  EXPECT_EQ(steps[0].read_since, found);
  EXPECT_EQ(steps[0].seen.composite, "composite a");
  Judge(kKey, {4, 2, 0});
  now_ += absl::Hours(25);
  Run(kKey, {3, 3, 0});
  Prove(kKey, "dsdd");
  EXPECT_EQ(Figures().hits, 6u);
  EXPECT_EQ(Figures().revoked_hits, 6u);
  EXPECT_EQ(evidence_.StepsOf(kFunction)[0].reads, Reads::kAll);
  EXPECT_EQ(evidence_.StepsOf(kFunction)[0].read_since, found);
  EXPECT_EQ(Figures().steps_read, 1u);
  const Evidence::FunctionFigures figures = Figures();
  EXPECT_EQ(figures.questions, (std::array<uint64_t, 3>{4 + 5 + 1, 6, 0}));
  EXPECT_EQ(figures.proofs, (std::array<uint64_t, 4>{1, 2, 0, 0}));
}

TEST_F(EvidenceTest, LeastRecentlyUsedKeysAreDroppedBeyondTheLimit) {
  constexpr uint64_t kKeys = 100'000;
  Repeat(kKey);
  Prove(kKey);
  for (uint64_t i = 0; i < kKeys; ++i) {
    Run({6, i}, {0, 0, 0});
    Run({6, i}, {1, 1, 0});
    // This key is used, so it stays.
    if (i % 1000 == 0) {
      EXPECT_NE(VerdictOf(kKey, {3, 3, 0}), DriftVerdict::kUnproven) << i;
    }
    ASSERT_LE(evidence_.bytes(), Evidence::kMostBytes);
  }
  EXPECT_GT(evidence_.bytes(), Evidence::kMostBytes / 2);
  // At least 50,000 keys of three kinds fit.
  EXPECT_EQ(Run({6, kKeys - 50'000}, {2, 2, 0}).news, RunNews::kRepeat);
  EXPECT_TRUE(evidence_.Begin({6, kKeys - 50'000}, 0.1, now_).has_value());
  EXPECT_FALSE(evidence_.Begin({6, 0}, 0.1, now_).has_value());
}

TEST_F(EvidenceTest, BeyondTheLimitOfStepsNothingNewIsAsked) {
  Call call;
  for (uint64_t i = 0; i <= Evidence::kMostSteps; ++i) {
    call.key = {6, i};
    call.step = {8, i};
    call.drift = {0, 0, 0};
    Run(call);
    call.drift = {1, 1, 0};
    EXPECT_EQ(Run(call).news,
              i < Evidence::kMostSteps ? RunNews::kRepeat : RunNews::kNothing);
  }
  call.drift = {2, 2, 0};
  EXPECT_FALSE(Run(call).questions_due);
  call.key = {6, 0};
  call.step = {8, 0};
  EXPECT_TRUE(Run(call).questions_due);
}

TEST_F(EvidenceTest, ManyThreadsMayCallIt) {
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      TunedEntry older{kStart, Key{1, 0}, Key{2, 0}, absl::Hours(1)};
      for (uint64_t i = 1; i < 2000; ++i) {
        const absl::Time now = kStart + absl::Seconds(i);
        const Drift drift{i, i, i + thread};
        const DriftKinds kinds = drift.Kinds();
        TunedRun run;
        run.function = kFunction;
        run.step = kStep;
        run.key = Key{3, i % 5};
        run.kinds = &kinds;
        run.entry = {now, drift.Digest(), Key{2, i / 300}, absl::Hours(1)};
        evidence_.Judge(run.key, older.started, older.drift, kinds, now);
        evidence_.OnRun(run, &older, now);
        older = run.entry;
        auto running = evidence_.Begin(run.key, 0.1, now);
        while (running.has_value() && evidence_.Take(&*running, now))
          evidence_.Report(&*running,
                           i % 7 == 0 ? Answered::kDiffers : Answered::kSame,
                           now);
        if (i % 100 == thread) evidence_.Forget(run.key);
        if (i % 500 == thread) evidence_.ForgetFunction(kFunction);
        if (i % 50 == thread) evidence_.Figures(now);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  evidence_.ForgetFunction(absl::nullopt);
  EXPECT_EQ(evidence_.bytes(), 0u);
}

}  // namespace
}  // namespace fncache::proxy::serving
