// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/function_cards.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/telemetry/page_text.h"
#include "tests/proxy/telemetry/status_testing.h"

namespace fncache::proxy::telemetry {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Cards(const Status& status) {
  std::string out;
  AppendFunctionCards(status, &out);
  return out;
}

TEST(FunctionCardsTest, TheLastHourIsAChartOfOutcomes) {
  StatusSource source({"f", "idle"});
  source.Pass(absl::Minutes(1));
  for (int i = 0; i < 18; ++i) {
    source.Call(0, Outcome::kHit, absl::Microseconds(60));
  }
  source.Pass(absl::Minutes(2));
  source.Call(0, Outcome::kHit, absl::Microseconds(60));
  source.Call(0, Outcome::kMiss, absl::Seconds(1));
  const std::string page = Cards(source.Now());
  EXPECT_THAT(page, HasSubstr("aria-label=\"Calls in the last hour: 19 hit, 1 "
                              "miss\""));
  // 18 of 20 in the minute that began two minutes ago, 1 of each in the last.
  EXPECT_THAT(page,
              HasSubstr("<path class=\"o-hit\" d=\"M571 10.0h8v90.0h-8zM591 "
                        "95.0h8v5.0h-8z\"/>"));
  EXPECT_THAT(page,
              HasSubstr("<path class=\"o-miss\" d=\"M591 90.0h8v5.0h-8z\"/>"));
  EXPECT_THAT(page, Not(HasSubstr("class=\"o-stale\"")));
  EXPECT_THAT(page, HasSubstr("20 calls a minute"));
  EXPECT_THAT(page, HasSubstr("<title>08:01 18 hit</title>"));
  EXPECT_THAT(page, HasSubstr("<span>07:04</span>"));
  EXPECT_THAT(page, HasSubstr("<span>08:03 UTC</span>"));
  EXPECT_THAT(page.substr(page.find(">idle<")),
              HasSubstr("No calls in the last hour."));
}

TEST(FunctionCardsTest, BypassesAreToldWithTheirReasons) {
  StatusSource source({"f"});
  EXPECT_THAT(Cards(source.Now()), Not(HasSubstr("bypasses")));
  source.Bypass(0, cache::Reason::kShadow);
  for (int i = 0; i < 3; ++i) source.Bypass(0, cache::Reason::kOperation);
  EXPECT_THAT(Cards(source.Now()), HasSubstr("bypasses"));
  EXPECT_THAT(Cards(source.Now()), HasSubstr("operation 3, shadow 1"));
}

TEST(FunctionCardsTest, TuningIsShownWhereItIsOn) {
  StatusSource source({"f"});
  Status status = source.Now();
  status.functions[0].facts = FunctionFacts();
  EXPECT_THAT(Cards(status), Not(HasSubstr("<dt>tuning")));
  TuneReport tune;
  tune.figures.hits = 1234;
  tune.figures.questions = {20, 3, 1};
  tune.figures.keys_repeating = 7;
  tune.figures.keys_proven = 8;
  tune.saved = absl::Seconds(90);
  tune.question_time = absl::Seconds(2);
  status.functions[0].facts->tune = tune;
  EXPECT_THAT(
      Cards(status),
      HasSubstr(absl::StrCat(
          "<dt>tuning<dd>1,234 hits across drift, ", Saved(absl::Seconds(90)),
          " saved<small>keys: 8 proven, 7 repeating; 24 questions, ",
          Saved(absl::Seconds(2)), "</small>\n")));
  tune.figures.revoked_hits = 5;
  tune.figures.steps_read = 1;
  tune.figures.steps_vary = 2;
  status.functions[0].facts->tune = tune;
  const std::string page = Cards(status);
  EXPECT_THAT(page, HasSubstr("<span class=bad>5 revoked</span>"));
  EXPECT_THAT(page, HasSubstr("1 step reads drift, 2 steps vary</small>"));
}

TEST(FunctionCardsTest, OneMissAmongManyHitsCanBeSeen) {
  StatusSource source({"f"});
  for (int i = 0; i < 3'000; ++i) {
    source.Call(0, Outcome::kHit, absl::Microseconds(60));
  }
  source.Call(0, Outcome::kMiss, absl::Seconds(1));
  EXPECT_THAT(Cards(source.Now()),
              HasSubstr("<path class=\"o-miss\" d=\"M591 38.5h8v1.5h-8z\"/>"));
}

TEST(FunctionCardsTest, WithManyFunctionsMinutesDoNotSayTheirNumbers) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(absl::StrCat("f", i));
  StatusSource source(names);
  source.Call(0, Outcome::kHit, absl::Microseconds(60));
  EXPECT_THAT(Cards(source.Now()), Not(HasSubstr("<title>")));
}

TEST(FunctionCardsTest, TellsHowTheFunctionIs) {
  StatusSource source({"f"});
  std::string page = Cards(source.Now());
  EXPECT_THAT(page, HasSubstr("<dt>function<dd><code>dns:///f</code><small>no "
                              "call to it has failed</small>"));
  source.Call(0, Outcome::kMiss, absl::Seconds(1), 14);
  Status status = source.Now();
  status.functions[0].last_error.when = absl::FromUnixSeconds(1'800'000'000);
  status.functions[0].facts = FunctionFacts();
  status.functions[0].facts->upstream_connections = 1;
  status.functions[0].facts->callers_connections = 2;
  page = Cards(status);
  EXPECT_THAT(page, HasSubstr("</code>, 1 connection<small>last error: "
                              "UNAVAILABLE, 2027-01-15 08:00:00 UTC</small>"));
  EXPECT_THAT(page, HasSubstr("<dt>callers<dd>2 connections, 0 calls in "
                              "flight"));
  source.instruments.function(0).Unreachable(
      source.clock.Now() - absl::Seconds(61), "no such host");
  EXPECT_THAT(Cards(source.Now()),
              HasSubstr("<span class=bad>cannot be reached, for 1m 1s: no such "
                        "host</span>"));
}

TEST(FunctionCardsTest, CallersLeavingAreNoErrorOfTheFunction) {
  StatusSource source({"f"});
  source.Call(0, Outcome::kMiss, absl::Seconds(1), 1);
  source.Call(0, Outcome::kMiss, absl::Seconds(1), 12);
  EXPECT_THAT(Cards(source.Now()), HasSubstr("no call to it has failed"));
}

TEST(FunctionCardsTest, TellsFlightsAndThoseWhoWait) {
  StatusSource source({"f"});
  const FunctionInstruments& f = source.instruments.function(0);
  f.FlightOpened();
  f.CallerJoined();
  f.CallerJoined();
  EXPECT_THAT(Cards(source.Now()),
              HasSubstr("<dt>flights<dd>1 open, 2 callers wait there\n"));
  f.ReleasedRunning(1);
  f.ReleasedWaiting(3);
  EXPECT_THAT(Cards(source.Now()),
              HasSubstr("; released from them 1 asks the function, 3 wait to"));
}

TEST(FunctionCardsTest, TellsTheMostFrequentReasonsOfMisses) {
  StatusSource source({"f"});
  EXPECT_THAT(Cards(source.Now()), HasSubstr("<dd>none since the start"));
  const auto miss = [&](insight::trace::Reason why, int times) {
    for (int i = 0; i < times; ++i) {
      const FunctionInstruments& f = source.instruments.function(0);
      f.Begin(Method::kV1);
      f.End({Method::kV1, Outcome::kMiss, 0, true, absl::Seconds(1), why});
    }
  };
  miss(insight::trace::Reason::kNew, 2);
  miss(insight::trace::Reason::kExpired, 1);
  miss(insight::trace::Reason::kChanged, 5);
  miss(insight::trace::Reason::kPurged, 3);
  Status status = source.Now();
  status.functions[0].miss_paths = {{"context.now", 4}};
  EXPECT_THAT(Cards(status),
              HasSubstr("<dd>changed 5, purged 3, new 2<small>what changed "
                        "most: <code>context.now</code></small>"));
}

TEST(FunctionCardsTest, TellsRepeatsAndWhatWouldSaveThem) {
  using insight::explain::RepeatOver;
  StatusSource source({"f"});
  EXPECT_THAT(Cards(source.Now()), Not(HasSubstr("repeats")));
  const auto run = [&](RepeatOver over, int times) {
    for (int i = 0; i < times; ++i) {
      source.instruments.function(0).RecordExamined(over);
    }
  };
  run(RepeatOver::kNone, 1);
  EXPECT_THAT(Cards(source.Now()),
              HasSubstr("<dt>repeats<dd>of 1 run none gave the answer of "
                        "before\n"));
  run(RepeatOver::kNone, 12099);
  run(RepeatOver::kDrift, 24800);
  run(RepeatOver::kTime, 4300);
  EXPECT_THAT(Cards(source.Now()),
              HasSubstr("<dd>of 41,200 runs 29,100 gave the answer of before: "
                        "24,800 over drift only (<code>tune: on</code>), 4,300 "
                        "when the TTL was over (<code>ttl.min</code>)\n"));
  run(RepeatOver::kOther, 7);
  Status status = source.Now();
  status.functions[0].unread = {{"observed.a", "@times", 7},
                                {"observed.b", "@times", 5},
                                {"context.<now>", "context.<now>", 3}};
  EXPECT_THAT(Cards(status),
              HasSubstr(", 7 over other paths, or the answer was gone<small>"
                        "what changed besides, as masks (your promise): <code>"
                        "@times</code>, <code>context.&lt;now&gt;</code>"
                        "</small>"));
}

TEST(FunctionCardsTest, TellsMasksAndWhetherTheyMatch) {
  StatusSource source({"f"});
  Status status = source.Now();
  status.functions[0].facts = FunctionFacts();
  EXPECT_THAT(Cards(status), Not(HasSubstr("<dt>masks")));
  status.functions[0].facts->masks = {
      {"@versions", 12, 5}, {"context.now", 1, 1}, {"context.b", 1, 0}};
  EXPECT_THAT(
      Cards(status),
      HasSubstr("<dd><code>@versions</code> in use, 5 of 12 paths<br><code>"
                "context.now</code> in use<br><code>context.b</code> <span "
                "class=warn>has matched nothing yet</span>"));
}

TEST(FunctionCardsTest, TellsBansAndWhatElseThereIs) {
  StatusSource source({"f"});
  Status status = source.Now();
  status.functions[0].facts = FunctionFacts();
  EXPECT_THAT(Cards(status), HasSubstr("<dt>bans<dd>none"));
  status.functions[0].facts->bans = {
      {"everything", absl::FromUnixSeconds(1'800'000'000), false},
      {"generation 2", absl::FromUnixSeconds(1'800'000'060), true}};
  status.functions[0].facts->more = {{"rehearsal", "a & b", true},
                                     {"stale", "1 hit", false}};
  const std::string page = Cards(status);
  EXPECT_THAT(page,
              HasSubstr("<dd>everything: what began until 2027-01-15 08:00:00 "
                        "UTC is gone<br>generation 2: what began until "
                        "2027-01-15 08:01:00 UTC is stale"));
  EXPECT_THAT(page, HasSubstr("<dt>rehearsal<dd><span class=bad>a &amp; b"));
  EXPECT_THAT(page, HasSubstr("<dt>stale<dd>1 hit\n"));
}

TEST(FunctionCardsTest, WhatIsOffAndCountedNothingHasNoRow) {
  StatusSource source({"f"});
  Status status = source.Now();
  status.functions[0].facts = FunctionFacts();
  const std::string page = Cards(status);
  for (const char* const row :
       {"stale hits", "refreshes", "abandoned", "rehearsed"}) {
    EXPECT_THAT(page, Not(HasSubstr(absl::StrCat("<dt>", row, "<dd>"))));
  }
}

TEST(FunctionCardsTest, WhatIsOnHasARowBeforeItCounts) {
  StatusSource source({"f"});
  Status status = source.Now();
  status.functions[0].facts = FunctionFacts();
  status.functions[0].facts->serves_stale = true;
  EXPECT_THAT(Cards(status), HasSubstr("<dt>stale hits<dd>0\n"));
  EXPECT_THAT(Cards(status), Not(HasSubstr("<dt>refreshes")));
  status.functions[0].facts->refreshes_behind = true;
  status.functions[0].facts->finishes_abandoned = true;
  EXPECT_THAT(Cards(status),
              HasSubstr("<dt>refreshes<dd>0 running, 0 done\n"
                        "<dt>abandoned<dd>0 running, 0 continued, 0 stored\n"));
}

TEST(FunctionCardsTest, TellsOfOldAnswers) {
  StatusSource source({"f"});
  const FunctionInstruments& f = source.instruments.function(0);
  for (int i = 0; i < 3; ++i) {
    source.Call(0, Outcome::kStaleHit, absl::Microseconds(60));
  }
  f.RecordServedOver(14);
  f.RecordServedOver(14);
  f.RecordServedOver(4);
  f.Superseded();
  EXPECT_THAT(
      Cards(source.Now()),
      HasSubstr("<dt>stale hits<dd>3, of them <span class=bad>3 instead of "
                "errors (3 in the last minute)</span><small>served over: "
                "DEADLINE_EXCEEDED 1, UNAVAILABLE 2</small><small>dropped for "
                "answers that may not be stored: 1</small>\n"));
  // Past errors are no alarm.
  source.Pass(absl::Minutes(2));
  EXPECT_THAT(Cards(source.Now()),
              HasSubstr("<dd>3, of them 3 instead of errors<small>"));
}

TEST(FunctionCardsTest, TellsOfCallsWithoutACaller) {
  StatusSource source({"f"});
  const FunctionInstruments& f = source.instruments.function(0);
  for (int i = 0; i < 6; ++i) f.RefreshBegun();
  for (int i = 0; i < 5; ++i) f.RefreshEnded();
  f.RefreshFailed();
  f.RefreshFailed();
  source.Pass(absl::Minutes(2));
  f.RefreshRefused();
  f.CallAbandoned();
  f.CallAbandoned();
  f.AbandonedRunning(1);
  f.AbandonedFinished();
  f.AbandonedRefused();
  Status status = source.Now();
  status.functions[0].facts = FunctionFacts();
  status.functions[0].facts->backing_off = 1;
  EXPECT_THAT(
      Cards(status),
      HasSubstr("<dt>refreshes<dd>1 running, 3 done, 2 failed, <span "
                "class=warn>1 key backing off</span>, <span class=bad>1 "
                "refused (1 in the last minute)</span>\n<dt>abandoned<dd>1 "
                "running, 2 continued, 1 stored, <span class=bad>1 refused "
                "(1 in the last minute)</span>\n"));
}

TEST(FunctionCardsTest, TellsWhatARehearsalCompared) {
  StatusSource source({"f"});
  const FunctionInstruments& f = source.instruments.function(0);
  f.RecordShadowLookup();
  EXPECT_THAT(Cards(source.Now()),
              HasSubstr("<dt>rehearsed<dd>1 look-up<small>would have hit: "
                        "none</small>"));
  f.RecordShadowLookup();
  f.RecordShadowHit(ShadowBy::kMask, false);
  f.RecordShadowHit(ShadowBy::kMask, true);
  f.RecordShadowHit(ShadowBy::kExact, false);
  f.RecordShadowUncompared();
  EXPECT_THAT(Cards(source.Now()),
              HasSubstr("<dd>2 look-ups<small>would have hit: mask 2 (<span "
                        "class=bad>1 differ</span>), exact 1 (0 differ), 1 not "
                        "compared</small>"));
}

TEST(FunctionCardsTest, NothingBreaksOutOfItsPlace) {
  const std::string evil = "</dl><script>alert(\"1\")</script>&'";
  StatusSource source({evil});
  source.Call(0, Outcome::kMiss, absl::Seconds(1), 14);
  source.instruments.function(0).Unreachable(source.clock.Now(), evil);
  Status status = source.Now();
  status.functions[0].upstream = evil;
  status.functions[0].miss_paths = {{evil, 1}};
  status.functions[0].facts = FunctionFacts();
  status.functions[0].facts->masks = {{evil, 1, 0}};
  status.functions[0].facts->bans = {{evil, source.clock.Now(), false}};
  status.functions[0].facts->more = {{evil, evil, true}};
  const std::string page = Cards(status);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("alert(\"")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
}

}  // namespace
}  // namespace fncache::proxy::telemetry
