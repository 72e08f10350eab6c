// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/shadow_text.h"

#include <cstdint>
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

void AddPath(ShadowReport* report, const std::string& name, uint64_t by_mask,
             uint64_t exact) {
  ShadowReport::Path path;
  path.path = name;
  path.differences = {by_mask, exact, 0};
  path.first = path.last = report->since;
  report->paths.push_back(path);
}

TEST(ShadowText, TheTextSaysHowMuchWasTried) {
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
  EXPECT_THAT(text, HasSubstr("1 of 2 masks was not tried"));
  EXPECT_THAT(text, HasSubstr("1 of 4 hits differed whose entry is older"));
  EXPECT_THAT(text, HasSubstr("2 would have been hits"));
  EXPECT_THAT(text, Not(HasSubstr("do not mask")));
  EXPECT_EQ(ShadowText({}), "no function runs under mode: shadow\n");
}

TEST(ShadowText, TheTextNamesTheMasksAndPathsOfDifferences) {
  ShadowReport report = Report({10, 3}, {40, 0});
  AddPath(&report, "desired.composite.resource.status.x", 3, 0);
  const std::string text = ShadowText({report});
  EXPECT_THAT(text, HasSubstr("wrong: 3 of 10 hits by the masks would have "
                              "given another answer than the function; in 40 "
                              "exact repeats it gave the same answer"));
  EXPECT_THAT(text, HasSubstr("do not mask a.b: where it alone had changed, 3 "
                              "of 10 answers differed"));
  EXPECT_THAT(text, HasSubstr("desired.composite.resource.status.x"));
}

TEST(ShadowText, TheTextOfASuspicionSaysWhatIsMissing) {
  ShadowReport report = Report({304, 4}, {13, 1});
  std::string text = ShadowText({report});
  EXPECT_THAT(text, HasSubstr("function-a: suspect, do not use the masks yet: "
                              "4 of 304 hits by the masks would have given "
                              "another answer than the function, 1.32 %; 13 "
                              "exact repeats are not enough to tell whether it "
                              "varies by itself (1 differs; it takes 30)\n"));
  report.by[1] = {1, 1};
  EXPECT_THAT(ShadowText({report}),
              HasSubstr("; 1 exact repeat is not enough to tell"));
  report.by[1] = {};
  text = ShadowText({report});
  EXPECT_THAT(text, HasSubstr("; 0 exact repeats are not enough to tell"));
  EXPECT_THAT(text, HasSubstr("  suspected is a.b: where it alone had changed, "
                              "4 of 304 answers differed\n"));
  report = Report({300, 30}, {40, 4});
  report.unrepeated = 1;
  EXPECT_THAT(ShadowText({report}),
              HasSubstr("it varies by itself too, in 4 of 40 exact repeats, 10 "
                        "%, but 1 difference is of composites without an exact "
                        "repeat\n"));
  report.unrepeated = 0;
  AddPath(&report, "p.q", 1, 0);
  EXPECT_THAT(ShadowText({report}),
              HasSubstr(", but at p.q that is not certain yet: there 1 "
                        "and 0 differed\n"));
}

TEST(ShadowText, TheTextNamesTheMaskByWhichAVaryingFunctionIsWrong) {
  ShadowReport report = Report({400, 400}, {9, 9});
  report.masks.push_back({"e.f", 9, {300, 300}, {100, 100}});
  AddPath(&report, "status.now", 400, 9);
  AddPath(&report, "size", 300, 0);
  report.paths[0].alone = {300, 0, 100};
  report.paths[1].alone = {0, 0, 100};
  const std::string text = ShadowText({report});
  EXPECT_THAT(text,
              HasSubstr("wrong: 400 of 400 hits by the masks would have given "
                        "another answer than the function, 100 % of them; it "
                        "varies by itself too, in 9 of 9 exact repeats, 100 %, "
                        "but not as much at size: there 300 and 0 differed\n"
                        "  do not mask e.f: where it alone had changed, 100 of "
                        "100 answers differed at size\n"));
  EXPECT_THAT(text, Not(HasSubstr("do not mask a.b")));
}

TEST(ShadowText, TheTextOfAFunctionThatVaries) {
  ShadowReport report = Report({}, {49, 49});
  EXPECT_THAT(ShadowText({report}),
              HasSubstr("function-a: the function varies by itself: 49 of 49 "
                        "exact repeats gave another answer, 100 %; nothing hit "
                        "by the masks yet\n"));
  report = Report({20, 0}, {50, 1});
  EXPECT_THAT(
      ShadowText({report}),
      HasSubstr("; no difference yet in 20 hits by the masks, and fewer "
                "than 300 say little\n"));
  report = Report({300, 0}, {50, 1});
  EXPECT_THAT(ShadowText({report}),
              HasSubstr("(3/n, the rule of three); but it varies by itself "
                        "too, in 1 of 50 exact repeats, 2 %\n"));
  report.masks.clear();
  report.by = {};
  report.by[1] = {400, 1};
  EXPECT_THAT(ShadowText({report}), HasSubstr("varies by itself: 1 of 400"));
}

TEST(ShadowText, TheTextCountsOneAsOne) {
  ShadowReport report = Report({1, 1}, {1, 1});
  report.lookups = report.composites = report.mask_composites = 1;
  report.mask_masked_values = report.unread = report.uncompared = 1;
  report.unexamined = {1, 0, 0};
  report.by[2] = {1, 1};
  const std::string text = ShadowText({report});
  for (const char* const one :
       {"1 of 1 hit by the masks", "1 exact repeat is",
        "1 of 1 answer differed", "1 of 2 masks was not tried: what it hides",
        "1 of 1 hit differed", "1 would have been a hit,",
        "1 look-up of 1 composite\n",
        "1 hit of 1 composite, with 1 set of masked values; 1 differs\n",
        "the control: 1; 1 differs\n", "1 request was too large",
        "1 difference was not looked into"}) {
    EXPECT_THAT(text, HasSubstr(one));
  }
}

TEST(ShadowText, BeforeTheFirstCallThereIsNoTime) {
  ShadowReport report;
  report.function = "function-a";
  EXPECT_THAT(ShadowText({report}), HasSubstr("\n  no call yet\n"));
  EXPECT_THAT(ShadowText({report}), Not(HasSubstr("infinite")));
  const auto json = nlohmann::json::parse(ShadowJson({report}));
  EXPECT_TRUE(json["functions"][0]["since_unix_seconds"].is_null());
}

TEST(ShadowText, ThePageShowsTheText) {
  ShadowReport report = Report({341, 3}, {37, 0});
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
  AddPath(&report, "desired.resources.bucket.resource.spec.size", 3, 0);
  report.paths[0].last += absl::Hours(1);
  std::ifstream in(FNCACHE_SOURCE_DIR "/docs/shadow.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string text = ShadowText({report});
  EXPECT_NE(page.find(text), page.npos) << text;
}

TEST(ShadowText, TheJsonHasAllOfIt) {
  ShadowReport report = Report({100, 90}, {20, 1});
  report.function = "not \xff utf-8";
  AddPath(&report, "p", 90, 1);
  const auto json = nlohmann::json::parse(ShadowJson({report, Report({}, {})}));
  ASSERT_EQ(json["functions"].size(), 2);
  const auto& one = json["functions"][0];
  EXPECT_EQ(one["verdict"]["judgement"], "wrong");
  EXPECT_EQ(one["verdict"]["about"], "mask");
  EXPECT_EQ(one["by"]["mask"]["hits"], 100);
  EXPECT_EQ(one["verdict"]["paths"][0], "p");
  EXPECT_EQ(one["verdict"]["varies_by_itself"], true);
  EXPECT_EQ(one["by"]["exact"]["differences"], 1);
  EXPECT_EQ(one["masks"][0]["alone"]["differences"], 90);
  EXPECT_EQ(one["paths"][0]["differences"]["mask"], 90);
  EXPECT_EQ(one["paths"][0]["last_unix_seconds"], 1.8e9);
  EXPECT_EQ(one["composites"], 17);
  EXPECT_TRUE(json["functions"][1]["verdict"]["wrong_at_most"].is_null());
}

}  // namespace
}  // namespace fncache::proxy::telemetry
