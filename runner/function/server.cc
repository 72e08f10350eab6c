// SPDX-License-Identifier: Apache-2.0
#include "runner/function/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/grpc_status.h"
#include "common/listen_failure.h"
#include "common/log.h"
#include "common/method.h"
#include "common/mutex.h"
#include "common/thread_pool.h"
#include "common/tls_contexts.h"
#include "common/tls_files.h"
#include "grpcpp/alarm.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/proto_buffer_writer.h"
#include "proto/function_v1.pb.h"
#include "runner/client/parse.h"

namespace fncache::runner::function {
namespace {

constexpr int kMaxMetadataBytes = 16 << 20;

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(
    const absl::optional<std::string>& tls_dir) {
  if (!tls_dir.has_value()) return grpc::InsecureServerCredentials();
  SetUpTlsContexts();
  const auto files = ReadTlsFiles(*tls_dir, TlsSide::kServer, absl::Now());
  if (!files.ok()) return files.status();
  for (const std::string& warning : files->warnings) {
    Log(LogLevel::kWarning, warning);
  }
  grpc::SslServerCredentialsOptions options(
      files->ca.empty()
          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = files->ca;
  options.pem_key_cert_pairs.push_back({files->key, files->certificate});
  return grpc::SslServerCredentials(options);
}

bool Parse(grpc::ByteBuffer* bytes, RunFunctionRequest* request) {
  grpc::ProtoBufferReader reader(bytes);
  return reader.status().ok() && client::ParseNested(&reader, request);
}

// Uses `cost` of this thread's CPU time, or less if the call ends before.
void Burn(absl::Duration cost, const grpc::CallbackServerContext& context) {
  const auto spent = [] {
    return absl::Nanoseconds(ReadClock(CLOCK_THREAD_CPUTIME_ID));
  };
  const absl::Duration end = spent() + cost;
  while (spent() < end && !context.IsCancelled()) {
    // About a millisecond of work that no compiler removes.
    volatile uint64_t sink = 0;
    for (int i = 0; i < 500000; ++i) sink = sink + i;
  }
}

}  // namespace

struct FunctionServer::Impl {
  class Service;
  class Call;

  FunctionServerOptions options;
  const Responder* responder = nullptr;
  std::string address;
  std::atomic<uint64_t> calls{0}, answered{0}, failed{0}, cancelled{0};
  // Only where calls cost CPU time: those must not hold gRPC's threads.
  std::unique_ptr<ThreadPool> workers;
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::Server> server;
};

// One RunFunction, from its first byte to OnDone, which deletes it. gRPC calls
// back from several threads, one after the other save for OnCancel.
class FunctionServer::Impl::Call : public grpc::ServerGenericBidiReactor {
 public:
  Call(Impl* impl, grpc::GenericCallbackServerContext* context)
      : impl_(impl), context_(context) {
    ReleaseTo(this);
    StartRead(&bytes_);
  }

  void OnReadDone(bool ok) override {
    AcquireFrom(this);
    started_ = absl::Now();
    number_ = ++impl_->calls;
    if (!ok) {
      End({grpc::StatusCode::INVALID_ARGUMENT, "the call has no request"});
      return;
    }
    if (impl_->options.cost.sleep <= absl::ZeroDuration() || !Sleep()) Slept();
  }

  // Ends a sleep early. gRPC waits for its return before OnDone.
  void OnCancel() override {
    bool sleeping;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      sleeping = sleeping_;
    }
    if (sleeping) alarm_.Cancel();
  }

  void OnDone() override {
    AcquireFrom(this);
    delete this;
  }

 private:
  // False if the call was cancelled already.
  bool Sleep() {
    MutexLock lock(&mutex_);
    if (cancelled_) return false;
    ReleaseTo(this);
    alarm_.Set(absl::ToChronoTime(started_ + impl_->options.cost.sleep),
               [this](bool) {
                 AcquireFrom(this);
                 Slept();
               });
    sleeping_ = true;
    return true;
  }

  void Slept() {
    if (impl_->workers == nullptr) return Answer();
    ThreadPool::Work work = [this](bool /*run*/) {
      Burn(impl_->options.cost.cpu, *context_);
      Answer();
    };
    impl_->workers->Submit(&work);
  }

  void Answer() {
    bool cancelled;
    {
      MutexLock lock(&mutex_);
      cancelled = cancelled_;
    }
    if (cancelled) return End(grpc::Status::CANCELLED);
    if (CallFails(impl_->options.fail_rate, impl_->options.seed, number_)) {
      return End({grpc::StatusCode::UNAVAILABLE,
                  "this call fails, as --fail-rate asks"});
    }
    RunFunctionRequest request;
    if (!Parse(&bytes_, &request)) {
      return End({grpc::StatusCode::INTERNAL,
                  "the request is not a RunFunctionRequest"});
    }
    RunFunctionResponse response;
    const absl::Status status = impl_->responder->Respond(request, &response);
    tag_ = request.meta().tag();
    if (!status.ok()) return End(ToGrpcStatus(status));
    bytes_.Clear();
    bool own_buffer;
    const grpc::Status written =
        grpc::GenericSerialize<grpc::ProtoBufferWriter, RunFunctionResponse>(
            response, &bytes_, &own_buffer);
    End(written);
  }

  // The call's last step: counts, logs, answers.
  void End(const grpc::Status& status) {
    if (status.ok()) {
      impl_->answered++;
    } else if (status.error_code() == grpc::StatusCode::CANCELLED) {
      impl_->cancelled++;
    } else {
      impl_->failed++;
    }
    if (impl_->options.log_calls) {
      Log(LogLevel::kInfo, "call",
          {{"run", number_},
           {"method", MethodName(MethodOf(context_->method()))},
           {"code", static_cast<int>(status.error_code())},
           {"ms", absl::ToInt64Milliseconds(absl::Now() - started_)},
           {"tag", tag_}});
    }
    ReleaseTo(this);
    if (status.ok()) {
      StartWriteAndFinish(&bytes_, grpc::WriteOptions(), status);
    } else {
      Finish(status);
    }
  }

  Impl* const impl_;
  grpc::GenericCallbackServerContext* const context_;
  grpc::ByteBuffer bytes_;  // the request, then the response
  absl::Time started_;
  uint64_t number_ = 0;
  std::string tag_;
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool sleeping_ ABSL_GUARDED_BY(mutex_) = false;  // the alarm is set
  grpc::Alarm alarm_;
};

class FunctionServer::Impl::Service : public grpc::CallbackGenericService {
 public:
  explicit Service(Impl* impl) : impl_(impl) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (MethodOf(context->method()) != Method::kOther) {
      return new Call(impl_, context);
    }
    return grpc::CallbackGenericService::CreateReactor(context);
  }

 private:
  Impl* const impl_;
};

FunctionServer::FunctionServer(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}

FunctionServer::~FunctionServer() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<FunctionServer>> FunctionServer::Start(
    const FunctionServerOptions& options, const Responder* responder) {
  const auto credentials = Credentials(options.tls_dir);
  if (!credentials.ok()) return credentials.status();
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->responder = responder;
  if (options.cost.cpu > absl::ZeroDuration()) {
    impl->workers = std::make_unique<ThreadPool>(
        std::max(2u, std::thread::hardware_concurrency()));
  }
  impl->service = std::make_unique<Impl::Service>(impl.get());

  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.RegisterCallbackGenericService(impl->service.get());
  int port = 0;
  builder.AddListeningPort(options.listen, *credentials, &port);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || port == 0) {
    return ListenFailure(options.listen);
  }
  const size_t colon = options.listen.rfind(':');
  impl->address = absl::StrCat(options.listen.substr(0, colon), ":", port);
  return std::unique_ptr<FunctionServer>(new FunctionServer(std::move(impl)));
}

const std::string& FunctionServer::address() const { return impl_->address; }

CallCounts FunctionServer::counts() const {
  CallCounts counts;
  counts.calls = impl_->calls;
  counts.answered = impl_->answered;
  counts.failed = impl_->failed;
  counts.cancelled = impl_->cancelled;
  return counts;
}

void FunctionServer::Stop(absl::Duration grace) {
  if (impl_->server == nullptr) return;
  impl_->server->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  impl_->server->Wait();
  impl_->server.reset();
}

}  // namespace fncache::runner::function
