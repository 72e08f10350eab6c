// SPDX-License-Identifier: Apache-2.0
// The render engine: computes what the runner would do with one composite
// resource, from existing objects and functions to call. It prepares the
// composite, runs the pipeline, and works out the objects to apply.
//
// Asynchronous and without state of its own: any number of renders at once.
#ifndef FNCACHE_RUNNER_ENGINE_ENGINE_H_
#define FNCACHE_RUNNER_ENGINE_ENGINE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/clock.h"
#include "google/protobuf/struct.pb.h"
#include "proto/render.pb.h"
#include "runner/client/function_caller.h"
#include "runner/engine/composition.h"
#include "runner/engine/pipeline.h"
#include "runner/engine/schema_source.h"

namespace fncache::runner::engine {

// One composite and all that a render of it needs. Pointers refer to objects
// that many renders share. A null list counts as an empty one.
struct EngineInput {
  using Objects = std::shared_ptr<const std::vector<google::protobuf::Struct>>;

  google::protobuf::Struct composite;
  std::shared_ptr<const Composition> composition;
  Objects observed;
  Objects required;
  Objects credentials;  // Secrets
  std::shared_ptr<SchemaSource> schemas;
  // The CompositeResourceDefinition, if there is one.
  std::shared_ptr<const google::protobuf::Struct> definition;
};

// The reference's checks before it reads the composition, which may be absent:
// the composite's schema, and the observed objects.
absl::Status CheckComposite(const EngineInput& input);

struct EngineOptions {
  std::vector<apiextensions::fn::proto::v1::Capability> capabilities =
      AllCapabilities();
  absl::Time deadline = absl::InfiniteFuture();
  absl::Duration step_timeout = absl::InfiniteDuration();
};

struct EngineOutcome {
  // If not ok, it says why nothing could be rendered, or with `fatal` why not
  // everything could. The reference engine prints its message behind
  // `crossplane: error: `.
  absl::Status status;
  // Whether a step's FATAL result ended the render. `output` then has the
  // composite and the events, but no composed resources.
  bool fatal = false;
  crossplane::render::v1alpha1::CompositeOutput output;
  // The time after which the runner would reconcile again; zero means that it
  // would not do so automatically.
  absl::Duration ttl = absl::ZeroDuration();
};

// Renders and calls `done` exactly once, on any thread, perhaps before it
// returns. `caller`, `clock` and `observer` (which may be null) must outlive
// that.
void Render(EngineInput input, const EngineOptions& options,
            client::FunctionCaller* caller, Clock* clock,
            PipelineObserver* observer,
            std::function<void(EngineOutcome)> done);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_ENGINE_H_
