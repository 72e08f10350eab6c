// SPDX-License-Identifier: Apache-2.0
// Schemas from whole OpenAPI v3 documents, as `render --required-schemas` and
// the engine protocol give them.
#ifndef FNCACHE_RUNNER_ENGINE_DOCUMENT_SCHEMAS_H_
#define FNCACHE_RUNNER_ENGINE_DOCUMENT_SCHEMAS_H_

#include <memory>
#include <vector>

#include "proto/struct_fwd.h"
#include "runner/engine/schema_source.h"
#include "text/json.h"

namespace fncache::runner::engine {

// A document serves every group-version that any of its
// x-kubernetes-group-version-kind lists names. Where several documents name one
// group-version, the first of them keeps it, as in the reference runner.
std::unique_ptr<SchemaSource> MakeDocumentSchemas(
    std::vector<text::Json> documents);
std::unique_ptr<SchemaSource> MakeDocumentSchemasOfStructs(
    const std::vector<google::protobuf::Struct>& documents);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_DOCUMENT_SCHEMAS_H_
