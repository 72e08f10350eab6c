#include "proxy/listener.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "grpc/grpc.h"
#include "grpcpp/server_builder.h"
#include "proxy/channel_arguments.h"
#include "proxy/instruments.h"

namespace fncache::proxy {
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

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(
    ListenerOptions options) {
  std::unique_ptr<Listener> listener(new Listener(std::move(options)));
  absl::Status status = listener->Bind();
  if (!status.ok()) return status;
  return listener;
}

absl::Status Listener::Bind() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options_.address, options_.credentials, &port_);
  builder.RegisterAsyncGenericService(&service_);
  SetServerArguments(&builder);
  for (int i = 0; i < options_.workers; ++i) {
    workers_.push_back(
        std::make_unique<Worker>(i, builder.AddCompletionQueue()));
  }
  accepting_.assign(options_.workers, false);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options_.address,
                     ": the address is taken or not this machine's"));
  }
  address_ = WithPort(options_.address, port_);
  return absl::OkStatus();
}

Listener::~Listener() {
  StopAccepting(absl::Now());
  Join();
}

void Listener::Start(CallHandler* handler, Upstream* upstream,
                     const FunctionInstruments* instruments) {
  handler_ = handler;
  upstream_ = upstream;
  instruments_ = instruments;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    accepting_[worker->index()] = true;
    for (int i = 0; i < kAcceptsPerWorker; ++i) Accept(worker.get());
    worker->Start();
  }
  started_ = true;
}

void Listener::Accept(Worker* worker) {
  if (!accepting_[worker->index()]) return;
  auto* call = new IncomingCall(this, worker, options_.function);
  call->context_.AsyncNotifyWhenDone(Tag(&call->done_event_));
  service_.RequestCall(&call->context_, &call->stream_, worker->queue(),
                       worker->queue(), Tag(&call->accepted_event_));
}

void Listener::Dispatch(IncomingCall* accepted) {
  Accept(accepted->worker());
  IncomingCallPtr call(accepted);
  if (call->method() != Method::kOther && handler_ != nullptr) {
    handler_->StartRunFunction(std::move(call));
    return;
  }
  if (instruments_ == nullptr) {
    ForwardStream(std::move(call), upstream_);
    return;
  }
  const Method method = call->method();
  instruments_->Begin(method);
  ForwardStream(std::move(call), upstream_,
                [instruments = instruments_, method](const StreamEnd& end) {
                  CallRecord record;
                  record.method = method;
                  record.outcome = Outcome::kBypass;
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
  for (const auto& worker : workers_) sum += worker->unary();
  return sum;
}

int Listener::calls() const {
  int sum = 0;
  for (const auto& worker : workers_) sum += worker->calls();
  return sum;
}

void Listener::StopAccepting(absl::Time deadline) {
  if (server_ == nullptr || shutdown_.joinable() || joined_) return;
  deadline_ = deadline;
  if (started_) {
    // gRPC aborts when asked for another call after its shutdown.
    absl::BlockingCounter stopped(static_cast<int>(workers_.size()));
    for (const std::unique_ptr<Worker>& worker : workers_) {
      worker->Post([this, &stopped, index = worker->index()] {
        accepting_[index] = false;
        stopped.DecrementCount();
      });
    }
    stopped.Wait();
  }
  shutdown_ = std::thread([this] {
    server_->Shutdown(absl::ToChronoTime(deadline_));
    shut_down_ = true;
  });
}

void Listener::CancelStreams() {
  if (!started_ || joined_) return;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->Post([worker = worker.get()] {
      worker->CancelActivities(Activity::Kind::kStream);
    });
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
  if (!shut_down_) grpc_server_cancel_all_calls(server_->c_server());
  shutdown_.join();
  for (const std::unique_ptr<Worker>& worker : workers_) worker->Stop();
}

}  // namespace fncache::proxy
