// SPDX-License-Identifier: Apache-2.0
// Commands of the binary as data: what its list of commands, the completion of
// a shell and the manual's pages are made from.
#ifndef FNCACHE_PROGRAM_COMMAND_H_
#define FNCACHE_PROGRAM_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::program {

struct Command {
  std::string name;
  // Its purpose, as a phrase within a line.
  std::string purpose;
  // Runs it: argv[0] is its name. Returns the process' exit code.
  int (*run)(int argc, char** argv) = nullptr;
  // Returns the text that `--help` prints. A heading begins at the start of a
  // line and ends in a colon; "Usage: " is one. The text below a heading is
  // indented.
  std::string (*help)() = nullptr;
  std::vector<CommandFlag> (*flags)() = nullptr;
  // Besides flags it takes one of these words, or files.
  std::vector<std::string> words;
  bool takes_files = false;
};

}  // namespace fncache::program

#endif  // FNCACHE_PROGRAM_COMMAND_H_
