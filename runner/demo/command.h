// SPDX-License-Identifier: Apache-2.0
// `fncache demo` shows on one machine, in about a minute, what fncache does.
//
// It starts `function` and `serve` of this same binary as child processes,
// sends them realistic traffic, and reports what the cache saved.
#ifndef FNCACHE_RUNNER_DEMO_COMMAND_H_
#define FNCACHE_RUNNER_DEMO_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::runner::demo {

// Runs the demo. `argv[0]` is the command's name, the flags follow. Returns the
// process' exit code: 0 only if everything that the demo claims held. Call it
// from main, before other threads exist.
int DemoMain(int argc, char** argv);

// Return the text that --help prints, and the flags that it explains.
std::string DemoHelp();
std::vector<CommandFlag> DemoCommandFlags();

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_COMMAND_H_
