// SPDX-License-Identifier: Apache-2.0
// Loopback: the surroundings of transport tests: a generic function server
// whose methods behave as their names say, a proxy in front of it, and a client
// that does one step at a time.
#ifndef FNCACHE_TESTS_PROXY_LOOPBACK_H_
#define FNCACHE_TESTS_PROXY_LOOPBACK_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/core_codegen_interface.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proxy/limits/budget.h"
#include "proxy/serving/stream.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/transport/listener.h"
#include "proxy/transport/tls.h"
#include "proxy/transport/upstream.h"
#include "proxy/transport/worker.h"
#include "tests/common/eventually.h"

namespace fncache::proxy {

inline grpc::ByteBuffer Buffer(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

inline std::string Text(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string out;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return out;
  for (const grpc::Slice& slice : slices) {
    out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return out;
}

// Runs `task` on the worker's thread, and waits for it.
inline bool DoOn(transport::Worker* worker, absl::AnyInvocable<void()> task) {
  std::atomic<bool> done{false};
  worker->Post([&] {
    task();
    done = true;
  });
  return Eventually([&] { return done.load(); });
}

// The function server. Its methods:
//   /t.T/Echo     each message comes back, until the half-close
//   /t.T/Count    reads all, answers "MESSAGES BYTES"
//   /t.T/Burst    request "N SIZE": N messages of that size
//   /t.T/Fail     reads one message, fails with a status with details
//   /t.T/Early    fails at once, reading nothing
//   /t.T/Headers  sends headers and waits for the half-close
//   /t.T/Hang     reads, answers nothing, until it is cancelled
//   /t.T/Stall    reads nothing, answers nothing, until it is cancelled
// anything else is UNIMPLEMENTED. Metadata keys x-head... come back as headers,
// x-trail... as trailers.
class TestFunction : public grpc::CallbackGenericService {
 public:
  // A call as the function saw it.
  struct Seen {
    std::multimap<std::string, std::string> metadata;
    std::string host;
    std::chrono::system_clock::time_point deadline;
  };

  explicit TestFunction(std::shared_ptr<grpc::ServerCredentials> credentials =
                            grpc::InsecureServerCredentials(),
                        const std::string& address = "127.0.0.1:0") {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, credentials, &port_);
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 20);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~TestFunction() override { Stop(); }
  void Stop() {
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now());
    }
    server_ = nullptr;
  }

  int port() const { return port_; }
  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }
  Seen last() {
    MutexLock lock(&mutex_);
    return last_;
  }
  std::atomic<int> calls{0};
  std::atomic<int> running{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> half_closed{0};
  std::atomic<int> messages{0};

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  class Reactor;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mutex_;
  Seen last_;
};

class TestFunction::Reactor : public grpc::ServerGenericBidiReactor {
 public:
  Reactor(TestFunction* owner, grpc::GenericCallbackServerContext* context)
      : owner_(owner), context_(context) {
    const std::string& path = context->method();
    method_ = path.substr(path.rfind('/') + 1);
    if (!absl::StartsWith(path, "/t.T/")) method_.clear();
    for (const auto& item : context->client_metadata()) {
      const std::string key(item.first.data(), item.first.size());
      const std::string value(item.second.data(), item.second.size());
      if (absl::StartsWith(key, "x-head")) {
        context->AddInitialMetadata(key, value);
      } else if (absl::StartsWith(key, "x-trail")) {
        context->AddTrailingMetadata(key, value);
      }
    }
    if (method_ == "Early") {
      End(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "too early"));
    } else if (method_ == "Stall") {
    } else if (method_ == "Headers") {
      StartSendInitialMetadata();
    } else if (method_ == "Echo" || method_ == "Count" || method_ == "Burst" ||
               method_ == "Fail" || method_ == "Hang") {
      StartRead(&in_);
    } else {
      End(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no such method"));
    }
  }
  void OnSendInitialMetadataDone(bool ok) override { StartRead(&in_); }
  void OnReadDone(bool ok) override {
    if (!ok) {
      // gRPC reports a cut-off like a half-close; this tells them apart.
      if (grpc::g_core_codegen_interface->grpc_call_failed_before_recv_message(
              context_->c_call()) != 0) {
        return;  // OnCancel ends it
      }
      ++owner_->half_closed;
      if (method_ == "Count") {
        if (ended_.exchange(true)) return;
        out_ = Buffer(absl::StrCat(count_, " ", bytes_));
        StartWriteAndFinish(&out_, grpc::WriteOptions(), grpc::Status::OK);
      } else if (method_ == "Echo" || method_ == "Headers") {
        End(grpc::Status::OK);
      } else if (method_ == "Fail" && count_ == 0) {
        End(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "nothing sent"));
      }
      return;
    }
    ++count_;
    ++owner_->messages;
    bytes_ += in_.Length();
    if (method_ == "Echo") {
      out_ = in_;
      StartWrite(&out_);
    } else if (method_ == "Burst") {
      const std::string text = Text(in_);
      const size_t space = text.find(' ');
      int size = 0;
      if (!absl::SimpleAtoi(text.substr(0, space), &left_) ||
          !absl::SimpleAtoi(text.substr(space + 1), &size)) {
        End(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, text));
        return;
      }
      out_ = Buffer(std::string(size, 'b'));
      OnWriteDone(true);
    } else if (method_ == "Fail") {
      context_->AddTrailingMetadata("x-why", "because");
      End(grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "näh: 100% \n",
                       std::string("det\0ails", 8)));
    } else {
      StartRead(&in_);
    }
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return;
    if (method_ == "Echo") {
      StartRead(&in_);
    } else if (left_-- > 0) {
      ++owner_->messages;
      StartWrite(&out_);
    } else {
      End(grpc::Status::OK);
    }
  }
  void OnCancel() override {
    ++owner_->cancelled;
    End(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    --owner_->running;
    delete this;
  }

 private:
  void End(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }

  TestFunction* const owner_;
  grpc::GenericCallbackServerContext* const context_;
  std::string method_;
  grpc::ByteBuffer in_;
  grpc::ByteBuffer out_;
  int count_ = 0;
  size_t bytes_ = 0;
  int left_ = 0;
  std::atomic<bool> ended_{false};
};

inline grpc::ServerGenericBidiReactor* TestFunction::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  ++calls;
  ++running;
  {
    MutexLock lock(&mutex_);
    last_ = Seen();
    for (const auto& item : context->client_metadata()) {
      last_.metadata.emplace(
          std::string(item.first.data(), item.first.size()),
          std::string(item.second.data(), item.second.size()));
    }
    last_.host = context->host();
    last_.deadline = context->deadline();
  }
  return new Reactor(this, context);
}

// One call that is made step by step; each step waits until it is done.
class TestCall {
 public:
  TestCall(const std::shared_ptr<grpc::Channel>& channel,
           const std::string& method)
      : stub_(channel), method_(method) {}
  ~TestCall() {
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  grpc::ClientContext& context() { return context_; }
  bool Start() {
    call_ = stub_.PrepareCall(&context_, method_, &queue_);
    call_->StartCall(this);
    return Wait();
  }
  bool Write(const std::string& text) {
    call_->Write(Buffer(text), this);
    return Wait();
  }
  bool HalfClose() {
    call_->WritesDone(this);
    return Wait();
  }
  bool Headers() {
    call_->ReadInitialMetadata(this);
    return Wait();
  }
  bool Read(std::string* text) {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, this);
    if (!Wait()) return false;
    *text = Text(buffer);
    return true;
  }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, this);
    Wait();
    return status;
  }
  // Sends one message, waits for one in return, and gives the status.
  grpc::Status Unary(const std::string& request, std::string* response) {
    auto reader =
        stub_.PrepareUnaryCall(&context_, method_, Buffer(request), &queue_);
    reader->StartCall();
    grpc::Status status;
    grpc::ByteBuffer buffer;
    reader->Finish(&buffer, &status, this);
    Wait();
    *response = Text(buffer);
    return status;
  }
  static std::vector<std::string> Values(
      const std::multimap<grpc::string_ref, grpc::string_ref>& metadata,
      const std::string& key) {
    std::vector<std::string> out;
    const auto range = metadata.equal_range(key);
    for (auto i = range.first; i != range.second; ++i) {
      out.emplace_back(i->second.data(), i->second.size());
    }
    return out;
  }

 private:
  bool Wait() {
    void* tag;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  const std::string method_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

inline std::shared_ptr<grpc::Channel> Connect(
    const std::string& target,
    std::shared_ptr<grpc::ChannelCredentials> credentials =
        grpc::InsecureChannelCredentials()) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 16 << 20);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(target, credentials, args);
}

// A listener on a free port with workers of its own, over which connections are
// spread.
class TestListener {
 public:
  // `handler` outlives this.
  explicit TestListener(transport::CallHandler* handler, int workers = 2,
                        transport::ServerTls* tls = nullptr,
                        limits::Budget* inflight = nullptr)
      : workers_(transport::MakeWorkers(workers)) {
    transport::ListenerOptions options;
    options.address = "127.0.0.1:0";
    for (const auto& worker : workers_) options.workers.push_back(worker.get());
    options.tls = tls;
    options.inflight = inflight;
    auto listener = transport::Listener::Create(std::move(options));
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    for (const auto& worker : workers_) worker->Start();
    listener_->Start(handler);
  }
  ~TestListener() {
    listener_->StopAccepting(absl::Now());
    Join();
  }

  const std::string& address() const { return listener_->address(); }
  std::string port() const {
    return address().substr(address().rfind(':') + 1);
  }

  // How many calls the workers have: calls with a caller that waits for the
  // answer, and all calls, streams included.
  int unary() const {
    int sum = 0;
    for (const auto& worker : workers_) sum += worker->unary();
    return sum;
  }
  int calls() const {
    int sum = 0;
    for (const auto& worker : workers_) sum += worker->calls();
    return sum;
  }

  // A graceful stop, as the daemon's.
  void StopAccepting(absl::Time deadline) {
    listener_->StopAccepting(deadline);
  }
  void CancelStreams() { listener_->CancelStreams(); }
  void Join() {
    listener_->Join();
    for (const auto& worker : workers_) worker->Stop();
  }

 private:
  // The workers outlive the listener.
  std::vector<std::unique_ptr<transport::Worker>> workers_;
  std::unique_ptr<transport::Listener> listener_;
};

// Forwards every call, RunFunction too, as a stream.
class ForwardingHandler : public transport::CallHandler {
 public:
  explicit ForwardingHandler(transport::Upstream* upstream)
      : upstream_(upstream) {}
  void StartCall(transport::IncomingCallPtr call) override {
    serving::ForwardStream(std::move(call), upstream_,
                           instruments_.function(0));
  }

 private:
  transport::Upstream* const upstream_;
  const telemetry::Instruments instruments_{{"function"}};
};

// A listener that forwards everything to one target.
class TestProxy {
 public:
  // `tls`, towards the target, and `server_tls`, towards callers, may be null.
  explicit TestProxy(transport::UpstreamOptions options, int workers = 2,
                     transport::ClientTls* tls = nullptr,
                     transport::ServerTls* server_tls = nullptr)
      : upstream_(std::move(options), tls, workers),
        handler_(&upstream_),
        listener_(&handler_, workers, server_tls,
                  upstream_.options().inflight) {}
  static transport::UpstreamOptions To(const std::string& target) {
    transport::UpstreamOptions options;
    options.target = target;
    return options;
  }
  TestListener& listener() { return listener_; }
  std::string target() const { return listener_.address(); }

 private:
  transport::Upstream upstream_;
  ForwardingHandler handler_;
  TestListener listener_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_TESTS_PROXY_LOOPBACK_H_
