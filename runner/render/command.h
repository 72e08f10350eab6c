// SPDX-License-Identifier: Apache-2.0
// `fncache render`: what Crossplane would apply for a composite resource, by
// running its Composition's pipeline against running functions. A stand-in for
// the reference runner's own command, down to messages and exit codes, without
// its engine's container.
#ifndef FNCACHE_RUNNER_RENDER_COMMAND_H_
#define FNCACHE_RUNNER_RENDER_COMMAND_H_

namespace fncache::runner::render {

// Runs the command. `argv[0]` is the command's name, flags and files follow.
// Returns the process' exit code; of several composites the highest:
//
//    0    success
//    1    something cannot be rendered
//    80   bad usage, also an absent XR, Composition or definition
//    255  the time is over
//
// SIGINT ends the process at once with 130. Call it from main, before other
// threads exist.
int RenderMain(int argc, char** argv);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_COMMAND_H_
