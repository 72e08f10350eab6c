// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/listener.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "common/listen_failure.h"
#include "grpc/grpc_security.h"
#include "grpc/support/log.h"
#include "proxy/transport/channel_arguments.h"
#include "proxy/transport/core_queue.h"

namespace fncache::proxy::transport {
namespace {

// A stop waits so long for connections without calls to go by themselves.
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
      // The thread that waits there reads from sockets, as the workers may not
      // have started.
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
  grpc_server_register_completion_queue(
      server_, options_.workers.front()->queue()->cq(), nullptr);
  grpc_server_register_completion_queue(server_, shutdown_queue_.cq(), nullptr);
  const std::shared_ptr<grpc_server_credentials> credentials =
      options_.credentials != nullptr ? options_.credentials : Plaintext();
  const int port = grpc_server_add_http2_port(server_, options_.address.c_str(),
                                              credentials.get());
  if (port == 0) {
    grpc_server_destroy(server_);
    server_ = nullptr;
    return ListenFailure(options_.address);
  }
  grpc_server_start(server_);
  address_ = WithPort(options_.address, port);
  return absl::OkStatus();
}

Listener::~Listener() {
  StopAccepting(absl::Now());
  Join();
  // The server is shut down, so that only the queue's end still comes out of
  // it.
  shutdown_queue_.Shutdown();
  void* tag;
  bool ok;
  while (shutdown_queue_.Next(&tag, &ok)) {
  }
  if (server_ != nullptr) grpc_server_destroy(server_);
}

void Listener::Start(CallHandler* handler) {
  handler_ = handler;
  accepting_ = true;
  for (int i = 0; i < kAcceptsPerWorker; ++i) Accept();
  started_ = true;
}

void Listener::Accept() {
  if (!accepting_) return;
  const std::vector<Worker*>& workers = options_.workers;
  Worker* const first = workers.front();
  Worker* worker = first;
  if (first->forwarding() >= options_.spread_after) {
    next_worker_ = (next_worker_ + 1) % workers.size();
    worker = workers[next_worker_];
  }
  IncomingCall::Lend(server_, worker, first, this);
}

void Listener::OnAccepted(IncomingCall* call) {
  Accept();
  Worker* const worker = call->worker();
  if (worker == options_.workers.front()) return Dispatch(call);
  const bool posted = worker->Post([this, call] { Dispatch(call); });
  // Workers stop only when the server has ended.
  GPR_ASSERT(posted);
}

void Listener::Dispatch(IncomingCall* accepted) {
  accepted->worker()->Enter(accepted);
  handler_->StartCall(IncomingCallPtr(accepted));
}

int Listener::Calls() const {
  int sum = 0;
  for (const Worker* worker : options_.workers) sum += worker->calls();
  return sum;
}

void Listener::StopAccepting(absl::Time deadline) {
  if (server_ == nullptr || shutdown_.joinable() || joined_) return;
  deadline_ = deadline;
  if (started_) {
    // gRPC aborts when asked for another call after its shutdown.
    absl::BlockingCounter stopped(1);
    options_.workers.front()->Post([this, &stopped] {
      accepting_ = false;
      stopped.DecrementCount();
    });
    stopped.Wait();
  }
  shutdown_ = std::thread([this] { ShutDown(); });
}

void Listener::ShutDown() {
  // There is nobody to tell but the thread that waits in the queue.
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
  for (Worker* const worker : options_.workers) {
    worker->Post(
        [worker] { worker->CancelActivities(Activity::Kind::kStream); });
  }
}

void Listener::Join() {
  if (server_ == nullptr || joined_) return;
  joined_ = true;
  // Once no call is left, only idle connections may still hold up the server,
  // and need not take the rest of the time.
  absl::Time busy = absl::Now();
  for (absl::Time now = busy;
       !shut_down_ && now < deadline_ && now - busy < kGoodbye;
       now = absl::Now()) {
    if (Calls() > 0) busy = now;
    absl::SleepFor(absl::Milliseconds(2));
  }
  if (!shut_down_) grpc_server_cancel_all_calls(server_);
  shutdown_.join();
}

}  // namespace fncache::proxy::transport
