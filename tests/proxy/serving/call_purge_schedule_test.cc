// SPDX-License-Identifier: Apache-2.0
// Random schedules of real callers, a function that answers late, fails or
// gives no TTL, and an operator who purges: keys, the function, its generation,
// everything. Over memory and disk. No call that began after a purge was
// answered gets an answer that the function was asked for before it. With
// `tune: on` requests drift, and entries answer across drift between the
// purges.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cache/store/open_tiers.h"
#include "gtest/gtest.h"
#include "proxy/purge.h"
#include "tests/common/temp_dir.h"
#include "tests/proxy/serving/drift_testing.h"
#include "tests/proxy/serving/later.h"
#include "tests/proxy/serving/scripted.h"

namespace fncache::proxy::serving {
namespace {

using Kind = cache::store::Bans::Kind;

constexpr int kNames = 4;

std::string NameOf(uint64_t n) { return absl::StrCat("key-", n % kNames); }

// Answers "NAME BORN" from a thread of its own, BORN being the moment at which
// it was asked, on the test's own count of moments. Tuned, only purges are
// moments, so that it repeats its answers between them.
class LateFunction {
 public:
  LateFunction(uint32_t seed, bool tuned, std::atomic<int64_t>* moments)
      : tuned_(tuned), moments_(*moments), random_(seed) {}
  void Take(const FunctionCallPtr& call) {
    const int64_t born = tuned_ ? moments_.load() : ++moments_;
    MutexLock lock(&mutex_);
    const absl::Duration delay = absl::Microseconds(random_() % 5000);
    // After a failure no question is asked for long.
    const auto dice = tuned_ ? 1 + static_cast<int>(random_() % 100)
                             : static_cast<int>(random_() % 10);
    later_.Run(delay, [call, born, dice] { Answer(*call, born, dice); });
  }

 private:
  static void Answer(FunctionCall& call, int64_t born, int dice) {
    const std::string& bytes = call.bytes;
    const std::string text =
        absl::StrCat(bytes.substr(bytes.find("key-"), 5), " ", born);
    if (dice == 0) {
      call.Fail(grpc::Status(grpc::StatusCode::INTERNAL, "no"));
    } else {
      call.Answer(Response("t", text, dice == 1 ? -1 : 60).SerializeAsString());
    }
  }

  const bool tuned_;
  std::atomic<int64_t>& moments_;
  Mutex mutex_;
  std::mt19937 random_ ABSL_GUARDED_BY(mutex_);
  Later later_{/*threads=*/1};
};

struct Totals {
  int hits = 0;
  int collapsed = 0;
  int misses = 0;
  int purged = 0;
  int drifted = 0;  // hits across drift
};

void Round(uint32_t seed, bool tuned, Totals* totals) {
  std::mt19937 random(seed);
  std::atomic<int64_t> moments{0};
  LateFunction late(seed, tuned, &moments);
  ScriptedFunction function(
      [&](const FunctionCallPtr& call) { late.Take(call); });
  const ::fncache::testing::TempDir directory;
  SystemClock clock;
  telemetry::Instruments instruments{{"function"}};
  settings::FunctionOptions options;
  options.generation = "r1";
  options.tune = tuned;
  options.tune_share = 1;
  cache::store::TieredOptions tiers;
  // So little memory that some look-ups go below.
  tiers.memory_bytes = seed % 2 == 0 ? 24 << 10 : 4 << 20;
  tiers.max_entry_bytes = 1 << 10;
  if (seed % 3 != 0) tiers.disk_dir = directory.path();
  tiers.disk_bytes = 64 << 20;
  tiers.functions = {{"function", "r1"}};
  auto store = cache::store::OpenTiers(tiers, &clock, nullptr);
  ASSERT_TRUE(store.ok()) << store.status();
  transport::Upstream upstream(TestProxy::To(function.target()), nullptr, 2);
  insight::explain::MissMemory misses({}, &clock);
  Tuning tuning;
  FunctionHandler handler(0, options, store->get(), &clock, &upstream,
                          instruments.function(0), nullptr, &misses, nullptr,
                          &tuning);
  const auto request = [tuned](uint64_t n, int tick, const std::string& tag) {
    return tuned ? Drifted(tick, tag, NameOf(n)) : Request(NameOf(n), tag);
  };
  auto listener = std::make_unique<TestListener>(&handler, 2);
  Purger::Deps deps;
  deps.store = store->get();
  deps.functions = {&handler};
  deps.clock = &clock;
  deps.misses = &misses;
  Purger purger(deps);
  std::vector<cache::key::Key> keys;
  for (uint64_t n = 0; n < kNames; ++n) {
    LookUpOrder order;
    order.request = request(n, 0, "t");
    keys.push_back(*purger.KeyOf(order));
  }

  // By name, the moment of the last purge that was answered.
  std::array<std::atomic<int64_t>, kNames> purged{};
  std::atomic<bool> done{false};
  std::atomic<int> answers{0};
  std::thread operates([&] {
    std::mt19937 dice(seed + 1);
    while (!done) {
      // With answers in between.
      const int apart = tuned ? 60 : 2;
      for (const int seen = answers; !done && answers < seen + apart;) {
        absl::SleepFor(absl::Microseconds(200));
      }
      const uint64_t n = dice() % kNames;
      PurgeOrder order;
      order.what = dice() % 3 != 0 ? Kind::kKey : static_cast<Kind>(dice() % 3);
      order.key = keys[n];
      order.generation = "r1";
      const int64_t moment = ++moments;
      const auto result = purger.Purge(order);
      ASSERT_TRUE(result.ok()) << result.status();
      ++totals->purged;
      for (uint64_t name = 0; name < kNames; ++name) {
        if (order.what == Kind::kKey && name != n) continue;
        purged[name] = moment;
      }
    }
  });

  struct Sent {
    CallerPtr caller;
    uint64_t n;
    int64_t before;  // the last purge of its key that was answered then
    bool cancelled = false;
  };
  std::deque<Sent> sent;
  const auto check = [&](const Sent& one) {
    const grpc::Status status = one.caller->Wait();
    ++answers;
    if (!status.ok() || one.cancelled) return;
    const std::vector<std::string> text =
        absl::StrSplit(one.caller->response().results(0).message(), ' ');
    int64_t born = 0;
    ASSERT_EQ(text[0], NameOf(one.n));
    ASSERT_TRUE(absl::SimpleAtoi(text[1], &born));
    ASSERT_GT(born, one.before - (tuned ? 1 : 0))
        << "purged, and served again: " << one.caller->cache_status();
    const std::string said = one.caller->cache_status();
    totals->hits += absl::StrContains(said, "hit");
    totals->drifted += absl::StrContains(said, "detail=drift");
    totals->collapsed += absl::StrContains(said, "collapsed");
    totals->misses += absl::StrContains(said, "fwd=miss");
  };
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 3; ++i) {
    channels.push_back(Connect(listener->address()));
  }
  const int calls = tuned ? 600 : 250;
  for (int i = 0; i < calls && !::testing::Test::HasFatalFailure(); ++i) {
    Sent next;
    next.caller = std::make_shared<Caller>();
    next.n = random() % kNames;
    next.before = purged[next.n];
    if (random() % 12 == 0) {
      next.caller->context.AddMetadata("cache-control", "no-cache");
    }
    next.caller->Start(channels[random() % channels.size()], kRunFunctionV1,
                       request(next.n, i / 3, absl::StrCat("tag", i)));
    if (random() % 15 == 0) {
      next.cancelled = true;
      next.caller->context.TryCancel();
    }
    sent.push_back(next);
    while (sent.size() > 1 + random() % 12) {
      check(sent.front());
      sent.pop_front();
    }
  }
  for (const Sent& one : sent) check(one);
  done = true;
  operates.join();
  EXPECT_TRUE(Eventually([&] {
    return handler.GetFlights().empty() && handler.GetFlights().unattended == 0;
  }));
  listener = nullptr;
  EXPECT_TRUE(handler.GetFlights().empty());
  EXPECT_EQ(instruments.function(0).ReadGauges().flights, 0);
  EXPECT_TRUE(Eventually([&] { return (*store)->bans().figures().keys == 0; }));
}

void Rounds(uint32_t first, uint32_t rounds, bool tuned = false) {
  Totals totals;
  for (uint32_t seed = first; seed < first + rounds; ++seed) {
    SCOPED_TRACE(seed);
    Round(seed, tuned, &totals);
    if (::testing::Test::HasFailure()) return;
  }
  std::printf("%d hits (%d across drift), %d collapsed, %d misses, %d purges\n",
              totals.hits, totals.drifted, totals.collapsed, totals.misses,
              totals.purged);
  EXPECT_GT(totals.drifted, tuned ? 0 : -1);
  EXPECT_GT(totals.hits, 0);
  EXPECT_GT(totals.collapsed, 0);
  EXPECT_GT(totals.misses, 0);
  EXPECT_GT(totals.purged, 10);
}

TEST(CallPurgeScheduleTest, WhatIsPurgedIsNeverServedAgain) { Rounds(1, 6); }

TEST(CallPurgeScheduleTest, NorIsItServedAcrossDrift) {
  Rounds(1, 6, /*tuned=*/true);
}

TEST(CallPurgeScheduleHeavyTest, NorIsItServedAcrossDrift) {
  Rounds(1000, 30, /*tuned=*/true);
}

TEST(CallPurgeScheduleHeavyTest, WhatIsPurgedIsNeverServedAgain) {
  Rounds(1000, 60);
}

}  // namespace
}  // namespace fncache::proxy::serving
