// SPDX-License-Identifier: Apache-2.0
// TypedObject: objects that have a fixed form (Compositions, Functions,
// CompositeResourceDefinitions, Secrets), read as the reference's programs read
// them: into structs, by the rules of Go's encoding/json.
//
// Unknown fields are dropped, names match in any case, null is absent, and the
// first value of a wrong type is the error, in Go's words. Where the file is
// YAML, a field of text takes a number or a boolean as well, and what it takes
// is Go's text of it: `step: 1e6` is step "1e+06".
//
// Pure functions, thread-safe.
#ifndef FNCACHE_TEXT_TYPED_OBJECT_H_
#define FNCACHE_TEXT_TYPED_OBJECT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/json.h"

namespace fncache::text {

enum class ObjectType { kComposition, kFunction, kDefinition, kSecret };

// Reads what ParseYamlValues gave. The result is the object as Go writes it:
// known fields by their names, without those that Go leaves out.
// InvalidArgument has the message of the reference's YAML reader, from `error
// unmarshaling JSON: ` or `error converting YAML to JSON: ` on.
absl::StatusOr<Json> ReadTypedYaml(ObjectType type, Json values);

// The same of JSON, in which a number is no text. The result is the object as
// Go keeps it: a field that was read stays although it is empty, since Go tells
// an empty map from none. InvalidArgument has Go's message:
// `json: cannot unmarshal ...`.
absl::StatusOr<Json> ReadTypedJson(ObjectType type, const Json& values);

// Whether a value without a form has this one, as Kubernetes converts it: a
// field's name has its case, null is any type's zero, and numbers are doubles.
// InvalidArgument has that converter's message, `cannot restore map from
// string`.
absl::Status CheckUnstructured(ObjectType type, const Json& object);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_TYPED_OBJECT_H_
