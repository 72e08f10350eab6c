// SPDX-License-Identifier: Apache-2.0
// An HTTP(S) server on loopback for tests: answers GETs with what it is given,
// one a connection, and keeps what was asked.
//
// Thread-safe. The destructor waits for the handlers that are under way.
#ifndef FNCACHE_TESTS_RUNNER_RENDER_API_SERVER_H_
#define FNCACHE_TESTS_RUNNER_RENDER_API_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "openssl/ssl.h"
#include "tests/common/certificates.h"
#include "tests/common/loopback_socket.h"

namespace fncache::testing {

class ApiServer {
 public:
  struct Request {
    std::string path;  // with its query
    std::string authorization;
  };
  struct Answer {
    int status = 200;
    std::string body;
    std::string location;  // header of redirects
  };
  using Handler = std::function<Answer(const Request&)>;

  // With `pair` it speaks TLS.
  explicit ApiServer(Handler handler, const Pem* pair = nullptr);
  ~ApiServer();

  // http(s)://localhost:PORT
  const std::string& url() const { return url_; }
  std::vector<Request> requests() const;

 private:
  struct ContextDeleter {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  void Accept();
  void Serve(int fd);

  const Handler handler_;
  std::unique_ptr<SSL_CTX, ContextDeleter> tls_;
  std::string url_;
  LoopbackSocket listening_;
  mutable Mutex mutex_;
  std::vector<Request> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread>
      connections_;  // of the accepting thread until it ends
  std::thread accepting_;
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_RUNNER_RENDER_API_SERVER_H_
