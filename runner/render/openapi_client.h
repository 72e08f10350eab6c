// OpenApiClient: reads OpenAPI v3 documents from an API server.
//
// GET URL/openapi/v3 lists the documents, each by the path that a client would
// use for its group-version (`api/v1`, `apis/apps/v1`) and the URL, relative to
// the server, where it is.
//
// Blocking, and for one thread at a time but for Stop.
#ifndef FNCACHE_RUNNER_RENDER_OPENAPI_CLIENT_H_
#define FNCACHE_RUNNER_RENDER_OPENAPI_CLIENT_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "runner/schemas.h"
#include "runner/text/json.h"

namespace fncache::runner::render {

// No answer may be larger, unpacked.
inline constexpr size_t kMaxOpenApiBytes = 64 << 20;

class OpenApiClient {
 public:
  // Connects to nothing yet. InvalidArgument names what is wrong.
  static absl::StatusOr<std::unique_ptr<OpenApiClient>> Create(
      OpenApiServer server);
  ~OpenApiClient();

  // The document of `path`; nullopt if the server has none. The list of
  // documents is read first, and kept once it could be. Errors name the URL and
  // what was wrong, never the token. Redirects are followed within the server
  // only, which then has another edition of the document than it listed.
  // DeadlineExceeded at `deadline`, or where one answer takes too long.
  absl::StatusOr<absl::optional<text::Json>> Get(const std::string& path,
                                                 absl::Time deadline);

  // Ends a Get that is under way, and every later one. Any thread.
  void Stop();

 private:
  struct Impl;
  explicit OpenApiClient(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_OPENAPI_CLIENT_H_
