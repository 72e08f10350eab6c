// SPDX-License-Identifier: Apache-2.0
// SchemaSource: where the engine gets the schemas that functions require. Whole
// documents that were read from files are one (document_schemas.h), an API
// server's documents that are fetched when they are asked for are another
// (fetched_schemas.h).
#ifndef FNCACHE_RUNNER_ENGINE_SCHEMA_SOURCE_H_
#define FNCACHE_RUNNER_ENGINE_SCHEMA_SOURCE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/struct_fwd.h"

namespace fncache::runner::engine {

// A kind's schema with its references replaced; nullopt where no document has
// that kind. An error where a document could not be had or is broken.
using FoundSchema = absl::StatusOr<absl::optional<google::protobuf::Struct>>;

// Thread-safe. Shared by any number of renders.
class SchemaSource {
 public:
  virtual ~SchemaSource() = default;

  // Looks for the schema of `kind` and calls `done` exactly once, on any
  // thread, perhaps before Find returns. A source that has to wait for
  // something stops waiting at `deadline`.
  virtual void Find(const std::string& api_version, const std::string& kind,
                    absl::Time deadline,
                    std::function<void(FoundSchema)> done) = 0;
};

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_SCHEMA_SOURCE_H_
