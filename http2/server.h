// SPDX-License-Identifier: Apache-2.0
// Server: one address, from which connections are accepted and handed over to
// loops, each to the least busy one, where it stays.
//
// Running out of files or memory delays accepting; it never ends it. The last
// files that the process may have open are left to others: who asks how it is,
// say.
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

// What happens to a server's connections; the functions are called on loops'
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
  // No more could be accepted, for a while.
  std::function<void(const std::string& why)> accept_failed;
  // It goes on.
  std::function<void()> accepts_again;
};

// What may be changed while a server accepts connections.
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
  // Of a unix socket, from the moment in which it is there; absent = what the
  // umask leaves. The umask applies besides.
  absl::optional<mode_t> socket_mode;
  // Accepts with the last files, too: of few connections, of who administers.
  bool uses_reserve = false;
  // TLS for one more connection; null = plaintext. On loops' threads.
  std::function<SSL*()> new_ssl;
  ServerEvents events;
};

class Server {
 public:
  // Who serves requests on one loop.
  class Handler {
   public:
    // As ConnectionOwner's. On the loop's thread.
    virtual StreamUser* OnRequest(Stream& stream) = 0;
    // How much is being served there; from any thread.
    virtual int busy() const = 0;

   protected:
    ~Handler() = default;
  };
  struct Place {
    Loop* loop;
    Handler* handler;
  };

  // Binds HOST:PORT, [IPV6]:PORT (port 0 takes a free one), or unix:PATH or
  // unix-abstract:NAME as targets have them, and listens. A host that is every
  // IPv4 address is every IPv6 address, too, where the machine has those. A
  // socket file that nobody listens on is replaced. Unavailable where somebody
  // does, or the file is no socket; InvalidArgument for what is no address;
  // else the status is an errno's.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(
      const std::string& address, ServerOptions options);
  // Precondition: never started, or joined.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // As asked for, with the real port.
  const std::string& address() const { return address_; }

  // Accepts from now on, on the first place's loop.
  void Start(std::vector<Place> places);
  // Has these limits kept from now on. `max_streams` is told to connections
  // that come; those that are too many by now stay. Any thread, between Start
  // and Stop.
  void SetLimits(const ServerLimits& limits);
  // Accepts no more, and tells the connections there are to go.
  void Stop();
  // Closes what is left, and waits until it has gone.
  void Join();

  size_t connections() const {
    return connections_.load(std::memory_order_acquire);
  }
  // It has accepted what there was when that was last tried.
  bool accepting() const { return accepting_.load(std::memory_order_relaxed); }

 private:
  class Acceptor;
  class Part;

  Server(int fd, std::string address, std::string path, ServerOptions options);
  // On the first place's loop.
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
  std::vector<std::unique_ptr<Part>> parts_;
  std::atomic<size_t> connections_{0};
  std::atomic<bool> accepting_{true};
  bool stopped_ = false;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_SERVER_H_
