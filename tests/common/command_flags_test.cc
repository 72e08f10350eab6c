// SPDX-License-Identifier: Apache-2.0
#include "common/command_flags.h"

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

std::string Why(CLI::App* app, std::vector<std::string> reversed) {
  try {
    app->parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return WhyNotParsed(*app, error);
  }
  return "";
}

TEST(CommandFlagsTest, AreReadOffAnApp) {
  CLI::App app;
  std::string listen;
  std::vector<std::string> masks;
  bool trace = false;
  app.add_option("-l,--listen", listen, "Where callers\nconnect")
      ->type_name("ADDR");
  app.add_option("--mask", masks, "Left out")->type_name("FIELD");
  app.add_flag("--trace", trace, "Say more");
  app.add_option("FILES", masks);
  const std::vector<CommandFlag> flags = FlagsOf(app);
  ASSERT_EQ(flags.size(), 4u);
  EXPECT_THAT(flags[0].names, ElementsAre("-h", "--help"));
  EXPECT_EQ(flags[0].argument, "");
  EXPECT_THAT(flags[1].names, ElementsAre("-l", "--listen"));
  EXPECT_EQ(flags[1].argument, "ADDR");
  EXPECT_EQ(flags[1].help, "Where callers connect");
  EXPECT_FALSE(flags[1].repeats);
  EXPECT_EQ(flags[2].argument, "FIELD");
  EXPECT_TRUE(flags[2].repeats);
  EXPECT_THAT(flags[3].names, ElementsAre("--trace"));
  EXPECT_EQ(flags[3].argument, "");
}

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

TEST(CommandFlagsTest, AnAppSaysWhyItCouldNotParse) {
  CLI::App app;
  std::string listen;
  app.add_option("--listen", listen);
  EXPECT_EQ(Why(&app, {"--lisetn"}),
            "unknown flag --lisetn; did you mean --listen?");
  EXPECT_EQ(Why(&app, {"x", "b"}), "unexpected argument b");
  EXPECT_THAT(Why(&app, {"--listen"}), StartsWith("--listen"));
  EXPECT_EQ(Why(&app, {"a", "--listen"}), "");
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
