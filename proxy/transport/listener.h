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
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class ServerTls;

// Limits that may change while a listener accepts calls.
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
  // Counts the memory of all calls; null = not counted. Outlives the listener.
  limits::Budget* inflight = nullptr;
  ListenerLimits limits;
  // Mode of a unix socket's file; absent = the umask decides.
  absl::optional<mode_t> socket_mode;
  // See http2::ServerOptions.
  bool uses_reserve = false;
  http2::ServerEvents events;
};

class Listener final {
 public:
  // Binds the address and listens. Unavailable, with the address, if it is
  // taken; otherwise, for a unix socket, the system's error.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(
      ListenerOptions options);
  // Cancels the remaining calls, and waits until they have ended.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Accepts calls from now on. `handler` outlives this.
  void Start(CallHandler* handler);

  // Applies these limits to new calls and connections, and idle_timeout and
  // max_connection_age to existing ones, too. Any thread, from Start to
  // StopAccepting.
  void SetLimits(const ListenerLimits& limits);

  // The address of the options, with the real port.
  const std::string& address() const { return server_->address(); }
  size_t connections() const { return server_->connections(); }
  bool accepting() const { return server_->accepting(); }

  // A graceful stop has four stages: call StopAccepting, wait while any worker
  // has unary calls, call CancelStreams, call Join. Calls that were accepted
  // before continue until they end, or are cancelled at `deadline`.
  void StopAccepting(absl::Time deadline);
  void CancelStreams();
  // Blocks until every call is over. Cancels the calls that still run at the
  // deadline of StopAccepting.
  void Join();

 private:
  class WorkerHandler;

  explicit Listener(ListenerOptions options);
  // The number of calls of all workers, streams included.
  int Calls() const;

  const ListenerOptions options_;
  std::unique_ptr<http2::Server> server_;
  std::vector<std::unique_ptr<WorkerHandler>> handlers_;
  bool started_ = false;
  bool joined_ = false;
  absl::Time deadline_;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_LISTENER_H_
