// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/shadow_verdict.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::proxy::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ShadowReport Report(ShadowReport::Count mask, ShadowReport::Count exact) {
  ShadowReport report;
  report.by[0] = mask;
  report.by[1] = exact;
  report.masks.push_back({"a.b", 5, mask, mask});
  return report;
}

void AddPath(ShadowReport* report, uint64_t by_mask, uint64_t exact) {
  ShadowReport::Path path;
  path.path = absl::StrCat("p", report->paths.size());
  path.differences = {by_mask, exact, 0};
  report->paths.push_back(path);
}

ShadowJudgement Judged(ShadowReport::Count mask, ShadowReport::Count exact) {
  return Judge(Report(mask, exact)).judgement;
}

TEST(ShadowVerdict, TheRuleOfThreeBoundsWhatWasNotSeen) {
  const ShadowVerdict none = Judge(Report({0, 0}, {50, 0}));
  EXPECT_EQ(none.judgement, ShadowJudgement::kNotEnough);
  EXPECT_FALSE(none.at_most.has_value());
  EXPECT_DOUBLE_EQ(*Judge(Report({1, 0}, {})).at_most, 1);
  const ShadowVerdict few = Judge(Report({299, 0}, {}));
  EXPECT_EQ(few.judgement, ShadowJudgement::kNotEnough);
  EXPECT_DOUBLE_EQ(*few.at_most, 3.0 / 299);
  const ShadowVerdict enough = Judge(Report({300, 0}, {}));
  EXPECT_EQ(enough.judgement, ShadowJudgement::kNoDifference);
  EXPECT_DOUBLE_EQ(*enough.at_most, 0.01);
  EXPECT_FALSE(enough.bad());
}

TEST(ShadowVerdict, TheUpperBoundIsWilsons) {
  // 10 of 100: 0.0552 to 0.1744.
  EXPECT_NEAR(*Judge(Report({100, 10}, {})).at_most, 0.1744, 0.0001);
}

TEST(ShadowVerdict, OneDifferenceIsWrongWhereTheControlNeverDiffers) {
  EXPECT_EQ(Judged({5000, 1}, {5000, 0}), ShadowJudgement::kWrong);
  EXPECT_EQ(Judged({5000, 1}, {30, 0}), ShadowJudgement::kWrong);
  EXPECT_EQ(Judged({5000, 1}, {29, 0}), ShadowJudgement::kSuspect);
}

TEST(ShadowVerdict, WithoutAControlADifferenceIsSuspect) {
  EXPECT_EQ(Judged({1, 1}, {}), ShadowJudgement::kSuspect);
  EXPECT_EQ(Judged({500, 500}, {}), ShadowJudgement::kSuspect);
  EXPECT_TRUE(Judge(Report({1, 1}, {})).bad());
}

TEST(ShadowVerdict, FewRepeatsThatDifferAcquitNoMask) {
  ShadowReport report = Report({500, 500}, {1, 1});
  AddPath(&report, 500, 1);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kSuspect);
  EXPECT_TRUE(Judge(report).bad());
  EXPECT_EQ(Judged({304, 4}, {13, 1}), ShadowJudgement::kSuspect);
  EXPECT_EQ(Judged({10, 10}, {29, 29}), ShadowJudgement::kSuspect);
}

TEST(ShadowVerdict, FewRepeatsConvictWhereTheyAreClear) {
  EXPECT_EQ(Judged({400, 400}, {9, 0}), ShadowJudgement::kWrong);
  EXPECT_EQ(Judged({400, 400}, {1, 0}), ShadowJudgement::kWrong);
}

TEST(ShadowVerdict, TheSharesOfASufficientControlAreCompared) {
  EXPECT_EQ(Judged({1000, 100}, {1000, 95}), ShadowJudgement::kVaries);
  EXPECT_EQ(Judged({1000, 200}, {1000, 95}), ShadowJudgement::kWrong);
  EXPECT_EQ(Judged({10, 10}, {30, 30}), ShadowJudgement::kVaries);
  // More, and neither clearly so nor clearly not.
  EXPECT_EQ(Judged({300, 60}, {30, 3}), ShadowJudgement::kSuspect);
  EXPECT_TRUE(Judge(Report({10, 10}, {30, 30})).bad());
}

TEST(ShadowVerdict, APathThatNeverDiffersByItselfIsWrong) {
  ShadowReport report = Report({400, 400}, {9, 9});
  AddPath(&report, 400, 9);
  AddPath(&report, 400, 0);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kWrong);
  EXPECT_THAT(Judge(report).paths, ElementsAre(1));
  // Rare ones need a control that suffices.
  report = Report({600, 600}, {29, 29});
  AddPath(&report, 600, 29);
  AddPath(&report, 5, 0);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kSuspect);
  report.by[1] = {30, 30};
  report.paths[0].differences[1] = 30;
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kWrong);
  EXPECT_THAT(Judge(report).paths, ElementsAre(1));
  report.paths[1].differences[0] = 1;
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kSuspect);
  EXPECT_THAT(Judge(report).paths, ElementsAre(1));
  report.paths.pop_back();
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kVaries);
  EXPECT_THAT(Judge(report).paths, IsEmpty());
}

TEST(ShadowVerdict, APathThatDiffersMoreThanByItselfIsWrong) {
  ShadowReport report = Report({400, 400}, {40, 40});
  AddPath(&report, 400, 40);
  AddPath(&report, 200, 2);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kWrong);
  EXPECT_THAT(Judge(report).paths, ElementsAre(1));
  report.paths[1].differences[1] = 19;
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kVaries);
}

TEST(ShadowVerdict, WhatIsNotKnownOfPathsProvesNothing) {
  ShadowReport report = Report({400, 400}, {40, 40});
  AddPath(&report, 400, 40);
  AddPath(&report, 20, 0);
  ASSERT_EQ(Judge(report).judgement, ShadowJudgement::kWrong);
  // They may have differed there, too.
  report.unexamined = {0, 20, 0};
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kSuspect);
  report.unexamined = {};
  // They are of paths that have gone.
  report.paths[1].inherited = {19, 0, 0};
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kSuspect);
  report.paths[1].inherited = {20, 0, 0};
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kVaries);
  // If no paths are known, nothing is acquitted.
  report.unexamined = {400, 40, 0};
  report.paths.clear();
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kSuspect);
}

TEST(ShadowVerdict, AFunctionOfRandomNamesIsNotSaidToReadWhatIsMasked) {
  ShadowReport report = Report({300, 300}, {40, 40});
  for (int i = 0; i < 56; ++i) AddPath(&report, 1, 0);
  for (int i = 0; i < 8; ++i) AddPath(&report, 0, 1);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kSuspect);
}

TEST(ShadowVerdict, ManyPathsAreManyTests) {
  // Among 64 one is bound to be by chance what one alone would not be.
  ShadowReport report = Report({100, 100}, {100, 100});
  AddPath(&report, 14, 2);
  ASSERT_EQ(Judge(report).judgement, ShadowJudgement::kWrong);
  for (int i = 0; i < 63; ++i) AddPath(&report, 5, 5);
  EXPECT_NE(Judge(report).judgement, ShadowJudgement::kWrong);
}

TEST(ShadowVerdict, AControlOfOtherCompositesAcquitsNoMask) {
  ShadowReport report = Report({1000, 100}, {1000, 95});
  report.unrepeated = 1;
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kSuspect);
}

TEST(ShadowVerdict, AFunctionThatVariesIsSaidToWhereNoMaskCouldBeJudged) {
  ShadowVerdict verdict = Judge(Report({}, {49, 49}));
  EXPECT_EQ(verdict.judgement, ShadowJudgement::kVaries);
  EXPECT_EQ(verdict.about, ShadowBy::kExact);
  EXPECT_TRUE(verdict.bad());
  verdict = Judge(Report({299, 0}, {50, 1}));
  EXPECT_EQ(verdict.judgement, ShadowJudgement::kVaries);
  EXPECT_EQ(verdict.about, ShadowBy::kExact);
  verdict = Judge(Report({300, 0}, {50, 1}));
  EXPECT_EQ(verdict.judgement, ShadowJudgement::kNoDifference);
  EXPECT_EQ(verdict.about, ShadowBy::kMask);
  EXPECT_TRUE(verdict.varies);
  EXPECT_TRUE(verdict.bad());
}

TEST(ShadowVerdict, WithoutMasksExactRepeatsAreJudged) {
  ShadowReport report = Report({}, {400, 0});
  report.masks.clear();
  EXPECT_EQ(Judge(report).about, ShadowBy::kExact);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kNoDifference);
  report.by[1].differences = 1;
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kVaries);
}

}  // namespace
}  // namespace fncache::proxy::telemetry
