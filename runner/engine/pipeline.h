// SPDX-License-Identifier: Apache-2.0
// RunPipeline: a Composition's steps, one after the other, each called until
// its requirements are met, as the reference runner calls them.
//
// Asynchronous: no thread waits for a function, so that thousands of pipelines
// run at once on the few threads of their FunctionCaller.
#ifndef FNCACHE_RUNNER_ENGINE_PIPELINE_H_
#define FNCACHE_RUNNER_ENGINE_PIPELINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/clock.h"
#include "proto/function_v1.pb.h"
#include "runner/client/function_caller.h"
#include "runner/engine/composition.h"
#include "runner/engine/object_store.h"
#include "runner/engine/request_tag.h"
#include "runner/engine/schema_source.h"

namespace fncache::runner::engine {

// All capabilities of the runner, in the order in which it advertises them.
std::vector<apiextensions::fn::proto::v1::Capability> AllCapabilities();

// Reports one call that has ended. It refers to the pipeline's data, so it is
// valid only within OnCall.
struct CallReport {
  absl::string_view step;
  absl::string_view function;
  int step_index = 0;  // from 0
  int call = 0;        // of the step, from 1
  const apiextensions::fn::proto::v1::RunFunctionRequest& request;
  const client::CallResult& result;
  absl::Time started;
  absl::Duration took;
};

// Sees every call of a pipeline. OnCall is called from any thread, but for one
// pipeline never by two at once.
class PipelineObserver {
 public:
  virtual ~PipelineObserver() = default;
  virtual void OnCall(const CallReport& report) = 0;
};

// An observed state that many pipelines share. They read it at once, and it is
// encoded for their tags only once. Immutable.
class SharedObserved {
 public:
  explicit SharedObserved(apiextensions::fn::proto::v1::State state)
      : request_(With(&state)), tagger_(request_) {}

  const apiextensions::fn::proto::v1::State& state() const {
    return request_.observed();
  }
  const RequestTagger& tagger() const { return tagger_; }

 private:
  static apiextensions::fn::proto::v1::RunFunctionRequest With(
      apiextensions::fn::proto::v1::State* state) {
    apiextensions::fn::proto::v1::RunFunctionRequest request;
    request.mutable_observed()->Swap(state);
    return request;
  }

  const apiextensions::fn::proto::v1::RunFunctionRequest request_;
  const RequestTagger tagger_;
};

struct PipelineInput {
  std::shared_ptr<const Composition> composition;
  // Every step gets this as `observed`.
  apiextensions::fn::proto::v1::State observed;
  // In place of `observed`, if it is not null.
  std::shared_ptr<const SharedObserved> shared_observed;
  // The source of required resources and credentials; null counts as an empty
  // store.
  std::shared_ptr<const ObjectStore> objects;
  // The source of required schemas. Null finds none, so that every schema that
  // a function requires is empty.
  std::shared_ptr<SchemaSource> schemas;
  std::vector<apiextensions::fn::proto::v1::Capability> capabilities =
      AllCapabilities();
  // The deadline of the whole pipeline.
  absl::Time deadline = absl::InfiniteFuture();
  // The most time for all calls of one step together.
  absl::Duration step_timeout = absl::InfiniteDuration();
};

struct PipelineResult {
  std::string step;
  apiextensions::fn::proto::v1::Result result;
};

struct PipelineOutcome {
  // If not ok, the pipeline failed at a step. The message is the runner's, such
  // as `cannot run Composition pipeline step "S": rpc error: ...`
  // or `pipeline step "S" returned a fatal result: MSG`.
  absl::Status status;
  // Whether it failed by a FATAL result. Results and conditions are then those
  // before it, in the same response too.
  bool fatal = false;
  apiextensions::fn::proto::v1::State desired;
  // The context of the last response; nullopt if it had none.
  absl::optional<google::protobuf::Struct> context;
  std::vector<PipelineResult> results;
  // The conditions of all steps' last responses, in the order of the steps.
  std::vector<apiextensions::fn::proto::v1::Condition> conditions;
  // The smallest TTL over zero of the steps' last responses, or zero if none of
  // them has one.
  absl::Duration ttl = absl::ZeroDuration();
  // Everything that was fetched, in order, including repeats and the bootstrap
  // requirements of a Composition.
  std::vector<apiextensions::fn::proto::v1::ResourceSelector> fetched_resources;
  std::vector<apiextensions::fn::proto::v1::SchemaSelector> fetched_schemas;
};

// Runs the pipeline and calls `done` exactly once, on any thread, perhaps
// before it returns. `caller`, `clock` and `observer` (which may be null) must
// outlive that.
void RunPipeline(PipelineInput input, client::FunctionCaller* caller,
                 Clock* clock, PipelineObserver* observer,
                 std::function<void(PipelineOutcome)> done);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_PIPELINE_H_
