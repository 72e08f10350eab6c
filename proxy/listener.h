// Listener: one address on which one function is served: a grpc::Server of the
// generic service, its workers, and what it does with an accepted call.
// RunFunction goes to the function's CallHandler, everything else is forwarded
// as a stream.
//
// Thread-safety: from one thread, the daemon's. Lifecycle: Create, Start, then
// StopAccepting, Join, destruction.
#ifndef FNCACHE_PROXY_LISTENER_H_
#define FNCACHE_PROXY_LISTENER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/entry.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "proxy/incoming_call.h"
#include "proxy/stream.h"
#include "proxy/upstream.h"
#include "proxy/worker.h"

namespace fncache::proxy {

class FunctionInstruments;

struct ListenerOptions {
  std::string address;  // HOST:PORT, port 0 takes a free one; or unix:PATH
  cache::FunctionId function = 0;
  int workers = 1;
  std::shared_ptr<grpc::ServerCredentials> credentials;
};

class Listener {
 public:
  // Binds the address and listens. Unavailable, naming the address, if it is
  // taken.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(
      ListenerOptions options);
  // Cancels what is left, waits for it, and joins the workers.
  ~Listener();

  // Accepts calls. All outlive this. Without a handler RunFunction is forwarded
  // like any method; `instruments` (null = none) counts what is forwarded.
  void Start(CallHandler* handler, Upstream* upstream,
             const FunctionInstruments* instruments = nullptr);

  // HOST:PORT with the real port.
  const std::string& address() const { return address_; }
  int port() const { return port_; }
  const std::vector<std::unique_ptr<Worker>>& workers() const {
    return workers_;
  }

  // A graceful stop is these, in this order: StopAccepting; as long as unary()
  // is not zero anywhere, waiting; CancelStreams; Join. Calls accepted before
  // go on until they end or, at `deadline`, are cancelled.
  void StopAccepting(absl::Time deadline);
  // Calls for whose answer somebody waits.
  int unary() const;
  // Those and streams.
  int calls() const;
  void CancelStreams();
  // Blocks until every call is over and joins the workers. Whatever still runs
  // at the deadline given to StopAccepting is cancelled.
  void Join();

 private:
  friend class IncomingCall;
  explicit Listener(ListenerOptions options) : options_(std::move(options)) {}

  absl::Status Bind();
  // Readies the worker for one more call.
  void Accept(Worker* worker);
  void Dispatch(IncomingCall* call);

  const ListenerOptions options_;
  std::string address_;
  int port_ = 0;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::Server> server_;
  CallHandler* handler_ = nullptr;
  Upstream* upstream_ = nullptr;
  const FunctionInstruments* instruments_ = nullptr;
  std::vector<char> accepting_;  // per worker, its thread only
  std::vector<std::unique_ptr<Worker>> workers_;
  bool started_ = false;
  bool joined_ = false;
  absl::Time deadline_;
  std::atomic<bool> shut_down_{false};
  std::thread shutdown_;  // runs grpc::Server::Shutdown, which blocks
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_LISTENER_H_
