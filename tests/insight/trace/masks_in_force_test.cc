// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/masks_in_force.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::insight::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MasksInForce, AreEachFunctionsOwnOrThoseOfAll) {
  TraceHeader header;
  header.settings = {
      {"mask", R"(context."a,b", observed.composite.resource.status.x)"},
      {"functions.team.a.mask", "@times"},
      {"functions.none.mask", ""},
      {"ttl.max", "1h"}};
  const auto masks = MasksInForce::Of(header, {});
  ASSERT_TRUE(masks.ok()) << masks.status();
  EXPECT_TRUE(masks->any());
  EXPECT_THAT(
      masks->Texts("other"),
      ElementsAre(R"(context."a,b")", "observed.composite.resource.status.x"));
  EXPECT_THAT(masks->Texts("team.a"), ElementsAre("@times"));
  EXPECT_THAT(masks->Texts("none"), IsEmpty());
  EXPECT_TRUE(masks->Hide("other", R"(context."a,b".c)"));
  EXPECT_FALSE(masks->Hide("none", R"(context."a,b".c)"));
  EXPECT_TRUE(masks->Hide("team.a",
                          "observed.resources.db.resource.status.conditions[1]."
                          "lastTransitionTime"));
  EXPECT_FALSE(masks->Hide("team.a", "observed.composite.resource.status.x"));
}

TEST(MasksInForce, MoreAreInForceForAll) {
  TraceHeader header;
  header.settings = {{"functions.f.mask", "@times"}};
  const std::string more = "observed.composite.resource.status.x";
  const auto masks = MasksInForce::Of(header, {more});
  ASSERT_TRUE(masks.ok()) << masks.status();
  EXPECT_THAT(masks->Texts("f"), ElementsAre("@times", more));
  EXPECT_TRUE(masks->Hide("g", more));
  EXPECT_FALSE(MasksInForce::Of(header, {"no.path"}).ok());
}

// A daemon of an older release could mask more.
TEST(MasksInForce, WhatIsRefusedTodayWasInForceAllTheSame) {
  TraceHeader header;
  header.settings = {{"mask", "observed.composite.resource.metadata,no path"}};
  const auto masks = MasksInForce::Of(header, {});
  ASSERT_TRUE(masks.ok()) << masks.status();
  EXPECT_TRUE(
      masks->Hide("f", "observed.composite.resource.metadata.labels.a"));
}

}  // namespace
}  // namespace fncache::insight::trace
