// SPDX-License-Identifier: Apache-2.0
// The observed state: which of a composite's resources exist before the first
// function is called.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_OBSERVED_H_
#define FNCACHE_RUNNER_ENGINE_OBSERVED_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/composite_schema.h"
#include "runner/engine/object_store.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;

// Whether the composite can have composed `observed`: none is controlled by
// something else, and all are in the namespace of a namespaced composite. The
// error names every one that is not so.
absl::Status CheckObserved(const Struct& composite,
                           const std::vector<Struct>& observed);

// Replaces the composite's resourceRefs by one for each of `observed`. Does
// nothing if there are none.
void ReferToObserved(const std::vector<Struct>& observed,
                     CompositeSchema schema, Struct* composite);

// Observed resources by their composition resource names. The pointers are into
// the store.
using ObservedResources = std::map<std::string, const Struct*>;

struct Observation {
  // Every step gets this as `observed`.
  apiextensions::fn::proto::v1::State state;
  ObservedResources resources;
};

// Looks up the objects that the composite's resourceRefs name, and connection
// details. An error, ready to be reported as the reason that nothing could be
// composed, if one of them does not name its resource or a Secret cannot be
// read.
absl::StatusOr<Observation> Observe(const Struct& composite,
                                    CompositeSchema schema,
                                    const ObjectStore& objects);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_OBSERVED_H_
