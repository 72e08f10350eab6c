// SPDX-License-Identifier: Apache-2.0
// Server: the admin service on a unix socket.
//
//   connection -> its own worker -> request collected -> Actions, on a thread
//   that may block -> answered from the worker
//
// It shares nothing with the workers that serve calls. The socket has mode 0600
// from its creation on. The server takes over the socket of a dead process, but
// not that of a live one. It removes the socket at the end.
//
// The use by clients is bounded: the number of connections and calls, the bytes
// of each request (1 MiB, or `max_lookup_bytes` for a look-up) and of all
// requests together, and the time in which a request must arrive.
//
// Thread-safety: Start and destruction from one thread.
#ifndef FNCACHE_PROXY_ADMIN_SERVER_H_
#define FNCACHE_PROXY_ADMIN_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proxy/admin/actions.h"

namespace fncache::proxy::admin {

struct ServerOptions {
  std::string path;
  // The largest request in a look-up. A larger one is refused.
  size_t max_lookup_bytes = 256 << 20;
  // The time in which a request must arrive. After it the call ends.
  absl::Duration patience = absl::Seconds(10);
  // Called for each connection beyond kMaxConnections, which is closed. On the
  // server's thread; must not block. May be null.
  std::function<void()> connection_refused;
};

// How many threads a server has.
inline constexpr int kServerThreads = 3;

class Server {
 public:
  static constexpr size_t kMaxRequest = 1 << 20;
  // Calls at once, over all connections.
  static constexpr size_t kMaxCalls = 64;
  static constexpr size_t kMaxConnections = 64;

  // Listens, and serves. `actions` outlives the server. InvalidArgument: the
  // path is too long. AlreadyExists: a process serves it. Other errors are
  // those of the system. Each names the path.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options,
                                                       Actions* actions);
  // Calls in progress have two seconds to end. The destructor waits for actions
  // that take longer, but their callers get no answer.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& path() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_SERVER_H_
