// SPDX-License-Identifier: Apache-2.0
// The CompositionRevision that the reference engine makes of a Composition. It
// is among the objects of a render, so that functions can require it.
//
// Pure function, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_COMPOSITION_REVISION_H_
#define FNCACHE_RUNNER_ENGINE_COMPOSITION_REVISION_H_

#include "absl/time/time.h"
#include "proto/struct_fwd.h"
#include "runner/engine/composition.h"

namespace fncache::runner::engine {

// Revision 1 of `composition`, found to be valid at `now`. Its name and one of
// its labels have the hash of the Composition that the reference computes.
google::protobuf::Struct CompositionRevision(const Composition& composition,
                                             absl::Time now);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_COMPOSITION_REVISION_H_
