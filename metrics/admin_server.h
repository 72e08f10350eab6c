// SPDX-License-Identifier: Apache-2.0
// AdminServer: the HTTP endpoint that operators and Prometheus read.
//
// It serves a fixed set of pages to GET and HEAD; a function makes the text of
// each. Another path is 404, another method 405. There are no files, no
// directory listing and no CGI.
//
// It shares nothing with the serving path. It bounds what a client that sends
// nothing, or rubbish, can occupy, so that a scrape is answered at once:
// - A connection on which nothing moves for two seconds is closed.
// - The oldest connection is closed if 512 are open or 16 MiB of answers wait
//   for their readers.
//
// Thread-safe. The pages are called on the server's own threads, several at a
// time, until the destructor returns.
#ifndef FNCACHE_METRICS_ADMIN_SERVER_H_
#define FNCACHE_METRICS_ADMIN_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::metrics {

class AdminServer {
 public:
  struct Response {
    int code = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
    std::vector<std::pair<std::string, std::string>> more_headers;
  };
  // By path: "/metrics". A page is given what stood behind the question mark,
  // as it came; most have no use for it.
  using Pages =
      std::map<std::string, std::function<Response(absl::string_view query)>>;

  // Listens on HOST:PORT (an IPv6 address in brackets; an empty host is every
  // IPv4 address, [::] every one; port 0 takes a free one) and serves.
  // InvalidArgument for an address that is none; Unavailable, naming it, where
  // it cannot be bound.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(
      absl::string_view address, Pages pages);

  // Ends what is being served and closes the port.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  // HOST:PORT as asked for, with the real port.
  const std::string& address() const { return address_; }
  int port() const { return port_; }

 private:
  class Impl;
  AdminServer(std::unique_ptr<Impl> impl, std::string address, int port);

  std::unique_ptr<Impl> impl_;
  std::string address_;
  int port_;
};

}  // namespace fncache::metrics

#endif  // FNCACHE_METRICS_ADMIN_SERVER_H_
