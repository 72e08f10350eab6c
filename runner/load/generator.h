// SPDX-License-Identifier: Apache-2.0
// The generator of a load: its machine, and whether it was the limit of a run.
#ifndef FNCACHE_RUNNER_LOAD_GENERATOR_H_
#define FNCACHE_RUNNER_LOAD_GENERATOR_H_

#include <map>
#include <string>

#include "runner/load/options.h"
#include "runner/load/results.h"

namespace fncache::runner::load {

// Cores, CPU, memory and kernel.
std::map<std::string, std::string> Machine();

// Sets whether the generator was saturated, and by what.
void JudgeGenerator(const LoadOptions& options, LoadResults* results);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_GENERATOR_H_
