// CompositeResourceDefinitions (XRDs): which schema a composite has, and the
// defaults that an API server would have filled in.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_DEFINITION_H_
#define FNCACHE_RUNNER_ENGINE_DEFINITION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/struct.pb.h"
#include "runner/text/json.h"

namespace fncache::runner::engine {

enum class CompositeSchema {
  kModern,  // the runner's own fields under spec.crossplane
  kLegacy,  // directly under spec; claims and connection secrets
};

// Modern without a definition (null). InvalidArgument if group or kind of the
// two differ, or the definition's apiVersion is none that is known; the message
// is the reference engine's, from `cannot select composite resource schema` on.
absl::StatusOr<CompositeSchema> SchemaOf(
    const google::protobuf::Struct* definition,
    const google::protobuf::Struct& composite);

// Fills in the defaults of `definition`'s schema for the composite's version,
// by Kubernetes' structural defaulting, as the reference command line does:
// only below `spec`, and below `status` where the composite has one, since it
// derives the schema that an API server would have been given. InvalidArgument
// if the definition does not have that version, or a version without a schema.
absl::Status ApplyDefaults(const text::Json& definition, text::Json* composite);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_DEFINITION_H_
