// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/grpc_status.h"
#include "common/log.h"
#include "common/log_limiter.h"
#include "common/thread_pool.h"
#include "common/utf8.h"
#include "proto/admin.pb.h"
#include "proxy/admin/socket.h"
#include "proxy/transport/codec.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/listener.h"
#include "proxy/transport/message.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::admin {
namespace {

using transport::MessageCollector;

constexpr char kService[] = "/fncache.admin.v1.Admin/";
constexpr absl::Duration kGoodbye = absl::Seconds(2);
// Bytes of a look-up's message besides the request in it: the field's number
// and length, and the function's name.
constexpr size_t kLookUpRest = 64 << 10;

struct Method {
  std::string path;
  bool look_up = false;
  // Takes the bytes of a request, returns those of the response.
  std::function<absl::StatusOr<std::string>(Actions*, absl::string_view)> run;
};

template <typename Request, typename Response>
Method Unary(absl::string_view name,
             absl::StatusOr<Response> (Actions::*action)(const Request&)) {
  return {absl::StrCat(kService, name), name == "LookUp",
          [action](Actions* actions,
                   absl::string_view bytes) -> absl::StatusOr<std::string> {
            Request request;
            if (bytes.size() > std::numeric_limits<int>::max() ||
                !request.ParseFromArray(bytes.data(),
                                        static_cast<int>(bytes.size()))) {
              return absl::InvalidArgumentError(absl::StrCat(
                  "the message is no ", Request::descriptor()->full_name()));
            }
            const absl::StatusOr<Response> response =
                (actions->*action)(request);
            if (!response.ok()) return response.status();
            return response->SerializeAsString();
          }};
}

const std::vector<Method>& Methods() {
  static const auto* const methods = new std::vector<Method>{
      Unary("Stats", &Actions::Stats),
      Unary("LookUp", &Actions::LookUp),
      Unary("Purge", &Actions::Purge),
      Unary("Explain", &Actions::Explain),
      Unary("Config", &Actions::Config),
      Unary("Reload", &Actions::Reload),
      Unary("StartTrace", &Actions::StartTrace),
      Unary("StopTrace", &Actions::StopTrace),
      Unary("SetLogLevel", &Actions::SetLogLevel),
      Unary("Shadow", &Actions::Shadow),
      Unary("Tune", &Actions::Tune),
  };
  return *methods;
}

const Method* FindMethod(absl::string_view path) {
  for (const Method& method : Methods()) {
    if (method.path == path) return &method;
  }
  return nullptr;
}

// Whether a process accepts connections on this socket.
bool IsServed(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  // A full queue shows that a process listens.
  const bool served = connect(fd, reinterpret_cast<const sockaddr*>(&address),
                              sizeof address) == 0 ||
                      errno == EAGAIN;
  close(fd);
  return served;
}

}  // namespace

class Server::Impl final : public transport::CallHandler {
 public:
  Impl(ServerOptions options, Actions* actions)
      : options_(std::move(options)),
        actions_(actions),
        worker_(/*index=*/0),
        pool_(std::make_unique<ThreadPool>(kServerThreads - 1, kMaxCalls)) {}

  ~Impl() override {
    if (listener_ != nullptr) {
      listener_->StopAccepting(absl::Now() + kGoodbye);
      listener_->Join();
    }
    worker_.Stop();
    // A job that ends now finds the worker stopped.
    pool_ = nullptr;
    calls_.clear();
    listener_ = nullptr;
  }

  absl::Status Listen() {
    const absl::Status fits = CheckSocketPath(options_.path);
    if (!fits.ok()) return fits;
    transport::ListenerOptions listen;
    listen.address = absl::StrCat("unix:", options_.path);
    listen.workers = {&worker_};
    listen.limits.max_connections = kMaxConnections;
    listen.limits.max_streams = kMaxCalls;
    listen.socket_mode = 0600;
    // The admin service must work when callers use all other descriptors.
    listen.uses_reserve = true;
    listen.events.connection_refused = [this] {
      if (options_.connection_refused) options_.connection_refused();
      TellRefusal(&connections_refused_,
                  absl::StrCat("closed a new connection to fncache admin: ",
                               kMaxConnections, " are open"),
                  "");
    };
    listen.events.accept_failed = [this](const std::string& why) {
      TellRefusal(&accept_failures_,
                  "cannot accept connections of fncache admin, retrying", why);
    };
    auto listener = transport::Listener::Create(std::move(listen));
    if (!listener.ok()) {
      if (!IsServed(options_.path)) return listener.status();
      return absl::AlreadyExistsError(
          absl::StrCat(options_.path, ": another process serves it"));
    }
    listener_ = *std::move(listener);
    worker_.Start();
    listener_->Start(this);
    return absl::OkStatus();
  }

  const std::string& path() const { return options_.path; }

  void StartCall(transport::IncomingCallPtr call) override;

 private:
  class Call;

  // These run on the worker's thread.
  size_t MemoryBound() const {
    return options_.max_lookup_bytes + kLookUpRest + 16 * kMaxRequest;
  }
  void End(Call* call) { calls_.erase(call); }

  // Logs one line a minute of each kind.
  void TellRefusal(LogLimiter* lines, absl::string_view what,
                   const std::string& why) const {
    uint64_t unlogged = 0;
    if (!lines->Allows(absl::Now(), &unlogged)) return;
    std::vector<LogField> fields = {{"socket", options_.path}};
    if (!why.empty()) fields.emplace_back("why", why);
    if (unlogged > 0) fields.emplace_back("unlogged", unlogged);
    Log(LogLevel::kWarning, what, fields);
  }

  const ServerOptions options_;
  Actions* const actions_;
  LogLimiter connections_refused_{absl::Minutes(1)};
  LogLimiter accept_failures_{absl::Minutes(1)};
  // A call that is here when the worker has stopped waits for the pool.
  absl::flat_hash_map<Call*, std::unique_ptr<Call>> calls_;
  size_t held_ = 0;  // bytes of requests that have not ended
  transport::Worker worker_;
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<ThreadPool> pool_;
};

// One call, from its header block to its answer. If its caller has left, it
// lives until its action ends.
class Server::Impl::Call final : public transport::CallTap {
 public:
  Call(Impl* server, transport::IncomingCallPtr call, const Method* method)
      : server_(server),
        call_(std::move(call)),
        method_(method),
        limit_(method->look_up ? server->options_.max_lookup_bytes + kLookUpRest
                               : kMaxRequest),
        collector_(limit_) {}
  ~Call() {
    Hold(0);
    StopTimer();
  }

  void Start() {
    call_->Attach(this);
    timer_ = server_->worker_.After(server_->options_.patience, [this] {
      timer_.reset();
      Finish(absl::DeadlineExceededError("the request did not come in time"));
    });
  }

 private:
  void OnCallerData(absl::string_view bytes) override {
    call_->stream().Consume(bytes.size());
    const MessageCollector::State state = collector_.Take(bytes);
    Hold(collector_.held());
    switch (state) {
      case MessageCollector::State::kNone:
        if (server_->held_ <= server_->MemoryBound()) return;
        return Finish(absl::ResourceExhaustedError(
            "the arriving requests use too much memory; retry"));
      case MessageCollector::State::kWhole:
        return;  // OnCallerEnd follows
      case MessageCollector::State::kTooLarge:
        return Finish(absl::ResourceExhaustedError(absl::StrCat(
            "the request is larger than this method takes, ", limit_)));
      case MessageCollector::State::kSecond:
        return Finish(absl::InvalidArgumentError(
            "the method takes one request message, not more"));
      case MessageCollector::State::kBroken:
        return Finish(absl::InvalidArgumentError(
            "the request is not framed as gRPC's are"));
    }
  }

  void OnCallerEnd() override {
    StopTimer();
    if (collector_.state() != MessageCollector::State::kWhole) {
      return Finish(
          absl::InvalidArgumentError("the method takes one request message"));
    }
    running_ = true;
    transport::Message message = collector_.Release();
    ThreadPool::Work work =
        [this, server = server_, method = method_, limit = limit_,
         encoding = std::string(call_->fields().Find("grpc-encoding")),
         message = std::move(message)](bool run) mutable {
          absl::StatusOr<std::string> result =
              absl::UnavailableError("the daemon stops");
          if (run) {
            result = Run(*method, server->actions_, message, encoding, limit);
          }
          message.Clear();
          server->worker_.Post([this, result = std::move(result)]() mutable {
            OnResult(std::move(result));
          });
        };
    if (server_->pool_->Submit(&work)) return;
    running_ = false;
    Finish(absl::ResourceExhaustedError("too many calls; retry"));
  }

  void OnCallerSent() override {}

  void OnCallerGone(uint32_t /*code*/) override {
    call_ = nullptr;
    StopTimer();
    if (!running_) server_->End(this);
  }

  // Runs on a thread of the pool.
  static absl::StatusOr<std::string> Run(const Method& method, Actions* actions,
                                         const transport::Message& message,
                                         const std::string& encoding,
                                         size_t limit) {
    if (!message.compressed()) return method.run(actions, message.bytes());
    const absl::StatusOr<http2::Slice> plain =
        transport::Unpack(encoding, message.bytes(), limit);
    if (!plain.ok()) return plain.status();
    return method.run(actions, plain->bytes());
  }

  void OnResult(absl::StatusOr<std::string> result) {
    running_ = false;
    if (!result.ok() || call_ == nullptr) return Finish(result.status());
    transport::IncomingCall::Answer(
        std::move(call_), transport::Message(http2::Slice::Copy(*result)),
        grpc::Status::OK);
    server_->End(this);
  }

  // Ends the call and destroys `this`.
  void Finish(const absl::Status& status) {
    if (call_ != nullptr) {
      transport::IncomingCall::Finish(std::move(call_),
                                      ToGrpcStatus(AsClientStatus(status)));
    }
    server_->End(this);
  }

  // The client reads UNAVAILABLE as a daemon that has ended, so an answer never
  // has this status.
  static absl::Status AsClientStatus(const absl::Status& status) {
    return absl::IsUnavailable(status)
               ? absl::FailedPreconditionError(status.message())
               : status;
  }

  void Hold(size_t bytes) {
    server_->held_ += bytes - held_;
    held_ = bytes;
  }
  void StopTimer() {
    if (timer_.has_value()) server_->worker_.Cancel(*timer_);
    timer_.reset();
  }

  Impl* const server_;
  transport::IncomingCallPtr call_;  // null: its caller has left
  const Method* const method_;
  const size_t limit_;
  MessageCollector collector_;
  size_t held_ = 0;  // bytes, as counted in the server's held_
  bool running_ = false;
  absl::optional<transport::TimerId> timer_;
};

void Server::Impl::StartCall(transport::IncomingCallPtr call) {
  const Method* const method = FindMethod(call->path());
  if (method == nullptr) {
    const std::string why = absl::StrCat("this daemon has no method ",
                                         PrintableStart(call->path()));
    return transport::IncomingCall::Finish(
        std::move(call), ToGrpcStatus(absl::UnimplementedError(why)));
  }
  if (calls_.size() >= kMaxCalls) {
    return transport::IncomingCall::Finish(
        std::move(call),
        ToGrpcStatus(absl::ResourceExhaustedError("too many calls; retry")));
  }
  auto started = std::make_unique<Call>(this, std::move(call), method);
  Call* const raw = started.get();
  calls_.emplace(raw, std::move(started));
  raw->Start();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options,
                                                      Actions* actions) {
  auto impl = std::make_unique<Impl>(std::move(options), actions);
  const absl::Status status = impl->Listen();
  if (!status.ok()) return status;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

const std::string& Server::path() const { return impl_->path(); }

}  // namespace fncache::proxy::admin
