// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/what_if_settings.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::proxy::settings {
namespace {

using insight::whatif::SettingTexts;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Refused(const SettingTexts& texts) {
  const auto read = WhatIfSettings().Read(texts);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

TEST(WhatIfSettings, ReadsWhatTheDaemonReads) {
  const auto read = WhatIfSettings().Read(
      {{"ttl.max", {"1h"}},
       {"cache.memory", {"64MiB"}},
       {"requeue_ttl", {"original"}},
       {"store_fatal", {"true"}},
       {"mask", {"@versions", "context.now"}},
       {"functions.function-go.example.ttl.min", {"5m"}}});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->memory, 64u << 20);
  EXPECT_EQ(read->defaults.policy.ttl_max, absl::Hours(1));
  EXPECT_TRUE(read->defaults.policy.store_fatal);
  EXPECT_FALSE(read->defaults.masks.empty());
  const auto& own = read->Of("function-go.example");
  EXPECT_EQ(own.policy.ttl_min, absl::Minutes(5));
  EXPECT_EQ(own.policy.ttl_max, absl::Hours(1));  // as all have it
  EXPECT_FALSE(read->Of("another").policy.ttl_min.has_value());
}

TEST(WhatIfSettings, RefusesByNameAndRange) {
  EXPECT_THAT(Refused({{"ttl.max", {"soon"}}}),
              HasSubstr("ttl.max: accepted: a duration from 0 up"));
  EXPECT_THAT(Refused({{"ttl.margin", {"1.5"}}}), HasSubstr("ttl.margin: "));
  EXPECT_THAT(Refused({{"store_fatal", {"maybe"}}}),
              HasSubstr("true or false"));
  EXPECT_THAT(Refused({{"ttl.maxx", {"1h"}}}), HasSubstr("ttl.max"));
  EXPECT_THAT(Refused({{"listen", {":1"}}}), HasSubstr("accepted: "));
  EXPECT_THAT(Refused({{"functions.f.cache.memory", {"1MiB"}}}),
              HasSubstr("is no setting of a what-if"));
  EXPECT_THAT(Refused({{"mask", {"input"}}}), HasSubstr("mask: "));
  EXPECT_THAT(Refused({{"ttl.max", {"1h", "2h"}}}),
              HasSubstr("more than once"));
}

TEST(WhatIfSettings, StaleWhileRevalidateIsTaken) {
  const auto read =
      WhatIfSettings().Read({{"stale_while_revalidate", {"10m"}},
                             {"functions.f.stale_while_revalidate", {"1h"}}});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->defaults.policy.stale_while_revalidate, absl::Minutes(10));
  EXPECT_EQ(read->Of("f").policy.stale_while_revalidate, absl::Hours(1));
}

// A setting about which a trace records too little is refused with that reason,
// not as an unknown one.
TEST(WhatIfSettings, WhatCannotBePlayedIsRefusedWithTheReason) {
  for (const std::string name : {"stale_if_error", "functions.f.stale_if_error",
                                 "functions.a.b.stale_if_error"}) {
    EXPECT_THAT(Refused({{name, {"1h"}}}),
                HasSubstr(name + ": cannot be asked about: a trace does not "
                                 "tell when the function would have failed"));
    EXPECT_FALSE(WhatIfSettings().Takes(name));
  }
  EXPECT_THAT(Refused({{"finish_abandoned", {"1m"}}}),
              HasSubstr("finish_abandoned: cannot be asked about: a trace does "
                        "not tell for how long a call would have run"));
  EXPECT_THAT(Refused({{"key", {"tag"}}}),
              HasSubstr("key: cannot be asked about: a trace has its keys"));
  EXPECT_THAT(Refused({{"functions.f.operations", {"cache"}}}),
              HasSubstr("functions.f.operations: cannot be asked about: "
                        "operations are played as the daemon"));
  EXPECT_THAT(Refused({{"stale_if_eror", {"1h"}}}),
              HasSubstr("is no setting of a what-if"));
}

TEST(WhatIfSettings, WhatADaemonHadThatCannotBePlayedIsTold) {
  const WhatIfSettings settings;
  EXPECT_THAT(settings.NotPlayed({{"stale_if_error", "0s"},
                                  {"finish_abandoned", "0s"},
                                  {"stale_while_revalidate", "1h"},
                                  {"vary", "off"},
                                  {"functions.f.tune", "off"},
                                  {"key", "tag"}}),
              ElementsAre());
  EXPECT_THAT(
      settings.NotPlayed(
          {{"functions.f.finish_abandoned", "1m"}, {"stale_if_error", "2h"}}),
      ElementsAre("the daemon had functions.f.finish_abandoned: 1m, which is "
                  "not played: calls that their callers left fill nothing here",
                  "the daemon had stale_if_error: 2h, which is not played: "
                  "where an old answer hid an error, the function answers "
                  "here"));
}

TEST(WhatIfSettings, ListsArePartedOutsideQuotes) {
  const WhatIfSettings settings;
  EXPECT_THAT(settings.Split("mask", R"(@versions, context."a,b".c)"),
              ElementsAre("@versions", R"(context."a,b".c)"));
  EXPECT_THAT(settings.Split("mask", ""), ElementsAre());
  EXPECT_THAT(settings.Split("ttl.max", "1h"), ElementsAre("1h"));
  EXPECT_THAT(settings.Names(), Contains("ttl.override"));
  EXPECT_THAT(settings.Names(), Not(Contains("listen")));
}

}  // namespace
}  // namespace fncache::proxy::settings
