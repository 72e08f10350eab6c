// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/command.h"

#include <string>
#include <vector>

#include "common/command_line.h"
#include "gtest/gtest.h"

namespace fncache::sdk::serve {
namespace {

absl::Duration TtlOf(absl::Duration given,
                     const std::vector<std::string>& arguments) {
  function::ServerOptions defaults;
  defaults.insecure = true;
  defaults.function_options.ttl = given;
  ServeFlags flags(defaults);
  CommandLine line("A function.", "function");
  flags.Define(&line);
  flags.DefineTtl(&line);
  EXPECT_EQ(line.Parse(arguments), CommandLine::Outcome::kParsed);
  const auto settings = flags.Settings();
  EXPECT_TRUE(settings.ok()) << settings.status();
  return settings->server.function_options.ttl;
}

// The function's own, also where no flag could say it.
TEST(ServeFlagsTest, ATtlThatNoFlagGivesIsTheFunctions) {
  for (const absl::Duration ttl :
       {absl::Seconds(90), absl::InfiniteDuration(),
        absl::Hours(24 * 365 * 500), absl::Seconds(-1)}) {
    EXPECT_EQ(TtlOf(ttl, {}), ttl);
    EXPECT_EQ(TtlOf(ttl, {"--ttl", "5m"}), absl::Minutes(5));
  }
}

}  // namespace
}  // namespace fncache::sdk::serve
