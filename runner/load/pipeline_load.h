// SPDX-License-Identifier: Apache-2.0
// RunPipelineLoad: one load run of whole pipelines, by the reconciler's model,
// in an open or a closed loop.
//
// Blocks; its threads end before it returns.
#ifndef FNCACHE_RUNNER_LOAD_PIPELINE_LOAD_H_
#define FNCACHE_RUNNER_LOAD_PIPELINE_LOAD_H_

#include <functional>

#include "absl/status/status.h"
#include "runner/load/measure.h"
#include "runner/load/options.h"
#include "runner/load/results.h"
#include "runner/render/inputs.h"

namespace fncache::runner::load {

struct PipelineLoadHooks {
  // Asked at least ten times a second, with the phase (settle, warmup,
  // measure; drain, when no pipeline is started any more) and how many
  // composites there are; true ends the run, and what is under way then is in
  // no count.
  std::function<bool(const char* phase, uint64_t ready, uint64_t composites)>
      stop;
  // When the warm-up is over, before anything counts.
  std::function<void()> on_start;
};

// Fills what Measure does not: settle, composites.
absl::Status RunPipelineLoad(const LoadOptions& options,
                             const render::RenderInputs& inputs,
                             const PipelineLoadHooks& hooks, Measure* measure,
                             LoadResults* results);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_PIPELINE_LOAD_H_
