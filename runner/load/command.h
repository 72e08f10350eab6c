// SPDX-License-Identifier: Apache-2.0
// `fncache load`: load-tests pipelines, or one function.
#ifndef FNCACHE_RUNNER_LOAD_COMMAND_H_
#define FNCACHE_RUNNER_LOAD_COMMAND_H_

namespace fncache::runner::load {

// argv[0] is the command's name. Returns the process' exit code. LoadHelp and
// LoadCommandFlags are in options.h.
int LoadMain(int argc, char** argv);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_COMMAND_H_
