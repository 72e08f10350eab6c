// SPDX-License-Identifier: Apache-2.0
// RunPipelineLoad: one load run of whole pipelines, by the reconciler's model,
// in an open or a closed loop.
//
// Blocks; its threads end before it returns.
#ifndef FNCACHE_RUNNER_LOAD_PIPELINE_LOAD_H_
#define FNCACHE_RUNNER_LOAD_PIPELINE_LOAD_H_

#include "absl/status/status.h"
#include "runner/load/measure.h"
#include "runner/load/options.h"
#include "runner/load/pipeline_hooks.h"
#include "runner/load/results.h"
#include "runner/render/inputs.h"

namespace fncache::runner::load {

// Fills what Measure does not: settle, composites, unreached, verdict.
//
// Unavailable, with function, target and reason (also as settle.failure), if
// composites are to settle and calls find no connection to a function for
// kUnreached, or if pipelines have failed and none has succeeded within
// options.patience. Where they do not have to settle, a function without
// connection causes a warning. Calls that wait for it at the end of the run are
// cancelled and not counted (results->unreached). Where no call was ever
// answered, calls that still wait options.patience after the duration are
// cancelled, and count as failed.
absl::Status RunPipelineLoad(const LoadOptions& options,
                             const render::RenderInputs& inputs,
                             const PipelineLoadHooks& hooks, Measure* measure,
                             LoadResults* results);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_PIPELINE_LOAD_H_
