// SPDX-License-Identifier: Apache-2.0
// `fncache admin`: looks into a running daemon and changes it.
#ifndef FNCACHE_PROXY_ADMIN_COMMAND_H_
#define FNCACHE_PROXY_ADMIN_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::proxy::admin {

// Runs it: argv[0] is its name. Returns the exit code: 0; 1 for the world's
// reasons, or where a part was not reached; 2 for wrong usage.
int AdminMain(int argc, char** argv);
// The text that --help prints.
std::string AdminHelp();
// The flags of all its commands.
std::vector<CommandFlag> AdminCommandFlags();
// Its commands, for completion.
std::vector<std::string> AdminWords();

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_COMMAND_H_
