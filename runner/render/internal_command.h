// SPDX-License-Identifier: Apache-2.0
// `fncache internal render`: the render engine behind the engine protocol that
// Crossplane's own command line speaks to the binary it renders with, so that
// `crossplane render --crossplane-binary fncache` works.
//
// One binary RenderRequest on standard input, one RenderResponse on standard
// output (proto/render.proto).
#ifndef FNCACHE_RUNNER_RENDER_INTERNAL_COMMAND_H_
#define FNCACHE_RUNNER_RENDER_INTERNAL_COMMAND_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::runner::render {

// Runs the command. `argv[0]` is the command's name (`internal`), `render` and
// the flags follow. Returns the process' exit code, which is the reference
// engine's:
//
//   0   success
//   3   a step returned a FATAL result; stdout has what could be rendered
//   80  bad usage, with nothing on stdout
//   1   any other failure, with nothing on stdout
//
// The error is on stderr, behind `crossplane: error: `. Call it from main,
// before other threads exist.
int InternalMain(int argc, char** argv);

// Return the text that --help prints, and the flags that it explains.
std::string InternalHelp();
std::vector<CommandFlag> InternalCommandFlags();

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_INTERNAL_COMMAND_H_
