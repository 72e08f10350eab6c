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
