// SPDX-License-Identifier: Apache-2.0
// The flags of a command as data: what its help, its shell completion and its
// messages about a mistyped flag are made from.
//
// A command whose flags a CommandLine (command_line.h) defines needs no list of
// its own: Flags() returns it. Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_COMMAND_FLAGS_H_
#define FNCACHE_COMMON_COMMAND_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

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

// Why `argument` is not taken: an unknown flag, with the flag that was probably
// meant, or an argument too many. One line, without control characters.
std::string NotTaken(absl::string_view argument,
                     const std::vector<CommandFlag>& flags);

// Why `text` is no whole number from 0 to `most`; empty if it is one. It is for
// CommandLine::Option::Check, because a target of an unsigned type takes -1 for
// the largest number and an empty text for 0.
std::string WhyNoWholeNumber(const std::string& text,
                             uint64_t most = UINT64_MAX);

}  // namespace fncache

#endif  // FNCACHE_COMMON_COMMAND_FLAGS_H_
