// RenderTrace: tells people what each call of a pipeline did, as `render
// --trace` prints it on stderr:
//
//   step 2/3 "service" (function-patch-and-transform): 3.1ms, cache: hit
//     + desired.resources.service (v1 Service)
//       +   spec:
//     ...
//
// One for each render; its calls come one after the other. Values of desired
// state and context show, secrets do not (runner/render/state_diff.h).
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
  // `print` gets whole lines, all of a call at once. `steps` is how many the
  // pipeline has; `title` stands before each call's first line, "" = nothing.
  RenderTrace(int steps, std::string title,
              std::function<void(const std::string&)> print);

  void OnCall(const engine::CallReport& report) override;

 private:
  const int steps_;
  const std::string title_;
  const std::function<void(const std::string&)> print_;
  // What the last call of the step that is running answered, to tell what the
  // next one changes.
  apiextensions::fn::proto::v1::RunFunctionResponse last_;
};

// The lines of one call; `before` is the desired state and context that its
// answer is compared with.
std::string DescribeCall(
    const engine::CallReport& report, int steps,
    const apiextensions::fn::proto::v1::State& before_desired,
    const google::protobuf::Struct& before_context);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_TRACE_H_
