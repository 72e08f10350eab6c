// SPDX-License-Identifier: Apache-2.0
// The text of `fncache render --help`, from the rows of the flags' table.
//
// Pure function, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_HELP_H_
#define FNCACHE_RUNNER_RENDER_HELP_H_

#include <string>
#include <vector>

namespace fncache::runner::render {

struct FlagHelp {
  // The section of the help that has the flag.
  enum class Group {
    kInputs,
    kFunctions,
    kOutput,
    kMany,
    kHidden,  // nowhere: it is taken for the reference command's sake
  };

  std::string short_name;  // `-o`, or empty
  std::string name;        // `--observed-resources`
  std::string argument;    // `PATH`; empty = a switch
  Group group = Group::kHidden;
  std::string text;  // on one line
  // How several are given; empty = the last one counts.
  std::string repeats = {};
};

// Lines of at most 80 columns; flags in the order of `rows`.
std::string HelpText(const std::vector<FlagHelp>& rows);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_HELP_H_
