// SPDX-License-Identifier: Apache-2.0
// `fncache health`: checks whether a daemon is well. It serves as a probe in
// images that have no other HTTP client.
#ifndef FNCACHE_PROXY_HEALTH_COMMAND_H_
#define FNCACHE_PROXY_HEALTH_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::proxy {

// Runs the command; argv[0] is its name. Returns the exit code: 0 if the daemon
// is well, 1 if it is not or cannot be reached, 2 for wrong usage.
int HealthMain(int argc, char** argv);
// The text that --help prints.
std::string HealthHelp();
// The flags that the help explains.
std::vector<CommandFlag> HealthCommandFlags();

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_HEALTH_COMMAND_H_
