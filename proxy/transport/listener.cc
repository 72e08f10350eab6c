#include "proxy/transport/listener.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "grpc/grpc_security.h"
#include "grpc/support/log.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/transport/channel_arguments.h"
#include "proxy/transport/core_queue.h"

namespace fncache::proxy::transport {
namespace {

// How long connections without calls may take to go.
constexpr absl::Duration kGoodbye = absl::Milliseconds(250);

std::string WithPort(const std::string& address, int port) {
  const size_t colon = address.rfind(':');
  if (absl::StartsWith(address, "unix") || colon == std::string::npos) {
    return address;
  }
  return absl::StrCat(address.substr(0, colon + 1), port);
}

std::shared_ptr<grpc_server_credentials> Plaintext() {
  return {grpc_insecure_server_credentials_create(),
          grpc_server_credentials_release};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(
    ListenerOptions options) {
  std::unique_ptr<Listener> listener(new Listener(std::move(options)));
  absl::Status status = listener->Bind();
  if (!status.ok()) return status;
  return listener;
}

Listener::Listener(ListenerOptions options)
    : options_(std::move(options)),
      // Who waits there reads from sockets: the workers may not have started.
      shutdown_queue_(MakeQueue(GRPC_CQ_NON_LISTENING)) {}

absl::Status Listener::Bind() {
  std::vector<grpc_arg> arguments;
  for (const ChannelArgument& argument : kServerArguments) {
    grpc_arg arg{};
    arg.type = GRPC_ARG_INTEGER;
    arg.key = const_cast<char*>(argument.name);  // gRPC only reads it
    arg.value.integer = argument.value;
    arguments.push_back(arg);
  }
  const grpc_channel_args all = {arguments.size(), arguments.data()};
  server_ = grpc_server_create(&all, nullptr);
  workers_ = options_.shared_workers;
  if (workers_.empty()) {
    own_workers_ = MakeWorkers(options_.workers);
    for (const auto& worker : own_workers_) workers_.push_back(worker.get());
  }
  grpc_server_register_completion_queue(
      server_, workers_.front()->queue()->cq(), nullptr);
  grpc_server_register_completion_queue(server_, shutdown_queue_.cq(), nullptr);
  const std::shared_ptr<grpc_server_credentials> credentials =
      options_.credentials != nullptr ? options_.credentials : Plaintext();
  port_ = grpc_server_add_http2_port(server_, options_.address.c_str(),
                                     credentials.get());
  if (port_ == 0) {
    grpc_server_destroy(server_);
    server_ = nullptr;
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options_.address,
                     ": the address is taken or not this machine's"));
  }
  grpc_server_start(server_);
  address_ = WithPort(options_.address, port_);
  return absl::OkStatus();
}

Listener::~Listener() {
  StopAccepting(absl::Now());
  Join();
  // What is left of the queue is its end.
  shutdown_queue_.Shutdown();
  void* tag;
  bool ok;
  while (shutdown_queue_.Next(&tag, &ok)) {
  }
  if (server_ != nullptr) grpc_server_destroy(server_);
}

void Listener::Start(CallHandler* handler, Upstream* upstream,
                     const telemetry::FunctionInstruments* instruments) {
  handler_ = handler;
  upstream_ = upstream;
  instruments_ = instruments;
  accepting_ = true;
  for (int i = 0; i < kAcceptsPerWorker; ++i) Accept();
  for (const auto& worker : own_workers_) worker->Start();
  started_ = true;
}

void Listener::Accept() {
  if (!accepting_) return;
  Worker* const first = workers_.front();
  Worker* worker = first;
  if (first->forwarding() >= options_.spread_after) {
    next_worker_ = (next_worker_ + 1) % workers_.size();
    worker = workers_[next_worker_];
  }
  (new IncomingCall(this, worker, options_.function))->Accept(server_, first);
}

void Listener::OnAccepted(IncomingCall* call) {
  Accept();
  Worker* const worker = call->worker();
  if (worker == workers_.front()) return Dispatch(call);
  const bool posted = worker->Post([this, call] { Dispatch(call); });
  // Workers stop only when the server has ended.
  GPR_ASSERT(posted);
}

void Listener::Dispatch(IncomingCall* accepted) {
  accepted->worker()->Enter(accepted);
  IncomingCallPtr call(accepted);
  if (call->method() != Method::kOther && handler_ != nullptr) {
    handler_->StartRunFunction(std::move(call));
    return;
  }
  if (instruments_ == nullptr) {
    serving::ForwardStream(std::move(call), upstream_);
    return;
  }
  const Method method = call->method();
  instruments_->Begin(method);
  serving::ForwardStream(
      std::move(call), upstream_,
      [instruments = instruments_, method](const serving::StreamEnd& end) {
        telemetry::CallRecord record;
        record.method = method;
        record.outcome = telemetry::Outcome::kBypass;
        record.code = end.status.error_code();
        record.upstream = true;
        record.latency = end.latency;
        // A stream may last for days: no latency to compare with.
        if (method != Method::kOther) {
          instruments->RecordUpstream(record.code, end.latency);
        }
        instruments->End(record);
      });
}

int Listener::unary() const {
  int sum = 0;
  for (const Worker* worker : workers_) sum += worker->unary();
  return sum;
}

int Listener::calls() const {
  int sum = 0;
  for (const Worker* worker : workers_) sum += worker->calls();
  return sum;
}

void Listener::StopAccepting(absl::Time deadline) {
  if (server_ == nullptr || shutdown_.joinable() || joined_) return;
  deadline_ = deadline;
  if (started_) {
    // gRPC aborts when asked for another call after its shutdown.
    absl::BlockingCounter stopped(1);
    workers_.front()->Post([this, &stopped] {
      accepting_ = false;
      stopped.DecrementCount();
    });
    stopped.Wait();
  }
  shutdown_ = std::thread([this] { ShutDown(); });
}

void Listener::ShutDown() {
  // Whoever gets to know that the server has shut down.
  struct Notice final : Event {
    void OnEvent(bool /*ok*/) override {}
  } notice;
  grpc_server_shutdown_and_notify(server_, shutdown_queue_.cq(),
                                  CoreTag(&notice));
  void* tag;
  bool ok;
  if (shutdown_queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(deadline_)) ==
      grpc::CompletionQueue::TIMEOUT) {
    grpc_server_cancel_all_calls(server_);
    shutdown_queue_.Next(&tag, &ok);
  }
  AcquireFrom(tag);
  shut_down_ = true;
}

void Listener::CancelStreams() {
  if (!started_ || joined_) return;
  for (Worker* const worker : workers_) {
    worker->Post(
        [worker] { worker->CancelActivities(Activity::Kind::kStream); });
  }
}

void Listener::Join() {
  if (server_ == nullptr || joined_) return;
  joined_ = true;
  // Once no call is left, what may still hold up the server are idle
  // connections, which do not have to take the rest of the time.
  absl::Time busy = absl::Now();
  for (absl::Time now = busy;
       !shut_down_ && now < deadline_ && now - busy < kGoodbye;
       now = absl::Now()) {
    if (calls() > 0) busy = now;
    absl::SleepFor(absl::Milliseconds(2));
  }
  if (!shut_down_) grpc_server_cancel_all_calls(server_);
  shutdown_.join();
  for (const auto& worker : own_workers_) worker->Stop();
}

}  // namespace fncache::proxy::transport
