// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/listener.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/listen_failure.h"
#include "http2/changeable.h"
#include "http2/target.h"
#include "proxy/transport/foreign_request.h"
#include "proxy/transport/tls.h"

namespace fncache::proxy::transport {
namespace {

// A stop waits at most 250 ms for connections without calls to close.
constexpr absl::Duration kGoodbye = absl::Milliseconds(250);

}  // namespace

// Serves the requests that arrive on one worker's connections.
class Listener::WorkerHandler final : public http2::Server::Handler {
 public:
  WorkerHandler(Worker* worker, const ListenerOptions& options,
                CallHandler* handler)
      : worker_(worker),
        grants_(options.inflight, worker->loop()),
        unpacking_(worker->loop(), kUnpackedPerIteration, kMostToUnpack,
                   [handler](http2::Connection* connection, bool much) {
                     if (much) handler->OnPaused();
                     connection->SetReading(!much);
                   }),
        max_request_bytes_(options.limits.max_request_bytes),
        handler_(handler) {}
  http2::StreamUser* OnRequest(http2::Stream& stream) override {
    const CallLimits limits{max_request_bytes_, &grants_, &unpacking_,
                            handler_};
    return IncomingCall::Accept(stream, worker_, &limits);
  }
  void SetMaxRequestBytes(size_t bytes) { max_request_bytes_ = bytes; }
  int busy() const override { return worker_->calls(); }

 private:
  Worker* const worker_;
  limits::ReadGrants grants_;
  Steps unpacking_;
  http2::Changeable<size_t> max_request_bytes_;
  CallHandler* const handler_;
};

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(
    ListenerOptions options) {
  std::unique_ptr<Listener> listener(new Listener(std::move(options)));
  http2::ServerOptions server;
  const ListenerLimits& limits = listener->options_.limits;
  server.connection.max_streams = limits.max_streams;
  server.connection.max_field_bytes = limits.max_metadata_bytes;
  server.connection.idle_timeout = limits.idle_timeout;
  server.connection.max_age = limits.max_connection_age;
  server.connection.http1_answer = kHttp1Answer;
  server.max_connections = limits.max_connections;
  server.socket_mode = listener->options_.socket_mode;
  server.uses_reserve = listener->options_.uses_reserve;
  server.events = listener->options_.events;
  if (ServerTls* const tls = listener->options_.tls) {
    server.new_ssl = [tls] { return tls->NewSsl(); };
    server.connection.explain_handshake = &ExplainHandshake;
  }
  auto listening =
      http2::Server::Listen(listener->options_.address, std::move(server));
  if (!listening.ok()) {
    if (!http2::IsUnix(listener->options_.address)) {
      return ListenFailure(listener->options_.address);
    }
    return absl::Status(
        listening.status().code(),
        absl::StrCat("cannot listen on ", listening.status().message()));
  }
  listener->server_ = *std::move(listening);
  return listener;
}

Listener::Listener(ListenerOptions options) : options_(std::move(options)) {}

Listener::~Listener() {
  if (!started_) return;
  StopAccepting(absl::Now());
  Join();
}

void Listener::Start(CallHandler* handler) {
  started_ = true;
  std::vector<http2::Server::LoopHandler> loops;
  for (Worker* const worker : options_.workers) {
    handlers_.push_back(
        std::make_unique<WorkerHandler>(worker, options_, handler));
    loops.push_back({worker->loop(), handlers_.back().get()});
  }
  server_->Start(std::move(loops));
}

void Listener::SetLimits(const ListenerLimits& limits) {
  for (const auto& handler : handlers_) {
    handler->SetMaxRequestBytes(limits.max_request_bytes);
  }
  http2::ServerLimits server;
  server.max_connections = limits.max_connections;
  server.max_streams = limits.max_streams;
  server.max_field_bytes = limits.max_metadata_bytes;
  server.idle_timeout = limits.idle_timeout;
  server.max_age = limits.max_connection_age;
  server_->SetLimits(server);
}

int Listener::Calls() const {
  int sum = 0;
  for (const Worker* worker : options_.workers) sum += worker->calls();
  return sum;
}

void Listener::StopAccepting(absl::Time deadline) {
  if (!started_ || joined_) return;
  deadline_ = deadline;
  server_->Stop();
}

void Listener::CancelStreams() {
  if (!started_ || joined_) return;
  for (Worker* const worker : options_.workers) {
    worker->Post(
        [worker] { worker->CancelActivities(Activity::Kind::kStream); });
  }
}

void Listener::Join() {
  if (!started_ || joined_) return;
  joined_ = true;
  // Once no call is left, only idle connections delay the stop. They get
  // kGoodbye instead of the time until the deadline.
  absl::Time busy = absl::Now();
  for (absl::Time now = busy;
       server_->connections() > 0 && now < deadline_ && now - busy < kGoodbye;
       now = absl::Now()) {
    if (Calls() > 0) busy = now;
    absl::SleepFor(absl::Milliseconds(2));
  }
  server_->Join();
}

}  // namespace fncache::proxy::transport
