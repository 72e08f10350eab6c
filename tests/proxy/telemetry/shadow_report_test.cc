// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/shadow_report.h"

#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace fncache::proxy::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ShadowReport Report(ShadowReport::Count mask, ShadowReport::Count exact) {
  ShadowReport report;
  report.function = "function-a";
  report.since = absl::FromUnixSeconds(1'800'000'000);
  report.lookups = 1000;
  report.by[0] = mask;
  report.by[1] = exact;
  report.composites = 17;
  report.mask_composites = 12;
  report.mask_masked_values = 99;
  report.masks.push_back({"a.b", 5, mask, mask});
  report.masks.push_back({"c.d", 1, {}, {}});
  return report;
}

TEST(ShadowReport, TheRuleOfThreeBoundsWhatWasNotSeen) {
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
}

TEST(ShadowReport, OneDifferenceIsWrongUnlessTheControlDiffersAsMuch) {
  EXPECT_EQ(Judge(Report({1, 1}, {})).judgement, ShadowJudgement::kWrong);
  EXPECT_EQ(Judge(Report({5000, 1}, {5000, 0})).judgement,
            ShadowJudgement::kWrong);
  EXPECT_EQ(Judge(Report({1000, 100}, {1000, 95})).judgement,
            ShadowJudgement::kVaries);
  EXPECT_EQ(Judge(Report({1000, 200}, {1000, 95})).judgement,
            ShadowJudgement::kWrong);
  EXPECT_EQ(Judge(Report({10, 10}, {10, 10})).judgement,
            ShadowJudgement::kVaries);
}

TEST(ShadowReport, TheUpperBoundIsWilsons) {
  // 10 of 100: 0.0552 to 0.1744.
  EXPECT_NEAR(*Judge(Report({100, 10}, {})).at_most, 0.1744, 0.0001);
}

TEST(ShadowReport, WithoutMasksExactRepeatsAreJudged) {
  ShadowReport report = Report({}, {400, 0});
  report.masks.clear();
  EXPECT_EQ(Judge(report).about, ShadowBy::kExact);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kNoDifference);
  report.by[1].differences = 1;
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kVaries);
  EXPECT_THAT(ShadowText({report}), HasSubstr("varies by itself: 1 of 400"));
}

TEST(ShadowReport, TheTextSaysHowMuchWasTried) {
  ShadowReport report = Report({640, 0}, {20, 0});
  report.by[2] = {4, 1};
  report.uncompared = 2;
  const std::string text = ShadowText({report});
  EXPECT_THAT(text, HasSubstr("function-a: no difference in 640 hits by the "
                              "masks: at most 0.469 % of them wrong, at 95 % "
                              "confidence (3/n, the rule of three)"));
  EXPECT_THAT(text, HasSubstr("1000 look-ups of 17 composites"));
  EXPECT_THAT(text, HasSubstr("640 hits of 12 composites, with 99 different "
                              "sets of masked values; 0 differ"));
  EXPECT_THAT(text, HasSubstr("1 of 2 masks were not tried"));
  EXPECT_THAT(text, HasSubstr("1 of 4 hits differed whose entry is older"));
  EXPECT_THAT(text, HasSubstr("2 would have been hits"));
  EXPECT_THAT(text, Not(HasSubstr("do not mask")));
  EXPECT_EQ(ShadowText({}), "no function runs under mode: shadow\n");
}

TEST(ShadowReport, TheTextNamesTheMasksAndPathsOfDifferences) {
  ShadowReport report = Report({10, 3}, {20, 0});
  report.paths.push_back({"desired.composite.resource.status.x",
                          {3, 0, 0},
                          report.since,
                          report.since});
  const std::string text = ShadowText({report});
  EXPECT_THAT(text, HasSubstr("wrong: 3 of 10 hits by the masks would have "
                              "given another answer than the function; in 20 "
                              "exact repeats it gave the same answer"));
  EXPECT_THAT(text, HasSubstr("do not mask a.b: where it alone had changed, 3 "
                              "of 10 answers differed"));
  EXPECT_THAT(text, HasSubstr("desired.composite.resource.status.x"));
}

TEST(ShadowReport, ThePageShowsTheText) {
  ShadowReport report = Report({341, 3}, {27, 0});
  report.function = "function-buckets";
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, "2026-11-25T08:00:00Z",
                              &report.since, nullptr));
  report.lookups = 412;
  report.masks = {
      {"observed.composite.resource.metadata.labels", 7, {44, 3}, {41, 3}},
      {"observed.composite.resource.metadata.resourceVersion",
       96,
       {300, 0},
       {297, 0}}};
  report.paths.push_back({"desired.resources.bucket.resource.spec.size",
                          {3, 0, 0},
                          report.since,
                          report.since + absl::Hours(1)});
  std::ifstream in(FNCACHE_SOURCE_DIR "/docs/hit-rates.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string text = ShadowText({report});
  EXPECT_NE(page.find(text), page.npos) << text;
}

TEST(ShadowReport, TheJsonHasAllOfIt) {
  ShadowReport report = Report({10, 3}, {20, 1});
  report.function = "not \xff utf-8";
  report.paths.push_back({"p", {3, 1, 0}, report.since, report.since});
  const auto json = nlohmann::json::parse(ShadowJson({report, Report({}, {})}));
  ASSERT_EQ(json["functions"].size(), 2);
  const auto& one = json["functions"][0];
  EXPECT_EQ(one["verdict"]["judgement"], "wrong");
  EXPECT_EQ(one["verdict"]["about"], "mask");
  EXPECT_EQ(one["by"]["mask"]["hits"], 10);
  EXPECT_EQ(one["by"]["exact"]["differences"], 1);
  EXPECT_EQ(one["masks"][0]["alone"]["differences"], 3);
  EXPECT_EQ(one["paths"][0]["differences"]["mask"], 3);
  EXPECT_EQ(one["paths"][0]["last_unix_seconds"], 1.8e9);
  EXPECT_EQ(one["composites"], 17);
  EXPECT_TRUE(json["functions"][1]["verdict"]["wrong_at_most"].is_null());
}

}  // namespace
}  // namespace fncache::proxy::telemetry
