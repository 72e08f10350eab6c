// SPDX-License-Identifier: Apache-2.0
// Server: one address, from which connections are accepted and handed over to
// loops, each to the least busy one, where it stays.
//
// Running out of files or memory delays accepting; it never ends it. The last
// file descriptors of the process are reserved for others, such as health
// checks.
//
// Thread-safety: Listen, Start, Stop, Join and destruction from one thread,
// which is no loop's; counts from any. The loops run before Start, and until
// Join has returned.
#ifndef FNCACHE_HTTP2_SERVER_H_
#define FNCACHE_HTTP2_SERVER_H_

#include <openssl/types.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "http2/changeable.h"
#include "http2/connection.h"
#include "http2/loop.h"

namespace fncache::http2 {

// Reports about a server's connections. The functions are called on loops'
// threads, and may be null.
struct ServerEvents {
  std::function<void(const Connection& connection, ConnectionEnd end,
                     const std::string& words)>
      ended;
  // Beyond `max_connections`; a stream beyond `max_streams`.
  std::function<void()> connection_refused;
  std::function<void()> stream_refused;
  // A stream was reset before its request was complete.
  std::function<void()> abandoned;
  // Accepting has failed, and is retried.
  std::function<void(const std::string& why)> accept_failed;
  // Accepting works again.
  std::function<void()> accepts_again;
};

// The limits that may change while a server accepts connections.
struct ServerLimits {
  size_t max_connections = 4096;
  // As ConnectionOptions has them.
  uint32_t max_streams = 1024;
  uint32_t max_field_bytes = 64 << 10;
  absl::Duration idle_timeout = absl::InfiniteDuration();
  absl::Duration max_age = absl::InfiniteDuration();
};

struct ServerOptions {
  ConnectionOptions connection;
  Changeable<size_t> max_connections = 4096;
  // The mode of a unix socket's file, from its creation on; absent = all that
  // the umask leaves. The umask also applies to a given mode.
  absl::optional<mode_t> socket_mode;
  // Also accepts with the reserved file descriptors: for the few connections of
  // administrators.
  bool uses_reserve = false;
  // TLS for one more connection; null = plaintext. On loops' threads.
  std::function<SSL*()> new_ssl;
  ServerEvents events;
};

class Server {
 public:
  // Serves the requests on one loop.
  class Handler {
   public:
    // As ConnectionOwner's. On the loop's thread.
    virtual StreamUser* OnRequest(Stream& stream) = 0;
    // How much is being served there; from any thread.
    virtual int busy() const = 0;

   protected:
    ~Handler() = default;
  };
  struct LoopHandler {
    Loop* loop;
    Handler* handler;
  };

  // Binds HOST:PORT, [IPV6]:PORT (port 0 takes a free one), or unix:PATH or
  // unix-abstract:NAME as targets have them, and listens. A host that means
  // every IPv4 address also means every IPv6 address, if the machine has IPv6.
  // A socket file on which no process listens is replaced. Returns Unavailable
  // if a process listens on it, or the file is no socket. Returns
  // InvalidArgument for an invalid address, and otherwise the status of an
  // errno.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(
      const std::string& address, ServerOptions options);
  // Precondition: never started, or joined.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // As asked for, with the real port.
  const std::string& address() const { return address_; }

  // Accepts from now on, on the loop of `loops[0]`.
  void Start(std::vector<LoopHandler> loops);
  // Applies these limits from now on. `max_streams` is announced to new
  // connections. Present connections stay, even beyond a limit. Any thread,
  // between Start and Stop.
  void SetLimits(const ServerLimits& limits);
  // Accepts no more, and sends a GOAWAY on every connection.
  void Stop();
  // Closes the remaining connections, and waits until they are closed.
  void Join();

  size_t connections() const {
    return connections_.load(std::memory_order_acquire);
  }
  // It has accepted what there was when that was last tried.
  bool accepting() const { return accepting_.load(std::memory_order_relaxed); }

 private:
  class Acceptor;
  class LoopServer;

  Server(int fd, std::string address, std::string path, ServerOptions options);
  // On the loop of `loops[0]`.
  void HandOver(int fd);
  // Accepts no more, and removes a unix socket's file, if it is still ours.
  void CloseSocket();

  const int fd_;
  const std::string address_;
  const std::string path_;  // of a unix socket, removed at the end
  dev_t device_ = 0;        // which file that is
  ino_t inode_ = 0;
  ServerOptions options_;  // constant but for what SetLimits changes
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<std::unique_ptr<LoopServer>> loop_servers_;
  std::atomic<size_t> connections_{0};
  std::atomic<bool> accepting_{true};
  bool stopped_ = false;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_SERVER_H_
