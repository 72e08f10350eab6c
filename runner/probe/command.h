// SPDX-License-Identifier: Apache-2.0
// `fncache probe`: which fields of a request a function's answer depends on,
// found by asking it.
#ifndef FNCACHE_RUNNER_PROBE_COMMAND_H_
#define FNCACHE_RUNNER_PROBE_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::runner::probe {

// Runs it: argv[0] is its name. Returns the exit code.
int ProbeMain(int argc, char** argv);
// The text that --help prints.
std::string ProbeHelp();
// The flags that the help explains.
std::vector<CommandFlag> ProbeCommandFlags();

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_COMMAND_H_
