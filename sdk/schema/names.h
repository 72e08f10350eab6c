// SPDX-License-Identifier: Apache-2.0
// CheckNames: finds fields that a schema does not know.
//
// Thread-safe as far as the object is.
#ifndef FNCACHE_SDK_SCHEMA_NAMES_H_
#define FNCACHE_SDK_SCHEMA_NAMES_H_

#include "sdk/model/node.h"
#include "sdk/schema/problems.h"

namespace fncache::sdk::schema {

// Adds a problem for each field of `object`, a resource, that is not known
// (validate.h says which).
void CheckNames(const Node* schema, Node* object, Problems* problems);

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_SDK_SCHEMA_NAMES_H_
