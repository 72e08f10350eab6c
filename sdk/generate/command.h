// SPDX-License-Identifier: Apache-2.0
// `fncache sdk`: models for functions in C++, and projects to begin with.
#ifndef FNCACHE_SDK_GENERATE_COMMAND_H_
#define FNCACHE_SDK_GENERATE_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::sdk {

// Runs it: argv[0] is its name. Returns the exit code.
int SdkMain(int argc, char** argv);
// The text that --help prints.
std::string SdkHelp();
// The flags of its commands.
std::vector<CommandFlag> SdkCommandFlags();
// The names of its commands.
std::vector<std::string> SdkWords();

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_GENERATE_COMMAND_H_
