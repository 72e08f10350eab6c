// SPDX-License-Identifier: Apache-2.0
// OpenApiClient: reads OpenAPI v3 documents from an API server.
//
// GET URL/openapi/v3 lists the documents, each by the path that a client would
// use for its group-version (`api/v1`, `apis/apps/v1`) and the URL, relative to
// the server, where it is.
//
// It blocks, and is used by one thread at a time, Stop aside.
#ifndef FNCACHE_RUNNER_RENDER_OPENAPI_CLIENT_H_
#define FNCACHE_RUNNER_RENDER_OPENAPI_CLIENT_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "runner/engine/fetched_schemas.h"
#include "text/json.h"

namespace fncache::runner::render {

// The largest answer that is accepted, unpacked.
inline constexpr size_t kMaxOpenApiBytes = 64 << 20;

struct OpenApiServer {
  std::string url;         // http(s)://HOST:PORT, without /openapi/v3
  std::string token_file;  // a bearer token, read for every fetch; "" = none
  std::string ca_file;     // PEM; "" = the system's
  absl::Duration timeout = absl::Seconds(30);  // of one fetch
};

class OpenApiClient : public engine::OpenApiFetcher {
 public:
  // Connects to nothing yet. InvalidArgument names what is wrong with `server`.
  // A token is refused where it would cross a network in plain text: with
  // http:// to anything but this machine.
  static absl::StatusOr<std::unique_ptr<OpenApiClient>> Create(
      OpenApiServer server);
  ~OpenApiClient() override;

  // The first call reads the list of documents, which is kept once it could be
  // read. Errors name the URL and what was wrong, never the token. Redirects
  // are followed within the server only; a server redirects when it has another
  // edition of the document than it listed. DeadlineExceeded at `deadline`, or
  // where one answer takes longer than the server's timeout.
  absl::StatusOr<absl::optional<text::Json>> Get(const std::string& path,
                                                 absl::Time deadline) override;

  // Any thread may call it.
  void Stop() override;

 private:
  struct Impl;
  explicit OpenApiClient(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_OPENAPI_CLIENT_H_
