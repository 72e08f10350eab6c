// SPDX-License-Identifier: Apache-2.0
// Schemas of objects, from files: what fields they may have.
//
// Blocking functions over files; thread-safe.
#ifndef FNCACHE_RUNNER_PROBE_SCHEMAS_H_
#define FNCACHE_RUNNER_PROBE_SCHEMAS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/struct.pb.h"

namespace fncache::runner::probe {

// Reads the OpenAPI v3 documents in `folders`, and the definitions in `files`
// (CustomResourceDefinition, CompositeResourceDefinition). Each schema names
// its kind in x-kubernetes-group-version-kind. References are not followed. The
// error names the file.
absl::StatusOr<std::vector<google::protobuf::Struct>> ReadSchemas(
    const std::vector<std::string>& folders,
    const std::vector<std::string>& files);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_SCHEMAS_H_
