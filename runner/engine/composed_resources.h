// SPDX-License-Identifier: Apache-2.0
// The composed resources: those that the last step desires, with the names,
// labels and owners that the reference runner gives them, and those that exist
// but are no longer desired.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_COMPOSED_RESOURCES_H_
#define FNCACHE_RUNNER_ENGINE_COMPOSED_RESOURCES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1_fwd.h"
#include "runner/engine/events.h"
#include "runner/engine/observed.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
using google::protobuf::Value;

struct ComposedResource {
  std::string name;  // the composition resource name
  Struct resource;
  bool ready = false;
};

struct Composed {
  std::vector<ComposedResource> resources;  // sorted by name
  std::vector<Struct> deleted;              // sorted by name
  // The composite's resourceRefs, a list that is empty if nothing is composed.
  Value references;
  // Warnings of namespaces that were overridden.
  std::vector<Event> events;
};

using RandomSource = std::function<uint64_t()>;

// Makes the resources that are to be applied. `composite` is the one that the
// steps observed. `random` makes the name of a resource whose composition
// resource name is empty. The error's message says, in the reference runner's
// words, why nothing could be composed.
absl::StatusOr<Composed> Compose(const Struct& composite,
                                 const ObservedResources& observed,
                                 apiextensions::fn::proto::v1::State desired,
                                 const RandomSource& random);

// The name of the composed resource `name` of the composite with this UID.
std::string ComposedName(absl::string_view generate_name,
                         absl::string_view composite_uid,
                         absl::string_view name);

// Whether `name` is an RFC 1123 subdomain of at most 253 bytes. Of RBAC roles
// and bindings, by `api_version` and `kind`, that is what must remain without
// every `:`, so that a name may begin or end with one.
bool IsValidName(absl::string_view api_version, absl::string_view kind,
                 absl::string_view name);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_COMPOSED_RESOURCES_H_
