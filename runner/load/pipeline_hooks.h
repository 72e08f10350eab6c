// SPDX-License-Identifier: Apache-2.0
// PipelineLoadHooks: callbacks of a load run.
#ifndef FNCACHE_RUNNER_LOAD_PIPELINE_HOOKS_H_
#define FNCACHE_RUNNER_LOAD_PIPELINE_HOOKS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace fncache::runner::load {

struct PipelineLoadHooks {
  // Called at least ten times a second, with the phase (settle, warmup,
  // measure; drain, when no pipeline is started any more) and the number of
  // composites. True ends the run, and pipelines in progress then are not
  // counted.
  std::function<bool(const char* phase, uint64_t ready, uint64_t composites)>
      stop;
  // When the warm-up is over, before anything counts.
  std::function<void()> on_start;
  // Shows one sentence during the run.
  std::function<void(const std::string& text)> warn;
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_PIPELINE_HOOKS_H_
