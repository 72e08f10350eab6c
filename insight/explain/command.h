// SPDX-License-Identifier: Apache-2.0
// `fncache explain`: why requests missed, from a trace or from two requests.
#ifndef FNCACHE_INSIGHT_EXPLAIN_COMMAND_H_
#define FNCACHE_INSIGHT_EXPLAIN_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::insight::explain {

// Runs it: argv[0] is its name. Returns the exit code.
int ExplainMain(int argc, char** argv);
// The text that --help prints.
std::string ExplainHelp();
// The flags that the help explains.
std::vector<CommandFlag> ExplainCommandFlags();

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_COMMAND_H_
