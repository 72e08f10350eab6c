// SPDX-License-Identifier: Apache-2.0
// SchemaSource: the engine's source of the schemas that functions require. One
// kind reads whole documents from files (document_schemas.h). Another fetches
// an API server's documents when they are asked for (fetched_schemas.h).
#ifndef FNCACHE_RUNNER_ENGINE_SCHEMA_SOURCE_H_
#define FNCACHE_RUNNER_ENGINE_SCHEMA_SOURCE_H_

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "sdk/schema/schema_document.h"

namespace fncache::runner::engine {

using sdk::schema::FoundSchema;

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
