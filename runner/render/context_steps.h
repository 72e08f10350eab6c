// SPDX-License-Identifier: Apache-2.0
// The steps that the reference runner's command line puts around a pipeline for
// its context: one before it that gives it values, one behind it that keeps
// what is left.
//
// To the engine they are ordinary steps. Their function is served here, in the
// process, so that the steps of a Composition see exactly what they would
// there: the first one `desired: {}` and the values as context.
#ifndef FNCACHE_RUNNER_RENDER_CONTEXT_STEPS_H_
#define FNCACHE_RUNNER_RENDER_CONTEXT_STEPS_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "google/protobuf/struct.pb.h"
#include "runner/client/function_caller.h"
#include "runner/engine/composition.h"

namespace fncache::runner::render {

inline constexpr char kContextFunction[] = "crossplane-render-context";
inline constexpr char kSeedStep[] = "crossplane-render-inject-context";
inline constexpr char kCaptureStep[] = "crossplane-render-extract-context";

// `composition` with the step before (`seed`), the one behind (`capture`), or
// both.
engine::Composition WithContextSteps(engine::Composition composition, bool seed,
                                     bool capture);

// Answers the calls of kContextFunction itself and passes all others on.
// Thread-safe; one for each render, since it keeps that one's context.
class ContextSteps : public client::FunctionCaller {
 public:
  // `functions` is not owned. `values` are what the seeding step gives.
  ContextSteps(client::FunctionCaller* functions,
               google::protobuf::Struct values);

  void Call(const std::string& function,
            const apiextensions::fn::proto::v1::RunFunctionRequest& request,
            absl::Time deadline, Done done) override;

  // The context that the last capturing step was called with; nullopt if it had
  // none, or no such step ran.
  absl::optional<google::protobuf::Struct> captured() const;

 private:
  client::CallResult Answer(
      const apiextensions::fn::proto::v1::RunFunctionRequest& request);

  client::FunctionCaller* const functions_;
  const google::protobuf::Struct values_;
  mutable Mutex mutex_;
  absl::optional<google::protobuf::Struct> captured_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_CONTEXT_STEPS_H_
