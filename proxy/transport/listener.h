// SPDX-License-Identifier: Apache-2.0
// Listener: one address on which one function is served. It accepts
// connections, each of which stays on one worker, and gives their calls to its
// CallHandler.
//
// Thread-safety: used from one thread, the daemon's, but for SetLimits and the
// counts. Lifecycle: Create, Start, then StopAccepting, Join, destruction.
#ifndef FNCACHE_PROXY_TRANSPORT_LISTENER_H_
#define FNCACHE_PROXY_TRANSPORT_LISTENER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "http2/server.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/inflight.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class ServerTls;

// What may be changed while a listener accepts calls.
struct ListenerLimits {
  size_t max_request_bytes = 256 << 20;
  uint32_t max_streams = 1024;
  uint32_t max_metadata_bytes = 64 << 10;
  size_t max_connections = 4096;
  absl::Duration idle_timeout = absl::Hours(1);
  absl::Duration max_connection_age = absl::InfiniteDuration();
};

struct ListenerOptions {
  std::string address;  // as http2::Server::Listen takes it
  // The workers that serve its calls, which other listeners may share. At least
  // one. They outlive the listener; they run from before Start until after
  // Join.
  std::vector<Worker*> workers;
  // Null = plaintext; else outlives the listener.
  ServerTls* tls = nullptr;
  // Of all calls together; null = not counted. Outlives the listener.
  Inflight* inflight = nullptr;
  ListenerLimits limits;
  // Of a unix socket's file; absent = what the umask leaves.
  absl::optional<mode_t> socket_mode;
  // As http2::ServerOptions has it.
  bool uses_reserve = false;
  http2::ServerEvents events;
};

class Listener final {
 public:
  // Binds the address and listens. Unavailable, naming the address, if it is
  // taken; else, of a unix socket, whatever the system says.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(
      ListenerOptions options);
  // Cancels what is left, and waits for it.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Accepts calls from now on. `handler` outlives this.
  void Start(CallHandler* handler);

  // Has these limits kept from now on: by calls and connections that come, and
  // idle_timeout and max_connection_age by those there are. Any thread, from
  // Start to StopAccepting.
  void SetLimits(const ListenerLimits& limits);

  // As asked for, with the real port.
  const std::string& address() const { return server_->address(); }
  size_t connections() const { return server_->connections(); }
  bool accepting() const { return server_->accepting(); }

  // A graceful stop is these, in this order: StopAccepting; waiting as long as
  // any worker has unary calls; CancelStreams; Join. Calls accepted before go
  // on until they end or, at `deadline`, are cancelled.
  void StopAccepting(absl::Time deadline);
  void CancelStreams();
  // Blocks until every call is over. Whatever still runs at the deadline given
  // to StopAccepting is cancelled.
  void Join();

 private:
  class Place;

  explicit Listener(ListenerOptions options);
  // How many calls, streams included, the workers have.
  int Calls() const;

  const ListenerOptions options_;
  std::unique_ptr<http2::Server> server_;
  std::vector<std::unique_ptr<Place>> places_;
  bool started_ = false;
  bool joined_ = false;
  absl::Time deadline_;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_LISTENER_H_
