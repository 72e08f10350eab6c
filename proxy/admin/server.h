// SPDX-License-Identifier: Apache-2.0
// Server: the admin service on a unix socket.
//
//   connection -> its own worker -> request collected -> Actions, on a thread
//   that may block -> answered from the worker
//
// It shares nothing with the workers that serve calls. The socket has mode 0600
// from the moment in which it is there; one that a dead process left is taken
// over, a live one's is not; it is removed at the end.
//
// What a client can hold is bounded: so many connections and calls, each
// request to 1 MiB (a look-up's to `max_lookup_bytes`), all of them together,
// and the time that a request may take to come.
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
  // Of the request that a look-up may hold.
  size_t max_lookup_bytes = 256 << 20;
  // In which a request has to come.
  absl::Duration patience = absl::Seconds(10);
  // Hears of each connection beyond kMaxConnections, which is closed. From the
  // server's thread; must not block. May be null.
  std::function<void()> connection_refused;
};

// How many threads a server has.
inline constexpr int kServerThreads = 3;

class Server {
 public:
  static constexpr size_t kMaxRequest = 1 << 20;
  // At once, over all connections.
  static constexpr size_t kMaxCalls = 64;
  static constexpr size_t kMaxConnections = 64;

  // Listens, and serves. `actions` outlives this. InvalidArgument for a path
  // that is too long; AlreadyExists where a process serves it; else what the
  // system says. Each names the path.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options,
                                                       Actions* actions);
  // Calls under way have two seconds to end; actions that take longer are
  // waited for, without their callers.
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
