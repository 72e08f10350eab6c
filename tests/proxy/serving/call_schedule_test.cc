// SPDX-License-Identifier: Apache-2.0
// Random schedules of real callers through listener, handler and upstream to a
// scripted function: deadlines, cancellations, errors, joins, answers past
// their time, calls that outlive their callers, shut-down. No call hangs, is
// answered twice, or under another's tag or key; nothing is left behind.
//
// With `tune: on` requests drift, and one function proves its answers, one
// copies a version, and one reads times that no caller has. Questions are late,
// fail, hang and differ.
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/common/long_form.h"
#include "tests/proxy/serving/drift_testing.h"
#include "tests/proxy/serving/later.h"
#include "tests/proxy/serving/scripted.h"

namespace fncache::proxy::serving {
namespace {

// The name of a request made by Request(name, tag): the text after "name".
std::string NameOf(const std::string& bytes) {
  const size_t at = bytes.find("key-");
  return bytes.substr(at, 5);
}

// The answer to a caller's request with this tick: key-2 copies a version.
std::string TextOf(const std::string& name, int tick) {
  return name == "key-2" ? absl::StrCat(name, " ", tick) : name;
}

// The answer to a request by Drifted. Questions have times that no caller has,
// and key-3 reads those.
std::string DriftedText(const FunctionCall& call) {
  auto request = call.request();
  const std::string name = NameOf(call.bytes);
  auto* const one = (*request.mutable_observed()->mutable_resources())["one"]
                        .mutable_resource();
  const std::string time = At(one, {"status", "lastSync"}).string_value();
  if (name == "key-3" && time.substr(0, 4) != Time(0).substr(0, 4)) {
    return "far";
  }
  const std::string version =
      At(request.mutable_observed()->mutable_composite()->mutable_resource(),
         {"metadata", "resourceVersion"})
          .string_value();
  return TextOf(name, std::stoi(version) - 100'000);
}

// Answers on threads of its own, after a while, as the dice say.
class RandomFunction {
 public:
  // `tuned`: it answers more often. After a failure no question is asked for
  // long, so half of the functions do not fail.
  RandomFunction(uint32_t seed, bool tuned)
      : random_(seed),
        tuned_(tuned),
        sides_(tuned ? 200 : 12),
        least_(tuned && seed % 2 == 0 ? 3 : 0) {}
  void Take(const FunctionCallPtr& call) {
    MutexLock lock(&mutex_);
    const int dice = std::max<int>(random_() % sides_, least_);
    if (dice == 0) return;  // hangs, until it is cancelled
    later_.Run(absl::Microseconds(random_() % 20000),
               [this, dice, call] { Answer(dice, *call); });
  }

 private:
  void Answer(int dice, FunctionCall& call) const {
    const std::string name = tuned_ ? DriftedText(call) : NameOf(call.bytes);
    // No particular tag: each joined caller must get its own.
    const std::string& tag = call.metadata.find("x-tag")->second;
    switch (dice) {
      case 1:
        return call.Fail(grpc::Status(grpc::StatusCode::INTERNAL, name));
      case 2:
        return call.Fail(
            grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, name));
      case 3:
        return call.Answer(Response(tag, name, -1).SerializeAsString());
      case 4:
        return call.Answer(Response(tag, name, 0).SerializeAsString());
      default:
        return call.Answer(
            Response(tag, name, tuned_ ? 5 : 1).SerializeAsString());
    }
  }

  Mutex mutex_;
  std::mt19937 random_ ABSL_GUARDED_BY(mutex_);
  const bool tuned_;
  const int sides_;
  const int least_;
  Later later_{/*threads=*/4};
};

struct Totals {
  int calls = 0;
  int ok = 0;
  int hits = 0;
  int stale_hits = 0;
  int collapsed = 0;
  int timeouts = 0;
  int cancelled = 0;
  int errors = 0;
  int rehearsed = 0;  // would have been hits
  int drifted = 0;    // hits across drift
  uint64_t questions = 0;
  uint64_t proven = 0;
};

// `cancelled`: it was cancelled here, which may cost it its headers even where
// the answer came first. So may a deadline that passes as the answer comes.
void CheckAnswer(Caller& caller, const std::string& name,
                 const std::string& tag, bool cancelled, Totals* totals) {
  const grpc::Status status = caller.Wait();
  ++totals->calls;
  ASSERT_EQ(caller.answers(), 1);
  switch (status.error_code()) {
    case grpc::StatusCode::OK: {
      ++totals->ok;
      const auto response = caller.response();
      ASSERT_EQ(response.meta().tag(), tag);
      ASSERT_EQ(response.results(0).message(), name);
      const std::string said = caller.cache_status();
      if (cancelled) return;
      if (said.empty() && caller.answered_late()) return;
      ASSERT_TRUE(absl::StartsWith(said, "fncache; ")) << said;
      if (absl::StrContains(said, "hit")) ++totals->hits;
      if (absl::StrContains(said, "ttl=-")) ++totals->stale_hits;
      if (absl::StrContains(said, "detail=drift")) ++totals->drifted;
      if (absl::StrContains(said, "collapsed")) ++totals->collapsed;
      return;
    }
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      ++totals->timeouts;
      return;
    case grpc::StatusCode::CANCELLED:
      ++totals->cancelled;
      return;
    case grpc::StatusCode::INTERNAL:
      ++totals->errors;
      ASSERT_EQ(status.error_message(), name);
      return;
    default:
      // Only a listener that stops may say so.
      ASSERT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
          << status.error_message();
      ++totals->errors;
  }
}

void Round(uint32_t seed, bool stop_early, cache::Mode mode, bool tuned,
           Totals* totals) {
  std::mt19937 random(seed);
  RandomFunction answers(seed, tuned);
  settings::FunctionOptions options;
  options.tune = tuned;
  options.tune_share = 1;
  options.policy.max_released = 1 + random() % 4;
  if (random() % 2 == 0) {
    options.policy.stale_while_revalidate = absl::Milliseconds(500);
  }
  if (random() % 2 == 0) options.policy.stale_if_error = absl::Seconds(2);
  if (random() % 2 == 0) {
    options.policy.finish_abandoned = absl::Milliseconds(100);
  }
  options.policy.mode = mode;
  ScriptedStore store;
  ScriptedFunction function(
      [&](const FunctionCallPtr& call) { answers.Take(call); });
  CachingProxy proxy(function.target(), options, &store,
                     /*workers=*/1 + random() % 3);
  struct Sent {
    CallerPtr caller;
    std::string name, tag;
    bool cancelled = false;
  };
  std::vector<Sent> sent;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 3; ++i) channels.push_back(Connect(proxy.target()));
  const int calls = tuned ? 400 : 100;
  for (int i = 0; i < calls; ++i) {
    Sent next{std::make_shared<Caller>(), absl::StrCat("key-", random() % 4),
              absl::StrCat("tag", i), false};
    std::string request = Request(next.name, next.tag);
    if (tuned) {
      // Calls that start at one time would be no repeats.
      proxy.clock.Advance(absl::Microseconds(100));
      // So that answers come between.
      if (i >= 6) sent[i - 6].caller->Wait();
      const int tick = i / 5;
      request = Drifted(tick, next.tag, next.name, /*event=*/i / 150);
      next.name = TextOf(next.name, tick);
    }
    grpc::ClientContext& context = next.caller->context;
    context.AddMetadata("x-tag", next.tag);
    // No caller waits for ever: the function may hang.
    context.set_deadline(absl::ToChronoTime(
        absl::Now() +
        absl::Milliseconds(random() % 3 == 0 ? random() % 40 : 400)));
    if (random() % 15 == 0) context.AddMetadata("cache-control", "no-cache");
    if (random() % 15 == 0) context.AddMetadata("authorization", "me");
    next.caller->Start(channels[random() % channels.size()],
                       random() % 6 == 0 ? kRunFunctionV1beta1 : kRunFunctionV1,
                       request);
    sent.push_back(next);
    if (random() % (tuned ? 20 : 5) == 0) {
      Sent& one = sent[random() % sent.size()];
      one.cancelled = true;
      one.caller->context.TryCancel();
    }
    if (random() % 4 == 0) {
      absl::SleepFor(absl::Microseconds(random() % 3000));
      proxy.clock.Advance(absl::Milliseconds(random() % 300));
    }
    EXPECT_LE(proxy.flights().running, options.policy.max_released);
  }
  if (stop_early) proxy.Stop();
  for (const Sent& one : sent) {
    CheckAnswer(*one.caller, one.name, one.tag, one.cancelled, totals);
  }
  // Refreshes of a function that hangs last for minutes; no caller waits for
  // them.
  EXPECT_TRUE(Eventually([&] {
    return proxy.flights().unattended > 0 ||
           (proxy.flights().empty() && function.running() == 0);
  }));
  proxy.Stop();
  EXPECT_TRUE(proxy.flights().empty());
  EXPECT_EQ(proxy.flights().unattended, 0);
  EXPECT_TRUE(Eventually([&] { return function.running() == 0; }));
  const telemetry::FunctionGauges summary =
      proxy.instruments.function(0).ReadGauges();
  EXPECT_EQ(summary.in_flight, 0);
  EXPECT_EQ(summary.flights, 0);
  EXPECT_EQ(summary.refreshes, 0);
  EXPECT_EQ(summary.abandoned, 0);
  if (tuned) {
    auto figures = proxy.tuning.evidence.Figures(proxy.clock.Now())[0];
    for (const uint64_t count : figures.questions) totals->questions += count;
    totals->proven += figures.proofs[static_cast<size_t>(ProofResult::kProven)];
  }
  if (mode != cache::Mode::kShadow) return;
  // Answers that were taken for entries of others would differ.
  const telemetry::ShadowReport report = proxy.shadow();
  uint64_t hits = report.uncompared;
  for (const auto& count : report.by) {
    EXPECT_EQ(count.differences, 0);
    hits += count.hits;
  }
  EXPECT_LE(hits, report.lookups);
  totals->rehearsed += static_cast<int>(hits);
}

void Rounds(int first, int rounds, cache::Mode mode = cache::Mode::kOn,
            bool tuned = false) {
  Totals totals;
  // On a busy machine calls and questions end by their deadlines instead: more
  // rounds until some are what this is about.
  const auto enough = [&] {
    return !tuned || (totals.drifted > 0 && totals.proven > 0);
  };
  for (int seed = first;
       seed < first + rounds || (!enough() && seed < first + 8 * rounds);
       ++seed) {
    SCOPED_TRACE(seed);
    Round(seed, /*stop_early=*/seed % 5 == 0, mode, tuned, &totals);
    if (::testing::Test::HasFailure()) return;
  }
  std::printf(
      "%d calls: %d OK (%d hits, of them %d stale, %d collapsed), %d timed "
      "out, "
      "%d cancelled, %d errors; %d hits across drift, %lu questions, %lu "
      "proven\n",
      totals.calls, totals.ok, totals.hits, totals.stale_hits, totals.collapsed,
      totals.timeouts, totals.cancelled, totals.errors, totals.drifted,
      totals.questions, totals.proven);
  if (mode == cache::Mode::kShadow) {
    EXPECT_EQ(totals.hits, 0);
    EXPECT_EQ(totals.collapsed, 0);
    EXPECT_GT(totals.rehearsed, 0);
  } else {
    EXPECT_GT(totals.hits, 0);
    EXPECT_GT(totals.stale_hits, tuned ? -1 : 0);
    EXPECT_GT(totals.collapsed, 0);
  }
  if (tuned) {
    EXPECT_GT(totals.drifted, 0);
    EXPECT_GT(totals.proven, 0u);
  } else {
    EXPECT_EQ(totals.drifted, 0);
    EXPECT_GT(totals.timeouts, 0);
  }
  EXPECT_GT(totals.cancelled, 0);
}

TEST(CallScheduleTest, EveryCallEndsOnceUnderItsOwnTag) { Rounds(1, 8); }

TEST(CallScheduleHeavyTest, EveryCallEndsOnceUnderItsOwnTag) {
  Rounds(1000, fncache::testing::ShortOrLong(30, 60));
}

TEST(CallScheduleTest, AcrossDriftEveryCallHasAnAnswerOfItsOwn) {
  Rounds(1, 5, cache::Mode::kOn, /*tuned=*/true);
}

TEST(CallScheduleHeavyTest, AcrossDriftEveryCallHasAnAnswerOfItsOwn) {
  Rounds(1000, fncache::testing::ShortOrLong(12, 60), cache::Mode::kOn,
         /*tuned=*/true);
}

TEST(CallScheduleTest, InShadowEveryCallHasTheFunctionsAnswer) {
  Rounds(1, 8, cache::Mode::kShadow);
}

TEST(CallScheduleHeavyTest, InShadowEveryCallHasTheFunctionsAnswer) {
  Rounds(1000, fncache::testing::ShortOrLong(30, 60), cache::Mode::kShadow);
}

}  // namespace
}  // namespace fncache::proxy::serving
