// SPDX-License-Identifier: Apache-2.0
// ShadowTrial by itself: how long one lasts, and what it remembers.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proxy/serving/shadow.h"
#include "tests/proxy/serving/scripted.h"

namespace fncache::proxy::serving {
namespace {

using telemetry::ShadowBy;

class ShadowTrialTest : public ::testing::Test {
 protected:
  ShadowTrialTest() {
    options_.policy.mode = cache::Mode::kShadow;
    options_.masks = *cache::key::MaskSet::Parse({"context.name"});
    trial_ = ShadowTrial::For(options_, nullptr);
  }

  std::unique_ptr<ShadowCall> Read(const std::string& request) {
    return trial_->Read({request}, &instruments_.function(0), &clock_);
  }

  // A call with this request that would have hit an entry whose call started
  // then.
  void Hit(const std::string& request, const cache::key::Key& key,
           absl::Time started) {
    cache::store::EntryInfo info;
    info.started = info.arrived = started;
    info.lifetime = absl::Hours(1);
    auto call = Read(request);
    call->LookedUp(cache::store::Entry::Create(info, "", {}));
    const auto view = cache::ReadResponse("");
    EXPECT_FALSE(call->Judge(*view, key, options_.policy.max_entry_bytes,
                             &store_, AnyIsFresh, clock_.Now()));
  }
  static bool AnyIsFresh(const cache::store::Entry& /*entry*/) { return true; }
  uint64_t Hits(ShadowBy by) { return trial_->Report().of(by).hits; }

  SimulatedClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  telemetry::Instruments instruments_{{"function"}};
  ScriptedStore store_;
  settings::FunctionOptions options_;
  std::shared_ptr<ShadowTrial> trial_;
};

TEST_F(ShadowTrialTest, GoesOnForAsLongAsKeysAreMadeOfTheSame) {
  auto changed = options_;
  changed.policy.ttl_min = absl::Hours(24);
  EXPECT_EQ(ShadowTrial::For(changed, trial_), trial_);
  changed = options_;
  changed.masks = *cache::key::MaskSet::Parse({"context.other"});
  EXPECT_NE(ShadowTrial::For(changed, trial_), trial_);
  changed = options_;
  changed.generation = "another";
  EXPECT_NE(ShadowTrial::For(changed, trial_), trial_);
  changed = options_;
  changed.policy.mode = cache::Mode::kOn;
  EXPECT_EQ(ShadowTrial::For(changed, trial_), nullptr);
}

TEST_F(ShadowTrialTest, AReloadKeepsItInTheFunctionsState) {
  FunctionStates states(options_, &store_, /*evidence=*/nullptr);
  const auto before = states.Newest()->shadow;
  ASSERT_NE(before, nullptr);
  states.Replace(options_);
  EXPECT_EQ(states.Newest()->shadow, before);
  options_.policy.mode = cache::Mode::kOn;
  states.Replace(options_);
  EXPECT_EQ(states.Newest()->shadow, nullptr);
}

TEST_F(ShadowTrialTest, AnEntryIsOfTheCallThatStartedWhenItSays) {
  const cache::key::Key key{1, 2};
  const absl::Time now = clock_.Now();
  Read(Request("a", "t"))->Remember(key, now);
  Hit(Request("a", "t"), key, now);
  EXPECT_EQ(Hits(ShadowBy::kExact), 1);
  Hit(Request("b", "t"), key, now);
  EXPECT_EQ(Hits(ShadowBy::kMask), 1);
  // Another fill of that key, from whatever tier.
  Hit(Request("a", "t"), key, now + absl::Nanoseconds(1));
  EXPECT_EQ(Hits(ShadowBy::kUnknown), 1);
  // A later call's is remembered, an earlier call's no more.
  Read(Request("b", "t"))->Remember(key, now + absl::Nanoseconds(1));
  Read(Request("c", "t"))->Remember(key, now);
  Hit(Request("b", "t"), key, now + absl::Nanoseconds(1));
  EXPECT_EQ(Hits(ShadowBy::kExact), 2);
}

TEST_F(ShadowTrialTest, TheOldestFillsAreForgotten) {
  const absl::Time now = clock_.Now();
  const std::string request = Request("a", "t");
  const auto call = Read(request);
  const auto key = [](size_t i) { return cache::key::Key{i, i * 7919}; };
  // One key is filled again and again, which takes no capacity.
  for (size_t i = 0; i < 10 * ShadowTrial::kMostRemembered; ++i) {
    call->Remember(key(0), now + absl::Nanoseconds(i));
  }
  const absl::Time last =
      now + absl::Nanoseconds(10 * ShadowTrial::kMostRemembered - 1);
  call->Remember(key(1), now);
  Hit(request, key(0), last);
  Hit(request, key(1), now);
  EXPECT_EQ(Hits(ShadowBy::kExact), 2);
  for (size_t i = 2; i < ShadowTrial::kMostRemembered + 2; ++i) {
    call->Remember(key(i), now);
  }
  Hit(request, key(0), last);
  Hit(request, key(1), now);
  EXPECT_EQ(Hits(ShadowBy::kUnknown), 2);
  Hit(request, key(ShadowTrial::kMostRemembered + 1), now);
  EXPECT_EQ(Hits(ShadowBy::kExact), 3);
}

TEST_F(ShadowTrialTest, PathsAreBoundedAndTheFrequentOnesStay) {
  const cache::key::Key key{1, 2};
  const absl::Time now = clock_.Now();
  Read(Request("a", "t"))->Remember(key, now);
  cache::store::EntryInfo info;
  info.started = info.arrived = now;
  info.lifetime = absl::Hours(1);
  fnv1::RunFunctionResponse kept;
  kept.mutable_context();
  const std::string body = kept.SerializeAsString();
  for (int i = 0; i < 1000; ++i) {
    auto call = Read(Request("b", "t"));
    call->LookedUp(cache::store::Entry::Create(info, "", {body}));
    fnv1::RunFunctionResponse response;
    const std::string name = i % 2 == 0 ? "often" : absl::StrCat("rare", i);
    (*response.mutable_context()->mutable_fields())[name].set_bool_value(true);
    const std::string bytes = response.SerializeAsString();
    const auto view = cache::ReadResponse(bytes);
    EXPECT_FALSE(call->Judge(*view, key, options_.policy.max_entry_bytes,
                             &store_, AnyIsFresh, now));
  }
  const telemetry::ShadowReport report = trial_->Report();
  EXPECT_EQ(report.of(ShadowBy::kMask).differences, 1000);
  EXPECT_EQ(report.paths.size(), 64);
  EXPECT_EQ(report.paths[0].path, "context.often");
  EXPECT_EQ(report.paths[0].differences[0], 500);
  EXPECT_EQ(report.paths[0].first, now);
  // Too high perhaps, never too low.
  EXPECT_GE(report.paths[1].sum(), 1);
  EXPECT_GT(report.paths[1].inherited[0], 0);
  for (size_t i = 1; i < report.paths.size(); ++i) {
    EXPECT_EQ(report.paths[i].certain(ShadowBy::kMask), 1);
  }
  EXPECT_EQ(report.paths[0].certain(ShadowBy::kMask), 500);
}

TEST_F(ShadowTrialTest, ThereAreNoMoreValuesAndCompositesThanCalls) {
  const cache::key::Key key{1, 2};
  const absl::Time now = clock_.Now();
  Read(Request("first", "t"))->Remember(key, now);
  for (uint64_t i = 1; i <= 500; ++i) {
    Hit(Request(absl::StrCat("n", i), "t"), key, now);
    const telemetry::ShadowReport report = trial_->Report();
    EXPECT_EQ(report.of(ShadowBy::kMask).hits, i);
    EXPECT_LE(report.mask_masked_values, i);
    EXPECT_LE(report.mask_composites, i);
    EXPECT_LE(report.masked_values, i + 1);
    EXPECT_LE(report.composites, i + 1);
    EXPECT_LE(report.masks[0].values, i + 1);
  }
}

}  // namespace
}  // namespace fncache::proxy::serving
