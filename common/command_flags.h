// SPDX-License-Identifier: Apache-2.0
// The flags of a command as data: what its help, its shell completion and its
// messages about a mistyped flag are made from.
//
// A command whose flags are defined with CLI11 needs no list of its own:
// FlagsOf reads them off. Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_COMMAND_FLAGS_H_
#define FNCACHE_COMMON_COMMAND_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace fncache {

struct CommandFlag {
  // With their dashes, the long one last: {"-o", "--observed-resources"}.
  std::vector<std::string> names;
  // The placeholder of its value, "DURATION"; empty where it takes none. FILE,
  // DIR and PATH name files, and so completion offers files for them.
  std::string argument;
  // A sentence or a few, on one line.
  std::string help;
  // Whether it may be given more than once.
  bool repeats = false;
};

std::vector<CommandFlag> FlagsOf(const CLI::App& app);

// Breaks the descriptions of the options into lines, so that the help fits in
// 80 columns.
void WrapHelp(CLI::App* app);

// Why `argument` is not taken: an unknown flag, with the flag that was probably
// meant, or an argument too many. One line, without control characters.
std::string NotTaken(absl::string_view argument,
                     const std::vector<CommandFlag>& flags);

// Why `text` is no whole number from 0 to `most`; empty if it is one. For the
// check() of an option, as CLI11 takes -1 for the largest number, and nothing
// for 0.
std::string WhyNoWholeNumber(const std::string& text,
                             uint64_t most = UINT64_MAX);

// Why `app` could not parse its arguments, on one line; `error` is what it
// threw.
std::string WhyNotParsed(const CLI::App& app, const CLI::ParseError& error);

}  // namespace fncache

#endif  // FNCACHE_COMMON_COMMAND_FLAGS_H_
