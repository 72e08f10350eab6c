// Listener: one address on which one function is served: a gRPC server for any
// method, its workers, and what it does with an accepted call.
// RunFunction goes to the function's CallHandler, everything else is forwarded
// as a stream.
//
// Thread-safety: from one thread, the daemon's. Lifecycle: Create, Start, then
// StopAccepting, Join, destruction.
#ifndef FNCACHE_PROXY_TRANSPORT_LISTENER_H_
#define FNCACHE_PROXY_TRANSPORT_LISTENER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/store/entry.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"
#include "grpcpp/completion_queue.h"
#include "proxy/serving/stream.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/upstream.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::telemetry {
class FunctionInstruments;
}  // namespace fncache::proxy::telemetry

namespace fncache::proxy::transport {

struct ListenerOptions {
  std::string address;  // HOST:PORT, port 0 takes a free one; or unix:PATH
  cache::store::FunctionId function = 0;
  // How many workers of its own it has; or, if any, those that it shares with
  // other listeners. The first one must not rest.
  int workers = 1;
  std::vector<Worker*> shared_workers;
  // Null = plaintext.
  std::shared_ptr<grpc_server_credentials> credentials;
  // The first worker accepts all calls and serves them itself, a call being
  // cheapest on the thread that read it, unless it has so many calls to the
  // function (or streams) under way; then the workers take turns.
  int spread_after = 256;
};

class Listener {
 public:
  // Binds the address and listens. Unavailable, naming the address, if it is
  // taken.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(
      ListenerOptions options);
  // Cancels what is left, waits for it, and joins the workers.
  ~Listener();

  // Accepts calls; shared workers are started after it. All outlive this.
  // Without a handler RunFunction is forwarded
  // like any method; `instruments` (null = none) counts what is forwarded.
  void Start(CallHandler* handler, Upstream* upstream,
             const telemetry::FunctionInstruments* instruments = nullptr);

  // HOST:PORT with the real port.
  const std::string& address() const { return address_; }
  int port() const { return port_; }

  // A graceful stop is these, in this order: StopAccepting; as long as unary()
  // is not zero anywhere, waiting; CancelStreams; Join. Calls accepted before
  // go on until they end or, at `deadline`, are cancelled.
  void StopAccepting(absl::Time deadline);
  // Calls for whose answer somebody waits, of all that the workers have.
  int unary() const;
  // Those and streams.
  int calls() const;
  void CancelStreams();
  // Blocks until every call is over and joins the workers that are its own.
  // Whatever still runs at the deadline given to StopAccepting is cancelled.
  void Join();

 private:
  friend class IncomingCall;
  explicit Listener(ListenerOptions options);

  absl::Status Bind();
  void ShutDown();
  // Lends one more call to the server.
  void Accept();
  // On the first worker.
  void OnAccepted(IncomingCall* call);
  // On the call's.
  void Dispatch(IncomingCall* call);

  const ListenerOptions options_;
  std::string address_;
  int port_ = 0;
  grpc_server* server_ = nullptr;
  CallHandler* handler_ = nullptr;
  Upstream* upstream_ = nullptr;
  const telemetry::FunctionInstruments* instruments_ = nullptr;
  std::vector<std::unique_ptr<Worker>> own_workers_;
  std::vector<Worker*> workers_;
  // The first worker's thread only.
  bool accepting_ = false;
  size_t next_worker_ = 0;
  bool started_ = false;
  bool joined_ = false;
  absl::Time deadline_;
  // For the news that the server has shut down.
  grpc::CompletionQueue shutdown_queue_;
  std::atomic<bool> shut_down_{false};
  std::thread shutdown_;  // waits for it
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_LISTENER_H_
