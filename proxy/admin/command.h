// SPDX-License-Identifier: Apache-2.0
// `fncache admin`: inspects and changes a running daemon.
#ifndef FNCACHE_PROXY_ADMIN_COMMAND_H_
#define FNCACHE_PROXY_ADMIN_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::proxy::admin {

// Runs the command; argv[0] is its name. Returns the exit code: 0 for success,
// 1 for a failure of the environment or if some of the fleet was not reached, 2
// for wrong usage.
int AdminMain(int argc, char** argv);
// The text that --help prints.
std::string AdminHelp();
// The flags of all commands of `fncache admin`.
std::vector<CommandFlag> AdminCommandFlags();
// The commands of `fncache admin`, for completion.
std::vector<std::string> AdminWords();

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_COMMAND_H_
