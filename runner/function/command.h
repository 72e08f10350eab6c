// SPDX-License-Identifier: Apache-2.0
// `fncache function`: a real composition function, which demo, tests and
// benches put behind the proxy.
//
// It renders resources from its input (docs/function.md) or answers from
// recordings, with a settable cost, TTL and failure rate.
#ifndef FNCACHE_RUNNER_FUNCTION_COMMAND_H_
#define FNCACHE_RUNNER_FUNCTION_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::runner::function {

// Runs the command until SIGTERM or SIGINT. `argv[0]` is the command's name,
// the flags follow. Returns the process' exit code: 0, 1 where it cannot start
// (port taken, file missing), 2 for flags that do not fit. Call it from
// main, before other threads exist: it blocks signals for the whole process.
int FunctionMain(int argc, char** argv);

// Return the text that --help prints, and the flags that it explains.
std::string FunctionHelp();
std::vector<CommandFlag> FunctionCommandFlags();

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_COMMAND_H_
