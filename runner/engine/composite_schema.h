// SPDX-License-Identifier: Apache-2.0
// The two schemas that composites can have, modern and legacy, and where each
// keeps the runner's own fields.
//
// Pure functions, thread-safe; pointers are into the object given.
#ifndef FNCACHE_RUNNER_ENGINE_COMPOSITE_SCHEMA_H_
#define FNCACHE_RUNNER_ENGINE_COMPOSITE_SCHEMA_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/struct_fwd.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
using google::protobuf::Value;

enum class CompositeSchema {
  kModern,  // the runner's own fields under spec.crossplane
  kLegacy,  // directly under spec; claims and connection secrets
};

// The schema that `definition`, a CompositeResourceDefinition, gives to its
// composites; modern without a definition (null). InvalidArgument if group or
// kind of the two differ, or the definition's apiVersion is none that is known;
// the message is the reference engine's, from `cannot select composite resource
// schema` on.
absl::StatusOr<CompositeSchema> SchemaOf(const Struct* definition,
                                         const Struct& composite);

// The runner's own field: spec.crossplane.FIELD of a modern composite,
// spec.FIELD of a legacy one. Null if it is not there.
const Value* FindOwnField(const Struct& composite, CompositeSchema schema,
                          absl::string_view field);

// Returns false, and changes nothing, if spec (or spec.crossplane) is no map.
bool SetOwnField(CompositeSchema schema, absl::string_view field, Value value,
                 Struct* composite);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_COMPOSITE_SCHEMA_H_
