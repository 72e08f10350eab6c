// SPDX-License-Identifier: Apache-2.0
#include "common/nearest.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fncache {
namespace {

const std::vector<std::string>& Flags() {
  static const auto* const flags = new std::vector<std::string>{
      "--upstream", "--listen", "--mask", "--ttl-max", "--ttl-min", "--key"};
  return *flags;
}

TEST(NearestTest, OneOrTwoSlipsOfTheKeyboard) {
  for (const char* text :
       {"--upstrem", "--upstreaam", "--upstraem", "--uptsream", "--upsteram",
        "--Upstream", "-upstream", "upstream", "--upstreams"}) {
    EXPECT_EQ(Nearest(text, Flags()), "--upstream") << text;
  }
  EXPECT_EQ(Nearest("--ttl-mni", Flags()), "--ttl-min");
  EXPECT_EQ(Nearest("--keys", Flags()), "--key");
}

TEST(NearestTest, TheFirstOfSeveral) {
  EXPECT_EQ(Nearest("--ttl-m", Flags()), "--ttl-max");
}

TEST(NearestTest, NothingWhereNoneIsAlike) {
  for (const char* text :
       {"", "-", "--cache-size", "--upsxxxam", "--", "--k"}) {
    EXPECT_EQ(Nearest(text, Flags()), "") << text;
  }
  EXPECT_EQ(Nearest(std::string(1 << 20, '-'), Flags()), "");
  EXPECT_EQ(Nearest("a", {}), "");
}

TEST(NearestTest, AsTheEndOfASentence) {
  EXPECT_EQ(DidYouMean("--maks", Flags()), "; did you mean --mask?");
  EXPECT_EQ(DidYouMean("--cache", Flags()), "");
}

}  // namespace
}  // namespace fncache
