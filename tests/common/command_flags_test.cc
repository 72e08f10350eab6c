// SPDX-License-Identifier: Apache-2.0
#include "common/command_flags.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fncache {
namespace {

TEST(CommandFlagsTest, WhatIsNotTakenIsSaidInOneLine) {
  const std::vector<CommandFlag> flags = {
      {{"-l", "--listen"}, "ADDR", "", false}};
  EXPECT_EQ(NotTaken("--lisen=a\nb", flags),
            "unknown flag --lisen; did you mean --listen?");
  EXPECT_EQ(NotTaken("--colour", flags), "unknown flag --colour");
  EXPECT_EQ(NotTaken("stray", flags), "unexpected argument stray");
  EXPECT_EQ(NotTaken("a\nb", flags).find('\n'), std::string::npos);
  EXPECT_LT(NotTaken(std::string(1 << 20, '-'), flags).size(), 1000u);
}

TEST(CommandFlagsTest, WholeNumbersAreNoOthers) {
  EXPECT_EQ(WhyNoWholeNumber("0"), "");
  EXPECT_EQ(WhyNoWholeNumber("18446744073709551615"), "");
  EXPECT_EQ(WhyNoWholeNumber("255", 255), "");
  for (const std::string text :
       {"-1", "", "1.5", "x", "256", "18446744073709551616"}) {
    EXPECT_EQ(
        WhyNoWholeNumber(text, 255),
        "\"" + text + "\" is not accepted; accepted: a whole number from 0 up");
  }
  EXPECT_EQ(WhyNoWholeNumber("a\nb").find('\n'), std::string::npos);
}

}  // namespace
}  // namespace fncache
