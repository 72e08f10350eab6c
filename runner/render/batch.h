// SPDX-License-Identifier: Apache-2.0
// Renders several composites at the same time, which share functions,
// composition, schemas and objects.
#ifndef FNCACHE_RUNNER_RENDER_BATCH_H_
#define FNCACHE_RUNNER_RENDER_BATCH_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/clock.h"
#include "google/protobuf/struct.pb.h"
#include "runner/client/function_caller.h"
#include "runner/engine/engine.h"
#include "runner/engine/pipeline.h"
#include "runner/render/inputs.h"

namespace fncache::runner::render {

struct BatchOptions {
  std::vector<apiextensions::fn::proto::v1::Capability> capabilities =
      engine::AllCapabilities();
  // The limit for the rendering of each composite.
  absl::Duration timeout = absl::Minutes(1);
  absl::Duration step_timeout = absl::InfiniteDuration();
  int jobs = 16;  // at the same time, at least 1
  // Gets what RenderTrace prints, from any thread; null = no trace.
  std::function<void(const std::string&)> trace;
  bool trace_in_color = false;
  // Called after each one on the thread of RenderAll; null = not at all.
  std::function<void(int done, int failed)> progress;
};

// The call that ended a render.
struct FailedCall {
  std::string step;
  std::string function;
  absl::Status status;  // as the FunctionCaller gave it
};

struct Rendered {
  // A composite that could not be loaded has an outcome as well.
  engine::EngineOutcome outcome;
  // The failed call is absent where the render failed for another reason.
  absl::optional<FailedCall> failed_call;
  absl::optional<google::protobuf::Struct> context;
  // Whether it failed because its time was over.
  bool timed_out = false;
};

// One for each of the inputs' composites, in their order. Blocks until all are
// done. `functions` and `clock` outlive it.
std::vector<Rendered> RenderAll(const RenderInputs& inputs,
                                const BatchOptions& options,
                                client::FunctionCaller* functions,
                                Clock* clock);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_BATCH_H_
