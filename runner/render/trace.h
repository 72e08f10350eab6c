// SPDX-License-Identifier: Apache-2.0
// RenderTrace: shows what each call of a pipeline did, as `render --trace`
// prints it on stderr:
//
//   step 2/3 "service" (function-patch-and-transform): 3.1ms, cache: hit
//     fncache-depends: reads=("observed.composite.resource.spec.size")
//     + desired.resources.service (v1 Service)
//       +   spec:
//     ...
//
// One for each render; its calls come one after the other. Values of desired
// state and context show, secrets do not (runner/render/state_diff.h). A
// function's text cannot control a terminal: only our colors do.
#ifndef FNCACHE_RUNNER_RENDER_TRACE_H_
#define FNCACHE_RUNNER_RENDER_TRACE_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/pipeline.h"

namespace fncache::runner::render {

class RenderTrace : public engine::PipelineObserver {
 public:
  // `print` gets whole lines, all of a call at once. `steps` is the number of
  // the pipeline's steps. `title` precedes each call's first line, "" =
  // nothing. `color` is for terminals.
  RenderTrace(int steps, std::string title, bool color,
              std::function<void(const std::string&)> print);

  void OnCall(const engine::CallReport& report) override;

 private:
  const int steps_;
  const std::string title_;
  const bool color_;
  const std::function<void(const std::string&)> print_;
  // The last answer of the step that is running, which the next one is compared
  // with.
  apiextensions::fn::proto::v1::RunFunctionResponse last_;
};

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_TRACE_H_
