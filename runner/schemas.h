// Schemas that functions may require, from OpenAPI v3 documents: whole ones
// that were read from files, or those of an API server's /openapi/v3.
#ifndef FNCACHE_RUNNER_SCHEMAS_H_
#define FNCACHE_RUNNER_SCHEMAS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "google/protobuf/struct.pb.h"
#include "runner/text/json.h"

namespace fncache::runner {

// Thread-safe. Shared by any number of renders.
class SchemaSource {
 public:
  // The kind's schema with local references flattened; nullopt where no
  // document has it. An error where one could not be had or is broken.
  using Found = absl::StatusOr<absl::optional<google::protobuf::Struct>>;

  virtual ~SchemaSource() = default;
  // Calls `done` exactly once, on any thread, perhaps before it returns. What
  // has to be waited for ends at `deadline`.
  virtual void Find(const std::string& api_version, const std::string& kind,
                    absl::Time deadline, std::function<void(Found)> done) = 0;
};

// From whole documents. A document serves every group-version that any of its
// x-kubernetes-group-version-kind lists names; the first to name one keeps it.
std::unique_ptr<SchemaSource> MakeDocumentSchemas(
    std::vector<text::Json> documents);

struct OpenApiServer {
  std::string url;         // http(s)://HOST:PORT, without /openapi/v3
  std::string token_file;  // a bearer token, read for every fetch; "" = none
  std::string ca_file;     // PEM; "" = the system's
  absl::Duration timeout = absl::Seconds(30);  // of one fetch
};

// From an API server. Each document is fetched once, when first asked for, and
// kept; one that the server does not have is kept as such. InvalidArgument
// names what is wrong with `server`.
absl::StatusOr<std::unique_ptr<SchemaSource>> MakeOpenApiSchemas(
    OpenApiServer server);

// The schema of `kind` in the OpenAPI document of its group-version, flattened;
// nullopt if no component's list is just that kind. References among the
// document's own components are replaced whole, one to a schema that is being
// expanded by {type: object}; a dangling one is InvalidArgument.
absl::StatusOr<absl::optional<google::protobuf::Struct>> FlattenedSchema(
    const text::Json& document, const std::string& api_version,
    const std::string& kind);

}  // namespace fncache::runner

#endif  // FNCACHE_RUNNER_SCHEMAS_H_
