// SPDX-License-Identifier: Apache-2.0
// The output composite of a render, and its events.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_RENDERED_COMPOSITE_H_
#define FNCACHE_RUNNER_ENGINE_RENDERED_COMPOSITE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "proto/render.pb.h"
#include "runner/engine/composite_schema.h"
#include "runner/engine/events.h"
#include "runner/engine/object_store.h"
#include "runner/engine/pipeline.h"
#include "runner/engine/prepared_composite.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
using google::protobuf::Value;

using FunctionConditions = std::vector<apiextensions::fn::proto::v1::Condition>;

// The pipeline's results for the composite, and the composed resources.
struct RenderedComposite {
  // desired.composite of the last step, without its connection details.
  Struct desired;
  apiextensions::fn::proto::v1::Ready ready =
      apiextensions::fn::proto::v1::READY_UNSPECIFIED;
  Value references;                  // the resourceRefs
  std::vector<std::string> unready;  // of composed resources, sorted
  FunctionConditions conditions;
};

// The composite of a render that succeeded: type, name and namespace, a spec
// with nothing but the references, and the desired status with conditions set.
// Where that status equals the one the composite came with, the runner writes
// nothing, so that what it wrote last counts: the whole composite as the steps
// observed it.
Struct SuccessfulComposite(const PreparedComposite& prepared,
                           CompositeSchema schema, RenderedComposite rendered,
                           absl::Time now);

// The composite of a render that ended early. The runner has written back its
// status only, unless it had written all of it before (`prepared.updated`), so
// everything but the status is that of `stored`, the object that the store had.
Struct WholeComposite(const PreparedComposite& prepared, const Struct& stored);

// Sets the conditions of a render that a FATAL result ended with `error`
// (`cannot compose resources: ...`).
void SetFatalConditions(const FunctionConditions& conditions,
                        CompositeSchema schema, const std::string& error,
                        absl::Time now, Struct* composite);

// The resources that are not ready, by name, and an event for each.
struct Unready {
  std::vector<std::string> names;
  std::vector<Event> events;
};
struct Readiness {
  absl::string_view name;
  bool ready = false;
};
// A resource without a name is called by its index in `resources`.
Unready UnreadyOf(const std::vector<Readiness>& resources);

// Lists names for a message: "a", "a, b", "a, b, and c", "a, b, c, and 2 more".
std::string SomeOf(const std::vector<std::string>& names);

// The event of a step's result. With `detailed` it names the step, as events of
// a composite do; without, it is as for its claim.
Event EventOf(const PipelineResult& result, bool detailed);

// Whether `composite` is legacy and refers to a claim that is in the store.
bool HasClaim(const Struct& composite, CompositeSchema schema,
              const ObjectStore& objects);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_RENDERED_COMPOSITE_H_
