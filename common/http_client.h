// SPDX-License-Identifier: Apache-2.0
// HttpClient: reads documents over HTTP and HTTPS, with libcurl. Daemons'
// admin endpoints and API servers are read with it.
//
// It uses no proxy of the environment and follows no redirect. A client keeps
// its connections. Get blocks; one thread uses a client at a time.
#ifndef FNCACHE_COMMON_HTTP_CLIENT_H_
#define FNCACHE_COMMON_HTTP_CLIENT_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fncache {

struct HttpAnswer {
  int status = 0;
  std::string body;
  // The body is larger than `most_bytes`; what is here is its start.
  bool too_large = false;
  std::string redirect;  // the URL of a redirect; "" if it is none
};

class HttpClient {
 public:
  struct Options {
    absl::Duration timeout;  // of the whole answer
    size_t most_bytes = 64 << 20;
    std::vector<std::string> headers;  // `Name: value`
    std::string ca_file;               // PEM; "" = the system's
    // Set by another thread, it ends the transfer.
    const std::atomic<bool>* stop = nullptr;
  };

  HttpClient();
  ~HttpClient();

  // Any status is an answer. DeadlineExceeded after the timeout, Cancelled
  // after `stop`, else Unavailable. Errors begin with the URL.
  absl::StatusOr<HttpAnswer> Get(const std::string& url,
                                 const Options& options);

 private:
  struct EasyDeleter {
    void operator()(void* easy) const;
  };
  const std::unique_ptr<void, EasyDeleter>
      easy_;  // null: libcurl cannot be used
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_HTTP_CLIENT_H_
