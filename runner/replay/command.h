// SPDX-License-Identifier: Apache-2.0
// `fncache replay`: what a trace holds, what other settings would have given
// for it, and playing it again to a function or a daemon.
#ifndef FNCACHE_RUNNER_REPLAY_COMMAND_H_
#define FNCACHE_RUNNER_REPLAY_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"
#include "insight/whatif/settings.h"

namespace fncache::runner::replay {

// Runs it: argv[0] is its name. `settings` knows the daemon's settings by name.
// Returns the exit code.
int ReplayMain(int argc, char** argv,
               const insight::whatif::SettingsReader& settings);
// The text that --help prints.
std::string ReplayHelp();
// The flags that the help explains.
std::vector<CommandFlag> ReplayCommandFlags();

}  // namespace fncache::runner::replay

#endif  // FNCACHE_RUNNER_REPLAY_COMMAND_H_
