// SPDX-License-Identifier: Apache-2.0
// The defaults that an API server would have filled into a composite, from its
// CompositeResourceDefinition (XRD).
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_COMPOSITE_DEFAULTS_H_
#define FNCACHE_RUNNER_ENGINE_COMPOSITE_DEFAULTS_H_

#include "absl/status/status.h"
#include "text/json.h"

namespace fncache::runner::engine {

// Fills in the defaults of `definition`'s schema for the composite's version,
// by Kubernetes' structural defaulting. As in the reference command line, this
// is only below `spec`, and below `status` where the composite has one, since
// it derives the schema that an API server would have got. InvalidArgument if
// the definition does not have that version, or a version without a schema.
absl::Status ApplyDefaults(const text::Json& definition, text::Json* composite);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_COMPOSITE_DEFAULTS_H_
