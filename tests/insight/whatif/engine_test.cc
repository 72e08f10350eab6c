// SPDX-License-Identifier: Apache-2.0
#include "insight/whatif/engine.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/key/mask.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "insight/trace/writer.h"
#include "insight/whatif/info.h"
#include "insight/whatif/recording.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.pb.h"
#include "tests/common/temp_dir.h"

namespace fncache::insight::whatif {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using ::fncache::testing::TempDir;
using trace::TracedCall;
using TracedOutcome = trace::Outcome;

constexpr absl::Duration kTtl = absl::Seconds(60);
constexpr absl::Duration kCost = absl::Milliseconds(10);

absl::Time At(double seconds) {
  return absl::FromUnixSeconds(1'800'000'000) + absl::Seconds(seconds);
}

// A trace, call by call, of a function behind no cache.
class Recorder {
 public:
  explicit Recorder(trace::Level level = trace::Level::kKeys) {
    trace::TraceOptions options;
    options.dir = dir_.path() + "/t";
    options.level = level;
    options.writer = "test";
    options.queue_bytes = 1 << 30;
    auto writer = trace::TraceWriter::Create(options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }

  TracedCall Call(const std::string& composite, double at, uint64_t key) {
    TracedCall call;
    call.arrived = At(at);
    call.function = "f";
    call.outcome = TracedOutcome::kMiss;
    call.key = cache::key::Key{key * 0x9e3779b97f4a7c15, key};
    call.composite.kind = "XApp";
    call.composite.name = composite;
    call.function_ttl = call.told_ttl = kTtl;
    call.cost = call.latency = kCost;
    call.response_bytes = 1000;
    call.step = "s";
    call.pipeline = ++pipelines_;
    call.trigger = "event";
    return call;
  }
  void Write(TracedCall call, const std::string& request = "") {
    trace::TraceWriter::Messages messages;
    messages.held = request.size();
    if (!request.empty()) messages.request = [request] { return request; };
    writer_->Write(std::move(call), std::move(messages));
  }
  // A timer's pipelines every `kTtl`, from `from` on.
  void Timers(const std::string& composite, double from, int count,
              uint64_t key) {
    for (int i = 0; i < count; ++i) {
      TracedCall call =
          Call(composite, from + i * absl::ToDoubleSeconds(kTtl + kCost), key);
      if (i > 0) call.trigger = "timer";
      Write(std::move(call));
    }
  }

  Recording Done(const std::vector<cache::key::MaskSet>& masks = {}) {
    writer_.reset();
    auto reader = trace::TraceReader::Open(dir_.path() + "/t");
    EXPECT_TRUE(reader.ok()) << reader.status();
    auto recording = Read(reader->get(), masks);
    EXPECT_TRUE(recording.ok()) << recording.status();
    return *std::move(recording);
  }

 private:
  const TempDir dir_;
  std::unique_ptr<trace::TraceWriter> writer_;
  uint64_t pipelines_ = 0;
};

Outcome Play(const Recording& recording, const CacheSettings& settings,
             Arrivals arrivals = Arrivals::kRecorded) {
  Variant variant;
  variant.settings = settings;
  ReplayOptions options;
  options.arrivals = arrivals;
  return Replay(recording, variant, options);
}

TEST(Replay, AnEntryIsServedForItsLifetimeLessTheMargin) {
  Recorder recorder;
  recorder.Write(recorder.Call("a", 0, 1));
  recorder.Write(recorder.Call("a", 53, 1));  // in its time
  recorder.Write(recorder.Call("a", 55, 1));  // in the margin: filled again
  recorder.Write(recorder.Call("a", 56, 1));  // by the second fill
  recorder.Write(recorder.Call("a", 57, 2));  // another key
  const Recording recording = recorder.Done();
  const Outcome outcome = Play(recording, {});
  EXPECT_EQ(outcome.all.hits, 2u);
  EXPECT_EQ(outcome.all.misses, 3u);
  EXPECT_EQ(outcome.all.function_runs, 3u);
  EXPECT_NEAR(outcome.all.function_seconds, 0.03, 1e-9);
  EXPECT_DOUBLE_EQ(*outcome.all.HitRate(), 0.4);
  ASSERT_TRUE(outcome.ages.has_value());
  EXPECT_NEAR(outcome.ages->max, 53, 0.1);

  CacheSettings settings;
  settings.defaults.policy.ttl_margin = 0;
  EXPECT_EQ(Play(recording, settings).all.hits, 3u);
  settings.defaults.policy.ttl_max = absl::Seconds(1);
  EXPECT_EQ(Play(recording, settings).all.hits, 1u);
  settings.defaults.policy.ttl_max = absl::Hours(1);
  settings.defaults.policy.ttl_override = absl::Seconds(10);
  EXPECT_EQ(Play(recording, settings).all.hits, 2u);
  settings.defaults.policy.mode = cache::Mode::kOff;
  const Outcome off = Play(recording, settings);
  EXPECT_EQ(off.all.function_runs, 5u);
  EXPECT_FALSE(off.all.HitRate().has_value());
}

TEST(Replay, AStaleHitIsRefreshedBehind) {
  Recorder recorder;
  recorder.Write(recorder.Call("a", 0, 1));
  recorder.Write(recorder.Call("a", 55, 1));      // past its time
  recorder.Write(recorder.Call("a", 55.001, 1));  // while it is refreshed
  recorder.Write(recorder.Call("a", 56, 1));      // by the refresh
  recorder.Write(recorder.Call("a", 300, 1));     // past the window
  const Recording recording = recorder.Done();
  CacheSettings settings;
  settings.defaults.policy.stale_while_revalidate = absl::Seconds(60);
  const Outcome outcome = Play(recording, settings);
  EXPECT_EQ(outcome.all.misses, 2u);
  EXPECT_EQ(outcome.all.stale, 2u);
  EXPECT_EQ(outcome.all.hits, 1u);
  EXPECT_EQ(outcome.all.collapsed, 0u);
  EXPECT_EQ(outcome.all.function_runs, 3u);
  EXPECT_DOUBLE_EQ(*outcome.all.HitRate(), 0.6);
}

TEST(Replay, AnAnswerThatIsNotStoredEndsTheOldOne) {
  Recorder recorder;
  recorder.Write(recorder.Call("a", 0, 1));
  TracedCall fatal = recorder.Call("a", 55, 1);  // answer to the refresh
  fatal.fatal = true;
  recorder.Write(std::move(fatal));
  recorder.Write(recorder.Call("a", 58, 1));
  const Recording recording = recorder.Done();
  CacheSettings settings;
  settings.defaults.policy.stale_while_revalidate = absl::Hours(1);
  const Outcome outcome = Play(recording, settings);
  EXPECT_EQ(outcome.all.stale, 1u);
  EXPECT_EQ(outcome.all.misses, 2u);
  EXPECT_EQ(outcome.all.function_runs, 3u);
}

TEST(Replay, ARefreshThatFailsLeavesTheOldOne) {
  Recorder recorder;
  recorder.Write(recorder.Call("a", 0, 1));
  TracedCall failed = recorder.Call("a", 55, 1);
  failed.status = 14;  // UNAVAILABLE
  recorder.Write(std::move(failed));
  recorder.Write(recorder.Call("a", 55.5, 1));  // not tried again yet
  recorder.Write(recorder.Call("a", 58, 1));
  const Recording recording = recorder.Done();
  CacheSettings settings;
  settings.defaults.policy.stale_while_revalidate = absl::Hours(1);
  const Outcome outcome = Play(recording, settings);
  EXPECT_EQ(outcome.all.stale, 3u);
  EXPECT_EQ(outcome.all.misses, 1u);
  EXPECT_EQ(outcome.all.function_runs, 3u);
}

TEST(Replay, AtMostSixteenRefreshesRunAtOnce) {
  Recorder recorder;
  for (const double at : {0, 55}) {
    for (uint64_t key = 1; key <= 17; ++key) {
      recorder.Write(recorder.Call(absl::StrCat("x", key), at, key));
    }
  }
  const Recording recording = recorder.Done();
  CacheSettings settings;
  settings.defaults.policy.stale_while_revalidate = absl::Hours(1);
  const Outcome outcome = Play(recording, settings);
  EXPECT_EQ(outcome.all.stale, 17u);
  EXPECT_EQ(outcome.all.function_runs, 17u + 16u);
}

// The cost that docs/hit-rates.md states.
TEST(Replay, StaleServingTakesTwoReconcilesForEachRun) {
  Recorder recorder;
  recorder.Timers("a", 0, 300, 1);
  const Recording recording = recorder.Done();
  CacheSettings settings;
  settings.defaults.policy.stale_while_revalidate = absl::Hours(1);
  const Outcome outcome = Play(recording, settings, Arrivals::kModel);
  EXPECT_EQ(outcome.all.misses, 1u);
  EXPECT_GT(outcome.all.function_runs, 200u);
  EXPECT_NEAR(static_cast<double>(outcome.pipelines) /
                  static_cast<double>(outcome.all.function_runs),
              2.0, 0.1);
  settings.defaults.policy.stale_while_revalidate = absl::ZeroDuration();
  const Outcome without = Play(recording, settings, Arrivals::kModel);
  EXPECT_NEAR(static_cast<double>(without.pipelines) /
                  static_cast<double>(without.all.function_runs),
              1.0, 0.01);
}

TEST(Replay, SettingsOfOneFunctionAreItsOwn) {
  Recorder recorder;
  for (const char* function : {"f", "g"}) {
    for (int i = 0; i < 2; ++i) {
      TracedCall call = recorder.Call("a", i, function[0]);
      call.function = function;
      recorder.Write(std::move(call));
    }
  }
  const Recording recording = recorder.Done();
  CacheSettings settings;
  settings.functions["g"].policy.ttl_max = absl::Milliseconds(1);
  const Outcome outcome = Play(recording, settings);
  ASSERT_EQ(outcome.series.size(), 2u);
  EXPECT_EQ(outcome.series[0].hits, 1u);
  EXPECT_EQ(outcome.series[1].hits, 0u);
}

TEST(Replay, WhatIsNotToBeStoredIsNot) {
  Recorder recorder;
  for (int i = 0; i < 2; ++i) {
    TracedCall fatal = recorder.Call("a", i, 1);
    fatal.fatal = true;
    recorder.Write(std::move(fatal));
    TracedCall failed = recorder.Call("b", i, 2);
    failed.status = 14;
    recorder.Write(std::move(failed));
    TracedCall silent = recorder.Call("c", i, 3);
    silent.function_ttl = silent.told_ttl = absl::nullopt;
    recorder.Write(std::move(silent));
    TracedCall large = recorder.Call("d", i, 4);
    large.response_bytes = 100'000;
    recorder.Write(std::move(large));
  }
  const Recording recording = recorder.Done();
  CacheSettings settings;
  settings.defaults.policy.max_entry_bytes = 50'000;
  EXPECT_EQ(Play(recording, settings).all.hits, 0u);
  settings.defaults.policy.store_fatal = true;
  settings.defaults.policy.ttl_default = absl::Minutes(1);
  settings.defaults.policy.max_entry_bytes = 200'000;
  EXPECT_EQ(Play(recording, settings).all.hits, 3u);  // all but the failed one
}

TEST(Replay, CallsOfOneKeyAtOnceAreCollapsed) {
  Recorder recorder;
  for (int i = 0; i < 4; ++i) {
    recorder.Write(recorder.Call(absl::StrCat("c", i), 0.001 * i, 1));
  }
  const Recording recording = recorder.Done();
  const Outcome outcome = Play(recording, {});
  EXPECT_EQ(outcome.all.misses, 1u);
  EXPECT_EQ(outcome.all.collapsed, 3u);
  // Answers that are not stored are not shared.
  CacheSettings settings;
  settings.defaults.policy.max_entry_bytes = 10;
  const Outcome alone = Play(recording, settings);
  EXPECT_EQ(alone.all.misses, 4u);
  EXPECT_EQ(alone.all.collapsed, 0u);
}

TEST(Replay, MemoryThatIsTooSmallEvicts) {
  Recorder recorder;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t key = 1; key <= 200; ++key) {
      recorder.Write(
          recorder.Call(absl::StrCat("c", key), 20 * round + 0.05 * key, key));
    }
  }
  const Recording recording = recorder.Done();
  CacheSettings settings;
  const Outcome large = Play(recording, settings);
  EXPECT_EQ(large.all.hits, 200u);
  EXPECT_EQ(large.evictions, 0u);
  settings.memory = 64 << 10;
  const Outcome small = Play(recording, settings);
  EXPECT_LT(small.all.hits, 100u);
  EXPECT_GT(small.evictions, 100u);
}

TEST(Replay, AShorterTtlLetsTimersComeMoreOften) {
  Recorder recorder;
  recorder.Timers("a", 0, 11, 1);
  const Recording recording = recorder.Done();
  EXPECT_TRUE(recording.pipelines[1].timer);
  EXPECT_EQ(Play(recording, {}, Arrivals::kModel).pipelines, 11u);

  CacheSettings settings;
  settings.defaults.policy.requeue_ttl = {cache::RequeueTtl::Kind::kFixed,
                                          absl::Seconds(30)};
  const Outcome twice = Play(recording, settings, Arrivals::kModel);
  EXPECT_NEAR(static_cast<double>(twice.pipelines), 21, 1);
  EXPECT_NEAR(*twice.all.HitRate(), 0.5, 0.05);
  // As recorded nothing comes otherwise.
  EXPECT_EQ(Play(recording, settings).pipelines, 11u);

  settings = CacheSettings();
  settings.defaults.policy.ttl_override = absl::Minutes(5);
  const Outcome longer = Play(recording, settings, Arrivals::kModel);
  EXPECT_NEAR(static_cast<double>(longer.pipelines), 3, 1);
}

TEST(Replay, TtlsOfNothingEnd) {
  Recorder recorder;
  recorder.Timers("a", 0, 50, 1);
  CacheSettings settings;
  settings.defaults.policy.requeue_ttl = {cache::RequeueTtl::Kind::kFixed,
                                          absl::Nanoseconds(1)};
  EXPECT_TRUE(Play(recorder.Done(), settings, Arrivals::kModel).cut);
}

TEST(Replay, TtlsBeyondAllTimesAreOverNever) {
  Recorder recorder;
  recorder.Timers("a", 0, 5, 1);
  CacheSettings settings;
  settings.defaults.policy.ttl_max = absl::ZeroDuration();
  settings.defaults.policy.ttl_override = cache::PolicyOptions::MaxDuration();
  EXPECT_EQ(Play(recorder.Done(), settings, Arrivals::kModel).pipelines, 1u);
}

TEST(Replay, EventsStayWhereTheyWereAndTakeTheTimersPlace) {
  Recorder recorder;
  recorder.Timers("a", 0, 2, 1);
  recorder.Write(recorder.Call("a", 90, 2));  // an event, 30 s after the timer
  TracedCall last = recorder.Call("a", 150.1, 2);
  last.trigger = "timer";
  recorder.Write(std::move(last));
  const Recording recording = recorder.Done();
  CacheSettings settings;
  settings.defaults.policy.ttl_min = absl::Hours(1);
  settings.defaults.policy.requeue_ttl.kind =
      cache::RequeueTtl::Kind::kOriginal;
  const Outcome outcome = Play(recording, settings, Arrivals::kModel);
  EXPECT_EQ(outcome.pipelines, 4u);
  EXPECT_EQ(outcome.all.misses, 2u);  // one for each key
  EXPECT_EQ(outcome.all.hits, 2u);
}

TEST(Replay, OnlyWhatALoadMeasuredCounts) {
  Recorder recorder;
  TracedCall settle = recorder.Call("a", 0, 1);
  settle.phase = "settle";
  recorder.Write(std::move(settle));
  TracedCall measured = recorder.Call("a", 10, 1);
  measured.phase = "measure";
  recorder.Write(std::move(measured));
  const Recording recording = recorder.Done();
  const Outcome outcome = Play(recording, {});
  EXPECT_EQ(outcome.calls, 2u);
  EXPECT_EQ(outcome.all.hits, 1u);
  EXPECT_EQ(outcome.all.misses, 0u);
  EXPECT_EQ(Measured(recording, false).all.misses, 1u);
}

TEST(Recording, PipelinesAreFoundWhereNobodyNamedThem) {
  Recorder recorder;
  for (const double at : {0.0, 60.1, 75.0}) {
    for (int step = 0; step < 2; ++step) {
      TracedCall call = recorder.Call("a", at + 0.02 * step, 1 + step);
      call.pipeline = 0;
      call.trigger = "";
      recorder.Write(std::move(call));
    }
  }
  const Recording recording = recorder.Done();
  ASSERT_EQ(recording.pipelines.size(), 3u);
  EXPECT_FALSE(recording.pipelines[0].timer);
  EXPECT_TRUE(recording.pipelines[1].timer);
  EXPECT_FALSE(recording.pipelines[2].timer);
  for (const Pipeline& pipeline : recording.pipelines) {
    EXPECT_EQ(pipeline.calls, 2u);
  }
}

TEST(Recording, WhatHitsDoNotTellIsTakenFromTheCallsBesideThem) {
  Recorder recorder;
  TracedCall hit = recorder.Call("a", 0, 1);
  hit.outcome = TracedOutcome::kHit;
  hit.function_ttl = absl::nullopt;
  hit.told_ttl = absl::Seconds(7);
  hit.cost = absl::ZeroDuration();
  recorder.Write(std::move(hit));
  recorder.Write(recorder.Call("a", 60, 1));
  const Recording recording = recorder.Done();
  EXPECT_EQ(recording.calls[0].ttl, absl::ToInt64Nanoseconds(kTtl));
  EXPECT_EQ(recording.calls[0].cost, absl::ToInt64Microseconds(kCost));
}

std::string Request(const std::string& name, int version, int region) {
  fn::RunFunctionRequest request;
  const auto status = google::protobuf::util::JsonStringToMessage(
      absl::StrCat(
          R"({"observed": {"composite": {"resource": {"apiVersion": "e.org/v1",
          "kind": "XApp", "metadata": {"name": ")",
          name, R"(", "resourceVersion": ")", version,
          R"("}, "spec": {"region": "r)", region, R"("}}}}})"),
      &request);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return request.SerializeAsString();
}

TEST(Replay, MasksMakeKeysAnew) {
  const auto versions = cache::key::MaskSet::Parse({"@versions"});
  ASSERT_TRUE(versions.ok());
  Recorder recorder(trace::Level::kPaths);
  for (int i = 0; i < 10; ++i) {
    for (const char* name : {"a", "b"}) {
      // Each has a version of its own; the region changes once.
      recorder.Write(recorder.Call(name, i, 1 + i),
                     Request(name, i, i < 5 ? 1 : 2));
    }
  }
  const Recording recording = recorder.Done({*versions});
  EXPECT_TRUE(recording.has_nodes);
  Variant variant;
  variant.masked_of = {0};
  const Outcome outcome = Replay(recording, variant, {Arrivals::kRecorded});
  EXPECT_EQ(outcome.all.misses, 4u);
  EXPECT_EQ(outcome.all.hits, 16u);
}

TEST(ReplayAll, AnswersInOrderAndTheSameEveryTime) {
  Recorder recorder;
  recorder.Timers("a", 0, 30, 1);
  recorder.Timers("b", 7, 30, 2);
  const Recording recording = recorder.Done();
  std::vector<Variant> variants(4);
  for (size_t i = 0; i < variants.size(); ++i) {
    variants[i].settings.defaults.policy.ttl_jitter = 0.2;
    variants[i].settings.defaults.policy.ttl_override =
        absl::Seconds(60 * (i + 1));
  }
  const std::vector<Outcome> first = ReplayAll(recording, variants, {});
  const std::vector<Outcome> second = ReplayAll(recording, variants, {});
  for (size_t i = 0; i < variants.size(); ++i) {
    EXPECT_EQ(first[i].all.hits, second[i].all.hits);
    EXPECT_EQ(first[i].pipelines, second[i].pipelines);
    if (i > 0) {
      EXPECT_LT(first[i].pipelines, first[i - 1].pipelines);
    }
  }
}

TEST(Info, SaysWhatIsInTheTrace) {
  Recorder recorder;
  recorder.Timers("a", 0, 3, 1);
  recorder.Write(recorder.Call("b", 1, 2));
  const Info info = InfoOf(recorder.Done());
  EXPECT_EQ(info.calls, 4u);
  EXPECT_EQ(info.composites, 2u);
  EXPECT_EQ(info.by_timer, 2u);
  EXPECT_EQ(info.by_event, 2u);
  ASSERT_EQ(info.steps.size(), 1u);
  EXPECT_EQ(info.steps[0].outcomes.at("miss"), 4u);
  EXPECT_DOUBLE_EQ(info.steps[0].told_ttl.median, 60);
  EXPECT_THAT(InfoText(info),
              ::testing::HasSubstr("4 pipelines: 2 by a timer, 2 by an event"));
  EXPECT_EQ(nlohmann::json::parse(InfoJson(info))["steps"][0]["calls"], 4);
}

TEST(Overlaid, WhatIsSaidOfAllHoldsForEachFunction) {
  const SettingTexts base = {{"ttl.max", {"1h"}},
                             {"functions.f.ttl.max", {"2h"}},
                             {"functions.f.ttl.min", {"1m"}}};
  EXPECT_EQ(
      Overlaid(base, {{"ttl.max", {"3h"}}}),
      (SettingTexts{{"ttl.max", {"3h"}}, {"functions.f.ttl.min", {"1m"}}}));
  EXPECT_EQ(Overlaid(base, {{"functions.f.ttl.max", {"3h"}}}).at("ttl.max"),
            std::vector<std::string>{"1h"});
}

}  // namespace
}  // namespace fncache::insight::whatif
