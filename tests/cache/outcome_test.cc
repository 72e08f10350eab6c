// SPDX-License-Identifier: Apache-2.0
#include "cache/outcome.h"

#include <cstddef>

#include "gtest/gtest.h"

namespace fncache::cache {
namespace {

TEST(OutcomeTest, AReasonGivesTheOutcomeOfACallThatGoesToTheFunction) {
  EXPECT_EQ(OutcomeOf(Reason::kUnknown), Outcome::kMiss);
  EXPECT_EQ(OutcomeOf(Reason::kExpired), Outcome::kStale);
  EXPECT_EQ(OutcomeOf(Reason::kNoCache), Outcome::kRequest);
  EXPECT_EQ(OutcomeOf(Reason::kNoStore), Outcome::kRequest);
  for (const Reason reason :
       {Reason::kAuthorization, Reason::kMetadata, Reason::kModeOff,
        Reason::kOperation, Reason::kUnreadable, Reason::kShadow,
        Reason::kMethod}) {
    EXPECT_EQ(OutcomeOf(reason), Outcome::kBypass);
  }
}

// A rehearsal looks up, to compare.
TEST(OutcomeTest, ABypassSkipsTheLookupUnlessItIsARehearsal) {
  EXPECT_TRUE(SkipsLookup(Reason::kAuthorization));
  EXPECT_TRUE(SkipsLookup(Reason::kUnreadable));
  EXPECT_TRUE(SkipsLookup(Reason::kMethod));
  EXPECT_FALSE(SkipsLookup(Reason::kShadow));
  EXPECT_FALSE(SkipsLookup(Reason::kNoCache));
  EXPECT_FALSE(SkipsLookup(Reason::kUnknown));
}

// Arrays of metrics have them as indices.
TEST(OutcomeTest, TheCountsAreThoseOfTheValues) {
  EXPECT_EQ(static_cast<size_t>(Outcome::kRequest) + 1, kOutcomes);
  EXPECT_EQ(static_cast<size_t>(Outcome::kUnknown) + 1, kAllOutcomes);
  EXPECT_EQ(static_cast<size_t>(Reason::kDrift), kMissReasons);
  EXPECT_EQ(static_cast<size_t>(Reason::kMethod) -
                static_cast<size_t>(Reason::kAuthorization) + 1,
            kBypassReasons);
}

}  // namespace
}  // namespace fncache::cache
