// SPDX-License-Identifier: Apache-2.0
// Field owners: an API server's changes to metadata.managedFields when an
// object is applied (server side) or updated, in the form of FieldsV1.
//
// Lists are owned as one, but for finalizers, owner references and, where the
// object's type says so, status.conditions, whose items have owners. Pure
// functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_FIELD_OWNERS_H_
#define FNCACHE_RUNNER_LOAD_MODEL_FIELD_OWNERS_H_

#include <string>

#include "absl/time/time.h"
#include "proto/struct_fwd.h"

namespace fncache::runner::load::model {

struct Writer {
  std::string manager;
  std::string subresource;  // "" or "status"
};

// Makes `object` what it is after `writer` has applied `wanted` to it, forced.
// Fields in `wanted` become the writer's. A field that the writer no longer
// wants is removed if no other writer owns it. Returns whether anything
// changed, owners included; if not, `object` is as it was. `keyed_conditions`:
// conditions are items by type.
bool ApplyTo(const google::protobuf::Struct& wanted, const Writer& writer,
             absl::Time now, bool keyed_conditions,
             google::protobuf::Struct* object);

// Makes `object` into `updated`, whose managedFields are ignored. Fields that
// differ become the writer's. Returns whether anything differed; if not,
// `object` is as it was.
bool UpdateTo(google::protobuf::Struct updated, const Writer& writer,
              absl::Time now, bool keyed_conditions,
              google::protobuf::Struct* object);

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_FIELD_OWNERS_H_
