// SPDX-License-Identifier: Apache-2.0
// Listener: one address on which one function is served. It is a gRPC server
// that accepts calls of any method, spreads them over workers and gives each to
// its CallHandler.
//
// Thread-safety: used from one thread, the daemon's. Lifecycle: Create, Start,
// then StopAccepting, Join, destruction.
#ifndef FNCACHE_PROXY_TRANSPORT_LISTENER_H_
#define FNCACHE_PROXY_TRANSPORT_LISTENER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"
#include "grpcpp/completion_queue.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

struct ListenerOptions {
  std::string address;  // HOST:PORT, port 0 takes a free one; or unix:PATH
  // The workers that serve its calls, which other listeners may share. At least
  // one; the first must not rest. They outlive the listener, and are started
  // after it (Start) and stopped after Join.
  std::vector<Worker*> workers;
  // Null = plaintext.
  std::shared_ptr<grpc_server_credentials> credentials;
  // The first worker accepts all calls and serves them itself, a call being
  // cheapest on the thread that read it, unless it has so many calls to the
  // function (or streams) under way; then each call goes to the next worker.
  int spread_after = 256;
};

class Listener final : private IncomingCall::Acceptor {
 public:
  // Binds the address and listens. Unavailable, naming the address, if it is
  // taken.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(
      ListenerOptions options);
  // Cancels what is left, and waits for it.
  ~Listener();

  // Accepts calls from now on. `handler` outlives this.
  void Start(CallHandler* handler);

  // HOST:PORT with the real port.
  const std::string& address() const { return address_; }

  // A graceful stop is these, in this order: StopAccepting; waiting as long as
  // any worker has unary calls; CancelStreams; Join. Calls accepted before go
  // on until they end or, at `deadline`, are cancelled.
  void StopAccepting(absl::Time deadline);
  void CancelStreams();
  // Blocks until every call is over. Whatever still runs at the deadline given
  // to StopAccepting is cancelled.
  void Join();

 private:
  explicit Listener(ListenerOptions options);

  absl::Status Bind();
  void ShutDown();
  // Lends the server one more call, unless it is to stop.
  void Accept();
  // Called on the first worker's thread.
  void OnAccepted(IncomingCall* call) override;
  // Called on the thread of the call's worker.
  void Dispatch(IncomingCall* call);
  // How many calls, streams included, the workers have.
  int Calls() const;

  const ListenerOptions options_;
  std::string address_;
  grpc_server* server_ = nullptr;
  CallHandler* handler_ = nullptr;
  // On the first worker's thread only.
  bool accepting_ = false;
  size_t next_worker_ = 0;
  bool started_ = false;
  bool joined_ = false;
  absl::Time deadline_;
  // Brings the news that the server has shut down.
  grpc::CompletionQueue shutdown_queue_;
  std::atomic<bool> shut_down_{false};
  std::thread shutdown_;  // waits for it
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_LISTENER_H_
