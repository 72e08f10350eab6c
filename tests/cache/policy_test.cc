// SPDX-License-Identifier: Apache-2.0
#include "cache/policy.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::cache {
namespace {

using ::testing::HasSubstr;
using Ttl = absl::optional<absl::Duration>;

const absl::Time kStart = absl::FromUnixSeconds(1'750'000'000);
const absl::Duration kMaxLifetime =
    absl::Nanoseconds(std::numeric_limits<int64_t>::max());

ResponseFacts WithTtl(const Ttl& ttl) {
  ResponseFacts facts;
  facts.ttl = ttl;
  return facts;
}

// L as decided; absent: not stored.
Ttl Lifetime(const PolicyOptions& options, const Ttl& ttl, double random = 0) {
  const Policy::Storing storing =
      Policy(options).Decide(WithTtl(ttl), 1000, random);
  if (!storing.store) return absl::nullopt;
  return storing.lifetime;
}

store::EntryInfo Filled(absl::Duration lifetime, const Ttl& ttl) {
  store::EntryInfo entry;
  entry.arrived = kStart;
  entry.lifetime = lifetime;
  entry.ttl = ttl;
  return entry;
}

// ---- Lifetime: "L = override, else T, else default, else not stored; at least
// min, at most max, then jitter."

struct LifetimeCase {
  const char* what;
  Ttl override_ttl, default_ttl, min;
  absl::Duration max;
  Ttl ttl;
  Ttl want;
};

TEST(PolicyLifetimeTest, FollowsTheTableOfDesign) {
  const Ttl none;
  const absl::Duration zero = absl::ZeroDuration();
  const auto s = [](int64_t n) { return absl::Seconds(n); };
  const absl::Duration day = absl::Hours(24);
  const LifetimeCase cases[] = {
      {"the function's", none, none, none, day, s(60), s(60)},
      {"nothing said", none, none, none, day, none, none},
      {"default where nothing said", none, s(5), none, day, none, s(5)},
      {"T before default", none, s(5), none, day, s(60), s(60)},
      {"override before T", s(7), s(5), none, day, s(60), s(7)},
      {"override where nothing said", s(7), s(5), none, day, none, s(7)},
      {"zero is not stored", none, none, none, day, zero, none},
      {"default does not store a zero", none, s(5), none, day, zero, none},
      {"min does not store a zero", none, none, s(9), day, zero, none},
      {"only override stores a zero", s(7), none, none, day, zero, s(7)},
      {"min does not store nothing", none, none, s(9), day, none, none},
      {"at least min", none, none, s(90), day, s(60), s(90)},
      {"min below", none, none, s(30), day, s(60), s(60)},
      {"min of a default", none, s(5), s(9), day, none, s(9)},
      {"min of an override", s(7), none, s(9), day, s(60), s(9)},
      {"at most max", none, none, none, s(30), s(60), s(30)},
      {"max of an override", s(60), none, none, s(30), s(10), s(30)},
      {"max of a default", none, s(60), none, s(30), none, s(30)},
      {"max above min", none, none, s(90), s(30), s(60), s(30)},
      {"max 0 is none", none, none, none, zero, s(1'000'000), s(1'000'000)},
      {"default max is a day", none, none, none, day, s(1'000'000), day},
      {"default 0 is unset", none, zero, none, day, none, none},
      {"min 0 is unset", none, none, zero, day, s(60), s(60)},
      {"huge without max", none, none, none, zero, s(300'000'000'000),
       kMaxLifetime},
      {"one nanosecond", none, none, none, day, absl::Nanoseconds(1),
       absl::Nanoseconds(1)},
  };
  for (const LifetimeCase& test : cases) {
    PolicyOptions options;
    options.ttl_override = test.override_ttl;
    options.ttl_default = test.default_ttl;
    options.ttl_min = test.min;
    options.ttl_max = test.max;
    EXPECT_TRUE(options.Validate().ok()) << test.what;
    EXPECT_EQ(Lifetime(options, test.ttl), test.want) << test.what;
  }
}

TEST(PolicyLifetimeTest, DefaultClampIsADay) {
  EXPECT_EQ(Lifetime({}, absl::Hours(25)), absl::Hours(24));
}

TEST(PolicyLifetimeTest, JitterShortensByUpToItsFraction) {
  PolicyOptions options;
  options.ttl_jitter = 0.2;
  EXPECT_EQ(Lifetime(options, absl::Seconds(100), 0), absl::Seconds(100));
  const absl::Duration half = *Lifetime(options, absl::Seconds(100), 0.5);
  EXPECT_GE(half, absl::Seconds(90) - absl::Nanoseconds(2));
  EXPECT_LE(half, absl::Seconds(90) + absl::Nanoseconds(2));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform;
  absl::Duration least = absl::Seconds(100), most;
  for (int i = 0; i < 10'000; ++i) {
    const absl::Duration l =
        *Lifetime(options, absl::Seconds(100), uniform(random));
    least = std::min(least, l);
    most = std::max(most, l);
  }
  EXPECT_GE(least, absl::Seconds(80) - absl::Nanoseconds(1));
  EXPECT_LT(least, absl::Seconds(81));
  EXPECT_LE(most, absl::Seconds(100));
  EXPECT_GT(most, absl::Seconds(99));
}

TEST(PolicyLifetimeTest, JitterComesAfterTheClamps) {
  PolicyOptions options;
  options.ttl_jitter = 0.5;
  options.ttl_max = absl::Seconds(100);
  options.ttl_min = absl::Seconds(100);
  const absl::Duration l = *Lifetime(options, absl::Seconds(1), 0.999);
  EXPECT_LT(l, absl::Seconds(51));
  EXPECT_GT(l, absl::Seconds(50));
}

TEST(PolicyLifetimeTest, JitterNeverLeavesNothingOrFractions) {
  PolicyOptions options;
  options.ttl_jitter = 0.9999;
  EXPECT_EQ(Lifetime(options, absl::Nanoseconds(1), 0.9999),
            absl::Nanoseconds(1));
  options.ttl_max = absl::ZeroDuration();
  const absl::Duration huge =
      *Lifetime(options, absl::Seconds(315'576'000'000), 0.3);
  EXPECT_LT(huge, kMaxLifetime);
  EXPECT_GT(huge, absl::ZeroDuration());
  EXPECT_EQ(huge % absl::Nanoseconds(1), absl::ZeroDuration());
}

// ---- What is stored at all, and where.

TEST(PolicyStoringTest, ModeOffStoresNothingAndRewritesNothing) {
  PolicyOptions options;
  options.mode = Mode::kOff;
  options.ttl_override = absl::Seconds(5);
  options.requeue_ttl = {RequeueTtl::Kind::kFixed, absl::Seconds(3)};
  EXPECT_EQ(Lifetime(options, absl::Seconds(60)), absl::nullopt);
  EXPECT_EQ(Policy(options).MissTtl(WithTtl(absl::Seconds(60)), {}),
            absl::nullopt);
}

TEST(PolicyStoringTest, ModeShadowStoresAsOnDoesAndRewritesNothing) {
  PolicyOptions options;
  options.ttl_min = absl::Hours(1);
  options.requeue_ttl = {RequeueTtl::Kind::kFixed, absl::Seconds(3)};
  const ResponseFacts facts = WithTtl(absl::Seconds(60));
  const Policy::Storing on = Policy(options).Decide(facts, 1, 0);
  ASSERT_TRUE(Policy(options).MissTtl(facts, on).has_value());
  options.mode = Mode::kShadow;
  const Policy::Storing shadow = Policy(options).Decide(facts, 1, 0);
  EXPECT_TRUE(shadow.store);
  EXPECT_EQ(shadow.lower_tiers, on.lower_tiers);
  EXPECT_EQ(shadow.lifetime, on.lifetime);
  EXPECT_EQ(Policy(options).MissTtl(facts, shadow), absl::nullopt);
  EXPECT_EQ(Policy(options).MissTtl(facts, {}), absl::nullopt);
}

TEST(PolicyStoringTest, FatalIsStoredOnlyWhereAsked) {
  ResponseFacts fatal = WithTtl(absl::Seconds(60));
  fatal.fatal = true;
  PolicyOptions options;
  EXPECT_FALSE(Policy(options).Decide(fatal, 1, 0).store);
  options.ttl_override = absl::Seconds(60);
  EXPECT_FALSE(Policy(options).Decide(fatal, 1, 0).store);
  options.store_fatal = true;
  EXPECT_TRUE(Policy(options).Decide(fatal, 1, 0).store);
  EXPECT_TRUE(Policy(options).Decide(fatal, 1, 0).lower_tiers);
}

TEST(PolicyStoringTest, SecretsGoWhereTheSettingSays) {
  struct {
    StoreSecrets setting;
    bool memory, lower;
  } const cases[] = {{StoreSecrets::kMemory, true, false},
                     {StoreSecrets::kAll, true, true},
                     {StoreSecrets::kNone, false, false}};
  for (const auto& test : cases) {
    PolicyOptions options;
    options.store_secrets = test.setting;
    ResponseFacts facts = WithTtl(absl::Seconds(60));
    Policy::Storing plain = Policy(options).Decide(facts, 1, 0);
    EXPECT_TRUE(plain.store);
    EXPECT_TRUE(plain.lower_tiers);
    facts.secrets = true;
    Policy::Storing secret = Policy(options).Decide(facts, 1, 0);
    EXPECT_EQ(secret.store, test.memory);
    EXPECT_EQ(secret.lower_tiers, test.lower);
  }
  EXPECT_EQ(PolicyOptions().store_secrets, StoreSecrets::kMemory);
}

TEST(PolicyStoringTest, LargerResponsesPassThrough) {
  const Policy policy{PolicyOptions()};
  const ResponseFacts facts = WithTtl(absl::Seconds(60));
  EXPECT_TRUE(policy.Decide(facts, 16 << 20, 0).store);
  EXPECT_FALSE(policy.Decide(facts, (16 << 20) + 1, 0).store);
}

// ---- Margin.

TEST(PolicyServedForTest, EndsWhereTheMarginBegins) {
  const Policy policy{PolicyOptions()};
  const store::EntryInfo entry = Filled(absl::Seconds(100), absl::Seconds(100));
  EXPECT_EQ(policy.ServedFor(entry, kStart), absl::Seconds(90));
  EXPECT_EQ(policy.ServedFor(entry, kStart + absl::Seconds(89)),
            absl::Seconds(1));
  EXPECT_EQ(policy.ServedFor(entry, kStart + absl::Seconds(90)),
            absl::ZeroDuration());
  EXPECT_LT(policy.ServedFor(entry, kStart + absl::Seconds(91)),
            absl::ZeroDuration());
}

TEST(PolicyServedForTest, WithoutMarginAnEntryIsServedToItsEnd) {
  PolicyOptions options;
  options.ttl_margin = 0;
  const Policy policy(options);
  const store::EntryInfo entry = Filled(absl::Seconds(100), absl::Seconds(100));
  EXPECT_EQ(policy.ServedFor(entry, entry.deadline() - absl::Nanoseconds(1)),
            absl::Nanoseconds(1));
  EXPECT_EQ(policy.ServedFor(entry, entry.deadline()), absl::ZeroDuration());
}

TEST(PolicyServedForTest, AMomentBeforeArrivalIsNoLongerThanAtArrival) {
  const Policy policy{PolicyOptions()};
  const store::EntryInfo entry = Filled(absl::Seconds(100), absl::Seconds(100));
  EXPECT_EQ(policy.ServedFor(entry, kStart - absl::Milliseconds(1)),
            absl::Seconds(90));
}

// ---- Past its time: "Stale begins where serving fresh ends, at L * (1 -
// margin); the windows count from there."

PolicyOptions Windows(absl::Duration while_revalidate,
                      absl::Duration if_error) {
  PolicyOptions options;
  options.stale_while_revalidate = while_revalidate;
  options.stale_if_error = if_error;
  return options;
}

TEST(PolicyStaleTest, WithoutWindowsAnEntryIsSpentWhereItIsNotFresh) {
  const Policy policy{PolicyOptions()};
  const store::EntryInfo entry = Filled(absl::Seconds(100), absl::Seconds(100));
  EXPECT_FALSE(policy.serves_stale());
  EXPECT_EQ(policy.FreshnessOf(entry, kStart), Freshness::kFresh);
  EXPECT_EQ(policy.FreshnessOf(
                entry, kStart + absl::Seconds(90) - absl::Nanoseconds(1)),
            Freshness::kFresh);
  EXPECT_EQ(policy.FreshnessOf(entry, kStart + absl::Seconds(90)),
            Freshness::kSpent);
}

TEST(PolicyStaleTest, BothWindowsCountFromWhereServingFreshEnds) {
  const store::EntryInfo entry = Filled(absl::Seconds(100), absl::Seconds(100));
  const auto at = [&](const PolicyOptions& options, absl::Duration age) {
    return Policy(options).FreshnessOf(entry, kStart + age);
  };
  const absl::Duration moment = absl::Nanoseconds(1);
  const auto s = [](int n) { return absl::Seconds(n); };
  const PolicyOptions first = Windows(s(30), s(60));
  EXPECT_EQ(at(first, s(90) - moment), Freshness::kFresh);
  EXPECT_EQ(at(first, s(90)), Freshness::kWhileRevalidate);
  EXPECT_EQ(at(first, s(120) - moment), Freshness::kWhileRevalidate);
  EXPECT_EQ(at(first, s(120)), Freshness::kIfError);
  EXPECT_EQ(at(first, s(150) - moment), Freshness::kIfError);
  EXPECT_EQ(at(first, s(150)), Freshness::kSpent);
  // An entry that is served at once needs no error.
  const PolicyOptions second = Windows(s(60), s(30));
  EXPECT_EQ(at(second, s(150) - moment), Freshness::kWhileRevalidate);
  EXPECT_EQ(at(second, s(150)), Freshness::kSpent);
}

TEST(PolicyStaleTest, AnEntryIsKeptForTheLongerWindow) {
  const auto retention = [](const PolicyOptions& options, Ttl ttl) {
    return Policy(options).Decide(WithTtl(ttl), 1000, 0).retention;
  };
  const absl::Duration ttl = absl::Seconds(100);
  EXPECT_EQ(retention(PolicyOptions(), ttl), ttl);
  EXPECT_EQ(retention(Windows(absl::Seconds(30), absl::Seconds(60)), ttl),
            absl::Seconds(150));
  EXPECT_EQ(retention(Windows(absl::Seconds(60), absl::Seconds(30)), ttl),
            absl::Seconds(150));
  // Not shorter than its lifetime.
  EXPECT_EQ(retention(Windows(absl::Seconds(5), absl::ZeroDuration()), ttl),
            ttl);
  // And not longer than what can be stored.
  PolicyOptions longest =
      Windows(PolicyOptions::MaxDuration(), PolicyOptions::MaxDuration());
  longest.ttl_max = absl::ZeroDuration();
  longest.ttl_override = PolicyOptions::MaxDuration();
  EXPECT_EQ(retention(longest, ttl), kMaxLifetime);
}

TEST(PolicyStaleTest, AnEntryIsServedToTheEndOfWhatItIsKeptFor) {
  std::mt19937 random(7);
  for (int i = 0; i < 10000; ++i) {
    PolicyOptions options = Windows(absl::Nanoseconds(random() % 1000),
                                    absl::Nanoseconds(random() % 1000));
    options.ttl_margin = static_cast<double>(random() % 100) / 100;
    const Policy policy(options);
    const Policy::Storing storing =
        policy.Decide(WithTtl(absl::Nanoseconds(1 + random() % 1000)), 1000, 0);
    ASSERT_GE(storing.retention, storing.lifetime);
    store::EntryInfo entry = Filled(storing.lifetime, storing.lifetime);
    entry.retention = storing.retention;
    // The store lets go of nothing that is still served.
    ASSERT_EQ(policy.FreshnessOf(entry, entry.kept_until()), Freshness::kSpent);
  }
}

TEST(PolicyStaleTest, TheRunnerIsToldTenSecondsOrATenthAndUpToATenthMore) {
  const Policy policy(Windows(absl::Hours(1), absl::ZeroDuration()));
  const auto told = [&](Ttl ttl, double random) {
    return policy.StaleTtl(Filled(absl::Seconds(60), ttl), random);
  };
  EXPECT_EQ(told(absl::Seconds(60), 0), absl::Seconds(10));
  EXPECT_EQ(told(absl::Seconds(60), 0.5), absl::Seconds(10.5));
  EXPECT_LT(told(absl::Seconds(60), 0.999), absl::Seconds(11));
  EXPECT_EQ(told(absl::Seconds(1), 0), absl::Seconds(10));
  EXPECT_EQ(told(absl::Seconds(200), 0), absl::Seconds(20));
  EXPECT_EQ(told(absl::Seconds(200), 0.5), absl::Seconds(21));
  EXPECT_EQ(told(absl::ZeroDuration(), 0.5), absl::ZeroDuration());
  EXPECT_EQ(told(absl::nullopt, 0.5), absl::nullopt);
}

// ---- The TTL that the runner gets.

TEST(PolicyHitTtlTest, NoneStaysNoneAndZeroStaysZero) {
  for (const RequeueTtl requeue :
       {RequeueTtl{}, RequeueTtl{RequeueTtl::Kind::kOriginal, {}},
        RequeueTtl{RequeueTtl::Kind::kFixed, absl::Seconds(3)}}) {
    PolicyOptions options;
    options.requeue_ttl = requeue;
    const Policy policy(options);
    EXPECT_EQ(policy.HitTtl(Filled(absl::Seconds(60), absl::nullopt), kStart),
              absl::nullopt);
    EXPECT_EQ(
        policy.HitTtl(Filled(absl::Seconds(60), absl::ZeroDuration()), kStart),
        absl::ZeroDuration());
  }
}

TEST(PolicyHitTtlTest, RemainingIsTheLongerOfLAndTLessItsAge) {
  const Policy policy{PolicyOptions()};
  const absl::Time now = kStart + absl::Seconds(20);
  EXPECT_EQ(policy.HitTtl(Filled(absl::Seconds(60), absl::Seconds(60)), now),
            absl::Seconds(40));
  EXPECT_EQ(policy.HitTtl(Filled(absl::Seconds(60), absl::Seconds(90)), now),
            absl::Seconds(70));
  EXPECT_EQ(policy.HitTtl(Filled(absl::Seconds(90), absl::Seconds(60)), now),
            absl::Seconds(70));
}

TEST(PolicyHitTtlTest, OriginalAndFixedDoNotAge) {
  const absl::Time now = kStart + absl::Seconds(20);
  const store::EntryInfo entry = Filled(absl::Seconds(90), absl::Seconds(60));
  PolicyOptions options;
  options.requeue_ttl = {RequeueTtl::Kind::kOriginal, {}};
  EXPECT_EQ(Policy(options).HitTtl(entry, now), absl::Seconds(60));
  options.requeue_ttl = {RequeueTtl::Kind::kFixed, absl::Seconds(3)};
  EXPECT_EQ(Policy(options).HitTtl(entry, now), absl::Seconds(3));
}

TEST(PolicyHitTtlTest, IsNeverZeroOrNegativeWheneverItIsAsked) {
  const Policy policy{PolicyOptions()};
  for (const absl::Duration whole :
       {absl::Nanoseconds(1), absl::Microseconds(3), absl::Seconds(60),
        absl::Seconds(315'576'000'000)}) {
    const store::EntryInfo entry = Filled(std::min(whole, kMaxLifetime), whole);
    for (const absl::Duration age :
         {-absl::Hours(1), absl::ZeroDuration(), absl::Nanoseconds(1),
          whole - absl::Nanoseconds(1), whole, whole + absl::Hours(1)}) {
      const Ttl told = policy.HitTtl(entry, kStart + age);
      ASSERT_TRUE(told.has_value());
      EXPECT_GE(*told, std::min(whole, absl::Milliseconds(1)));
      EXPECT_LE(*told, whole);
    }
  }
}

TEST(PolicyMissTtlTest, AnUnmodifiedPolicyLeavesEveryAnswerAlone) {
  const Policy policy{PolicyOptions()};
  for (const Ttl& ttl : {Ttl(), Ttl(absl::ZeroDuration()),
                         Ttl(absl::Seconds(60)), Ttl(absl::Hours(48))}) {
    const ResponseFacts facts = WithTtl(ttl);
    EXPECT_EQ(policy.MissTtl(facts, policy.Decide(facts, 1, 0)), absl::nullopt);
  }
}

TEST(PolicyMissTtlTest, RemainingTellsALifetimeThatIsLongerAndStored) {
  PolicyOptions options;
  options.ttl_min = absl::Seconds(90);
  const Policy policy(options);
  ResponseFacts facts = WithTtl(absl::Seconds(60));
  EXPECT_EQ(policy.MissTtl(facts, policy.Decide(facts, 1, 0)),
            absl::Seconds(90));
  facts.fatal = true;
  EXPECT_EQ(policy.MissTtl(facts, policy.Decide(facts, 1, 0)), absl::nullopt);
  facts = WithTtl(absl::Seconds(100));
  EXPECT_EQ(policy.MissTtl(facts, policy.Decide(facts, 1, 0)), absl::nullopt);
}

TEST(PolicyMissTtlTest, OverrideOfAZeroOrAbsentTtlStoresButTellsNothing) {
  PolicyOptions options;
  options.ttl_override = absl::Seconds(90);
  const Policy policy(options);
  for (const Ttl& ttl : {Ttl(), Ttl(absl::ZeroDuration())}) {
    const ResponseFacts facts = WithTtl(ttl);
    const Policy::Storing storing = policy.Decide(facts, 1, 0);
    EXPECT_TRUE(storing.store);
    EXPECT_EQ(policy.MissTtl(facts, storing), absl::nullopt);
  }
}

TEST(PolicyMissTtlTest, FixedIsToldWhereverTheFunctionGaveOne) {
  PolicyOptions options;
  options.requeue_ttl = {RequeueTtl::Kind::kFixed, absl::Seconds(3)};
  const Policy policy(options);
  ResponseFacts facts = WithTtl(absl::Seconds(60));
  EXPECT_EQ(policy.MissTtl(facts, policy.Decide(facts, 1, 0)),
            absl::Seconds(3));
  facts.fatal = true;  // not stored, but the runner gets the TTL
  EXPECT_EQ(policy.MissTtl(facts, policy.Decide(facts, 1, 0)),
            absl::Seconds(3));
  EXPECT_EQ(policy.MissTtl(WithTtl(absl::nullopt), {}), absl::nullopt);
  EXPECT_EQ(policy.MissTtl(WithTtl(absl::ZeroDuration()), {}), absl::nullopt);
  // The same already: the bytes may stay.
  EXPECT_EQ(policy.MissTtl(WithTtl(absl::Seconds(3)), {}), absl::nullopt);
}

TEST(PolicyMissTtlTest, OriginalLeavesEveryAnswerAlone) {
  PolicyOptions options;
  options.requeue_ttl = {RequeueTtl::Kind::kOriginal, {}};
  options.ttl_min = absl::Hours(1);
  const Policy policy(options);
  const ResponseFacts facts = WithTtl(absl::Seconds(60));
  EXPECT_EQ(policy.MissTtl(facts, policy.Decide(facts, 1, 0)), absl::nullopt);
}

// ---- Validate.

TEST(PolicyOptionsTest, DefaultsAreValid) {
  EXPECT_TRUE(PolicyOptions().Validate().ok());
}

TEST(PolicyOptionsTest, ARefusalNamesTheSettingAndItsRange) {
  const auto refused = [](const char* key, const char* range, auto change) {
    PolicyOptions options;
    change(&options);
    const absl::Status status = options.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_THAT(std::string(status.message()), HasSubstr(key));
    EXPECT_THAT(std::string(status.message()), HasSubstr(range));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const absl::Duration bad :
       {-absl::Nanoseconds(1), absl::InfiniteDuration(),
        -absl::InfiniteDuration(), absl::Seconds(315'576'000'000)}) {
    refused("ttl.max", "0 to 292 years", [&](auto* o) { o->ttl_max = bad; });
    refused("ttl.override", "1ns to", [&](auto* o) { o->ttl_override = bad; });
    refused("ttl.default", "0 to", [&](auto* o) { o->ttl_default = bad; });
    refused("ttl.min", "0 to", [&](auto* o) { o->ttl_min = bad; });
    refused("stale_while_revalidate", "0 to 292 years",
            [&](auto* o) { o->stale_while_revalidate = bad; });
    refused("stale_if_error", "0 to 292 years",
            [&](auto* o) { o->stale_if_error = bad; });
    refused("finish_abandoned", "0 to 292 years",
            [&](auto* o) { o->finish_abandoned = bad; });
    refused("requeue_ttl", "remaining", [&](auto* o) {
      o->requeue_ttl = {RequeueTtl::Kind::kFixed, bad};
    });
  }
  refused("ttl.override", "1ns to",
          [](auto* o) { o->ttl_override = absl::ZeroDuration(); });
  refused("requeue_ttl", "1ns to", [](auto* o) {
    o->requeue_ttl = {RequeueTtl::Kind::kFixed, absl::ZeroDuration()};
  });
  for (const double bad : {-0.01, 1.0, 7.0, nan}) {
    refused("ttl.margin", "0 to below 1",
            [&](auto* o) { o->ttl_margin = bad; });
    refused("ttl.jitter", "0 to below 1",
            [&](auto* o) { o->ttl_jitter = bad; });
  }
  refused("max_entry_bytes", "2GiB", [](auto* o) { o->max_entry_bytes = 0; });
  refused("max_entry_bytes", "2GiB",
          [](auto* o) { o->max_entry_bytes = (2ull << 30) + 1; });
  refused("max_released", "from 1", [](auto* o) { o->max_released = 0; });
}

TEST(PolicyOptionsTest, BoundsThemselvesAreAccepted) {
  PolicyOptions options;
  options.ttl_max = PolicyOptions::MaxDuration();
  options.ttl_override = absl::Nanoseconds(1);
  options.ttl_default = absl::ZeroDuration();
  options.ttl_min = PolicyOptions::MaxDuration();
  options.ttl_margin = 0;
  options.ttl_jitter = 0.999;
  options.max_entry_bytes = 2ull << 30;
  options.max_released = 1;
  EXPECT_TRUE(options.Validate().ok()) << options.Validate();
}

// ---- Why there is a margin: without it, half of the requeues would arrive
// just before the end, hit, and get a TTL of a moment (DESIGN).

// Reconciles per function run of one composite behind one function. The runner
// comes back at the TTL that it got, +-10 %.
double ReconcilesPerRun(double margin, absl::Duration ttl) {
  PolicyOptions options;
  options.ttl_margin = margin;
  const Policy policy(options);
  std::mt19937_64 random(42);
  std::uniform_real_distribution<double> spread(0.9, 1.1);
  absl::Time now = kStart;
  absl::optional<store::EntryInfo> entry;
  int runs = 0, reconciles = 0;
  while (runs < 20'000) {
    ++reconciles;
    absl::Duration told;
    if (entry.has_value() && policy.ServedFor(*entry, now) > absl::Duration()) {
      told = *policy.HitTtl(*entry, now);
    } else {
      ++runs;
      const ResponseFacts facts = WithTtl(ttl);
      const Policy::Storing storing = policy.Decide(facts, 1000, 0);
      entry = store::EntryInfo();
      entry->arrived = now;
      entry->lifetime = storing.lifetime;
      entry->ttl = ttl;
      told = policy.MissTtl(facts, storing).value_or(ttl);
    }
    now += told * spread(random);
  }
  return static_cast<double>(reconciles) / runs;
}

TEST(PolicyMarginTest, WithTheMarginEachFunctionRunCostsOneReconcile) {
  for (const absl::Duration ttl :
       {absl::Seconds(10), absl::Seconds(60), absl::Hours(1)}) {
    EXPECT_NEAR(ReconcilesPerRun(0.1, ttl), 1.00, 0.01);
  }
}

TEST(PolicyMarginTest, WithoutItNearlyTwo) {
  for (const absl::Duration ttl :
       {absl::Seconds(10), absl::Seconds(60), absl::Hours(1)}) {
    const double reconciles = ReconcilesPerRun(0, ttl);
    EXPECT_GT(reconciles, 1.7) << ttl;
    EXPECT_LT(reconciles, 2.1) << ttl;
  }
}

}  // namespace
}  // namespace fncache::cache
