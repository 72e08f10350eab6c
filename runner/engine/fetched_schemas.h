// SPDX-License-Identifier: Apache-2.0
// Schemas from OpenAPI v3 documents that are fetched one by one, such as those
// of an API server. The caller passes the fetcher, so that the engine does not
// depend on networks.
#ifndef FNCACHE_RUNNER_ENGINE_FETCHED_SCHEMAS_H_
#define FNCACHE_RUNNER_ENGINE_FETCHED_SCHEMAS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "runner/engine/schema_source.h"
#include "text/json.h"

namespace fncache::runner::engine {

// Fetches OpenAPI documents. The schemas that use it call Get from one thread
// of theirs, and Stop from any.
class OpenApiFetcher {
 public:
  virtual ~OpenApiFetcher() = default;

  // The document of `path`, which names a group-version as API servers do
  // (`api/v1`, `apis/apps/v1`); nullopt if there is none. Blocks, at most until
  // `deadline`, and is DeadlineExceeded then.
  virtual absl::StatusOr<absl::optional<text::Json>> Get(
      const std::string& path, absl::Time deadline) = 0;

  // Ends a Get in progress, and every later one.
  virtual void Stop() = 0;
};

// Each document is fetched once, at its first request, and kept; so is its
// absence. A fetch that failed is retried at the next request. The destructor
// stops the fetcher and answers the callers that still wait with Cancelled.
std::unique_ptr<SchemaSource> MakeFetchedSchemas(
    std::unique_ptr<OpenApiFetcher> fetcher);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_FETCHED_SCHEMAS_H_
