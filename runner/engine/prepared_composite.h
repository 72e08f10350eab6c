// SPDX-License-Identifier: Apache-2.0
// Prepares a composite for its pipeline: fills in, sets and removes what the
// reference runner (Crossplane v2.4) does before it calls the first function,
// in the same order.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_PREPARED_COMPOSITE_H_
#define FNCACHE_RUNNER_ENGINE_PREPARED_COMPOSITE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "google/protobuf/struct.pb.h"
#include "runner/engine/composite_schema.h"
#include "runner/engine/composition.h"
#include "runner/engine/events.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
using google::protobuf::Value;

// The UID of a composite that has none: a UUID of version 5, made of its group,
// version, kind, namespace and name.
std::string DefaultUid(const Struct& composite);

// Sets the UID, if it is empty, and the resourceVersion. This comes first,
// since observed resources are checked against the UID.
void IdentifyComposite(Struct* composite);

struct PreparedComposite {
  // The composite that every step observes. If it is paused or deleted, this is
  // the output.
  Struct composite;
  std::vector<Event> events;
  // Whether no function is called, because it is paused or deleted.
  bool finished = false;
  // Whether the runner would have written the whole composite back by now, not
  // only its status.
  bool updated = false;
  // The status that the composite came with.
  absl::optional<Value> original_status;
};

// Does everything else, to the composite as the object store holds it.
PreparedComposite PrepareComposite(Struct stored, CompositeSchema schema,
                                   const Composition& composition,
                                   absl::Time now);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_PREPARED_COMPOSITE_H_
