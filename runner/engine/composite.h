// The composite before the first function is called: what the reference runner
// (Crossplane v2.4) fills in, sets and removes, in its order.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_COMPOSITE_H_
#define FNCACHE_RUNNER_ENGINE_COMPOSITE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "google/protobuf/struct.pb.h"
#include "runner/engine/composition.h"
#include "runner/engine/definition.h"
#include "runner/engine/events.h"
#include "runner/text/object.h"

namespace fncache::runner::engine {

// The runner's own field: spec.crossplane.FIELD of a modern composite,
// spec.FIELD of a legacy one. Null if it is not there.
const Value* FindOwnField(const Struct& composite, CompositeSchema schema,
                          absl::string_view field);
// Returns false, and changes nothing, if spec (or spec.crossplane) is no map.
bool SetOwnField(CompositeSchema schema, absl::string_view field, Value value,
                 Struct* composite);

// A UUID of version 5 made of the composite's group, version, kind, namespace
// and name: what it has for a UID if it has none.
std::string DefaultUid(const Struct& composite);

// What comes first, before observed resources are looked at: the UID, if it is
// empty, and the resourceVersion.
void IdentifyComposite(Struct* composite);

struct PreparedComposite {
  // What every step observes; of one that is paused or deleted, what is put
  // out.
  Struct composite;
  std::vector<Event> events;
  // Paused or deleted: no function is called.
  bool finished = false;
  // Whether the runner would have written the whole composite back by now, not
  // only its status.
  bool updated = false;
  // The status that the composite came with.
  absl::optional<Value> original_status;
};

// Everything else, of the composite as the store holds it.
PreparedComposite PrepareComposite(Struct stored, CompositeSchema schema,
                                   const Composition& composition,
                                   absl::Time now);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_COMPOSITE_H_
