// SPDX-License-Identifier: Apache-2.0
// Validate: compares an object with a schema as API servers publish it, an
// OpenAPI v3 schema whose references are replaced (schema_document.h).
//
// It knows types, `nullable`, `enum`, bounds, lengths, `pattern` (RE2), the
// formats int32, int64 and date-time, `required`, unknown fields, `allOf`,
// `anyOf`, `oneOf`, `not` and `x-kubernetes-int-or-string`. Rules in CEL are
// not run. A keyword of the wrong type, a pattern that RE2 does not take and a
// reference that was left cannot be judged, and are no problem. An awaited
// value is present and right.
//
// Thread-safe as far as the object is: the schema is not changed.
#ifndef FNCACHE_SDK_SCHEMA_VALIDATE_H_
#define FNCACHE_SDK_SCHEMA_VALIDATE_H_

#include <vector>

#include "fncache/function/context.h"
#include "sdk/model/node.h"

namespace fncache::sdk::schema {

// The problems of `object`, sorted by path, at most kMaxProblems (problems.h).
// Their texts have no value of the object. The object is read whole, as this
// call desires it. An object that is absent is an empty one.
//
// Fields are unknown where the schema lists properties, without
// `additionalProperties` and without `x-kubernetes-preserve-unknown-fields`. An
// object whose schema lists none is free: flattening makes such schemas of
// circles. Resources may always have apiVersion, kind and the metadata that
// Kubernetes defines.
std::vector<function::Problem> Validate(const Node* schema, Node* object);

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_SDK_SCHEMA_VALIDATE_H_
