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
#include "runner/schemas.h"

namespace fncache::runner::engine {

// How often a step is called at most: once, and five times more while its
// requirements change.
inline constexpr int kMaxCallsOfStep = 6;

// All that the runner has, in the order that it advertises them.
std::vector<apiextensions::fn::proto::v1::Capability> AllCapabilities();

// One call, when it has ended. Valid only within OnCall.
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

// Calls come from any thread, for one pipeline one after the other.
class PipelineObserver {
 public:
  virtual ~PipelineObserver() = default;
  virtual void OnCall(const CallReport& report) = 0;
};

struct PipelineInput {
  std::shared_ptr<const Composition> composition;
  // What every step sees as `observed`.
  apiextensions::fn::proto::v1::State observed;
  // Null: nothing is found.
  std::shared_ptr<const ObjectStore> objects;
  // Null: every schema is empty.
  std::shared_ptr<SchemaSource> schemas;
  std::vector<apiextensions::fn::proto::v1::Capability> capabilities =
      AllCapabilities();
  // Of the whole pipeline.
  absl::Time deadline = absl::InfiniteFuture();
  // Of all calls of one step together.
  absl::Duration step_timeout = absl::InfiniteDuration();
};

struct PipelineResult {
  std::string step;
  apiextensions::fn::proto::v1::Result result;
};

struct PipelineOutcome {
  // Not ok: the pipeline failed at a step; the message is what the runner
  // prints, such as `cannot run Composition pipeline step "S": rpc error: ...`
  // or `pipeline step "S" returned a fatal result: MSG`.
  absl::Status status;
  // Whether it failed by a FATAL result. Results and conditions are then those
  // before it, in the same response too.
  bool fatal = false;
  apiextensions::fn::proto::v1::State desired;
  // Of the last response; nullopt if it had none.
  absl::optional<google::protobuf::Struct> context;
  std::vector<PipelineResult> results;
  // Of all steps' last responses, in their order.
  std::vector<apiextensions::fn::proto::v1::Condition> conditions;
  // The smallest TTL over zero of the steps' last responses; zero = none.
  absl::Duration ttl = absl::ZeroDuration();
  // Every fetch, repeats and bootstrap included, in order.
  std::vector<apiextensions::fn::proto::v1::ResourceSelector> fetched_resources;
  std::vector<apiextensions::fn::proto::v1::SchemaSelector> fetched_schemas;
};

// Runs the pipeline and calls `done` exactly once, on any thread, perhaps
// before it returns. `caller`, `clock` and `observer` (which may be null)
// outlive that.
void RunPipeline(PipelineInput input, client::FunctionCaller* caller,
                 Clock* clock, PipelineObserver* observer,
                 std::function<void(PipelineOutcome)> done);

// The tag of a step: lower-case hex SHA-256 of the deterministic encoding of
// its first request before `meta` is set.
std::string RequestTag(
    const apiextensions::fn::proto::v1::RunFunctionRequest& request);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_PIPELINE_H_
