// SPDX-License-Identifier: Apache-2.0
// A request's identity, and the last writers of its objects.
//
// Pure functions over the nodes of a request (nodes.h); thread-safe.
#ifndef FNCACHE_INSIGHT_REQUEST_IDENTITY_H_
#define FNCACHE_INSIGHT_REQUEST_IDENTITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "insight/request/compare.h"
#include "insight/request/nodes.h"

namespace fncache::insight::request {

// The composite, from observed.composite.resource. Empty where not found.
struct CompositeName {
  std::string api_version;
  std::string kind;
  std::string object_namespace;
  std::string name;
  std::string uid;
  bool known() const { return !name.empty() || !uid.empty(); }
};
CompositeName CompositeOf(absl::Span<const Node> nodes);

// A hash that two requests share if one could be the other's predecessor. It
// covers the composite (kind, namespace, name, uid), the input, the names of
// required and extra resources and of required schemas, and `function`. (The
// step and the round of the requirements loop are not on the wire.)
uint64_t IdentityOf(absl::string_view function, absl::Span<const Node> nodes);

// The newest managedFields entry of an object of the request.
struct ObjectWriter {
  std::string object;  // path: `observed.resources.bucket.resource`
  std::string manager;
  std::string operation;
  std::string subresource;
  absl::Time time = absl::InfiniteFuture();  // without one
};
// One for each object of the request that has managedFields, in the order of
// nodes.
std::vector<ObjectWriter> WritersOf(absl::Span<const Node> nodes);

// The length of the prefix of a path that names its object; 0 for none.
// Elements of lists are indices or `*`.
size_t ObjectSegments(const std::vector<PathSegment>& segments);
// The object that contains the path: `observed.composite.resource`,
// `required_resources.K.items[0].resource`...; "" if there is none.
std::string ObjectOf(absl::string_view path);

// The section of the request that contains the path, in the words of the docs:
// "composite", "observed resource", "desired", "input", "context",
// "credentials", "required resource", "schema", "meta", "other".
std::string SectionOf(absl::string_view path);

// The mask that hides `path` (as RequestNodes::Spell writes it): indices become
// `*`, names of composed and required resources become `*`. Empty if no mask
// that the key contract allows hides it.
std::string MaskFor(absl::string_view path);

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_IDENTITY_H_
