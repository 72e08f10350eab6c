// SPDX-License-Identifier: Apache-2.0
#include "runner/client/function_client.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/method.h"
#include "common/mutex.h"
#include "common/tls_files.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "runner/client/function_credentials.h"
#include "runner/client/parse.h"
#include "runner/client/rpc_error.h"

namespace fncache::runner::client {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;

// Go's default, which the reference runner leaves as it is.
constexpr int kMaxResponseBytes = 4 << 20;
constexpr int kMaxMetadataBytes = 16 << 20;

// A call of this method is sent, and not waited for, to learn why no other got
// through.
constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
constexpr absl::Duration kProbeTime = absl::Milliseconds(50);

// Targets that Go takes and gRPC C++ does not, spelled so that it does.
std::string ChannelTarget(absl::string_view target) {
  absl::ConsumePrefix(&target, "passthrough:///");
  absl::string_view address = target;
  const bool dns = absl::ConsumePrefix(&address, "dns:///");
  if (!absl::StartsWith(address, ":")) return std::string(target);
  return absl::StrCat(dns ? "dns:///" : "", "localhost", address);
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetUserAgentPrefix("fncache");
  arguments.SetLoadBalancingPolicyName("round_robin");
  arguments.SetMaxReceiveMessageSize(kMaxResponseBytes);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // No service config, and nothing is repeated. The reference runner repeats
  // calls that no function saw; what gRPC does that with ends the process where
  // a call's end carries no status, as with a web server that is no function.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // Despite its name this bounds one attempt to connect.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  // Connections of this client's own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const std::string& tls_dir) {
  if (tls_dir.empty()) return grpc::InsecureChannelCredentials();
  const auto files = ReadTlsFiles(tls_dir, TlsSide::kClient, absl::Now());
  if (!files.ok()) return files.status();
  for (const std::string& warning : files->warnings) {
    Log(LogLevel::kWarning, warning);
  }
  return FunctionCredentials(*files, /*name_setting=*/"");
}

// One target's channel, made for the first call of one of its functions.
struct Target {
  explicit Target(std::string address) : address(std::move(address)) {}

  const std::string address;
  Mutex mutex;
  std::shared_ptr<grpc::Channel> channel ABSL_GUARDED_BY(mutex);
  // The first call since the last answer: how long there has been no connection
  // if there is none now.
  absl::Time unanswered_since ABSL_GUARDED_BY(mutex) = absl::InfiniteFuture();
  std::string function ABSL_GUARDED_BY(mutex);  // that call's
};

// Adds the values of one name, which are lists to be joined by commas.
void AddValues(const std::multimap<grpc::string_ref, grpc::string_ref>& fields,
               const char* name, std::vector<absl::string_view>* values) {
  const auto headers = fields.equal_range(name);
  for (auto header = headers.first; header != headers.second; ++header) {
    values->emplace_back(header->second.data(), header->second.size());
  }
}

}  // namespace

// Calls are kept in `calls` until their `done` has returned and is destroyed.
// The threads of the queues work on a call one after the other. Its mutex
// guards the fields that the destructor cancels meanwhile. The thread that
// starts a call locks it, too: the call may be over before that thread has
// unlocked the mutex.
struct FunctionClient::Impl
    : public std::enable_shared_from_this<FunctionClient::Impl> {
  struct Attempt {
    grpc::ClientContext context;
    absl::Time started;
    absl::Time ended;
    std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
    grpc::ByteBuffer response;
    grpc::Status status;
  };
  enum class Stage { kV1, kV1Beta1, kProbe };
  struct OneCall {
    Target* target = nullptr;
    std::shared_ptr<grpc::Channel> channel;
    grpc::CompletionQueue* queue = nullptr;
    absl::Time deadline;
    Done done;
    std::vector<std::pair<std::string, std::string>> metadata;
    grpc::ByteBuffer request;
    size_t request_size = 0;
    Stage stage = Stage::kV1;

    Mutex mutex;
    bool cancelled ABSL_GUARDED_BY(mutex) = false;
    // Replaced under the mutex only, by the thread that the call is with, which
    // therefore reads it without.
    std::unique_ptr<Attempt> attempt;
  };
  using CallPtr = std::shared_ptr<OneCall>;

  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::function<std::string(const RunFunctionRequest&)> encode;  // may be null
  std::function<std::vector<std::pair<std::string, std::string>>()>
      metadata;                                    // may be null
  std::function<void(std::function<void()>)> run;  // may be null
  std::vector<std::unique_ptr<Target>> targets;
  absl::flat_hash_map<std::string, Target*> by_function;

  Mutex mutex;
  CondVar changed;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  absl::flat_hash_map<OneCall*, CallPtr> calls ABSL_GUARDED_BY(mutex);

  std::atomic<size_t> next_queue{0};
  std::vector<std::unique_ptr<grpc::CompletionQueue>> queues;
  std::vector<std::thread> threads;

  std::shared_ptr<grpc::Channel> Channel(Target* target) {
    MutexLock lock(&target->mutex);
    if (target->channel == nullptr) {
      target->channel =
          grpc::CreateCustomChannel(target->address, credentials, Arguments());
    }
    return target->channel;
  }

  grpc::Status Write(const RunFunctionRequest& request,
                     grpc::ByteBuffer* bytes) const {
    if (encode != nullptr) {
      grpc::Slice slice(encode(request));
      *bytes = grpc::ByteBuffer(&slice, 1);
      return grpc::Status::OK;
    }
    // In one piece: gRPC's own way counts the message's bytes twice.
    const size_t size = request.ByteSizeLong();
    if (size > std::numeric_limits<int>::max()) {
      return {grpc::StatusCode::INTERNAL, "the request is over 2 GiB"};
    }
    grpc::Slice slice(size);
    request.SerializeWithCachedSizesToArray(
        const_cast<uint8_t*>(slice.begin()));  // no other reference yet
    *bytes = grpc::ByteBuffer(&slice, 1);
    return grpc::Status::OK;
  }

  // False if the client is being destroyed.
  bool Register(const CallPtr& call) {
    MutexLock lock(&mutex);
    if (stopping) return false;
    calls.emplace(call.get(), call);
    return true;
  }

  // False, with nothing started, if the call was cancelled.
  static bool StartAttempt(OneCall* call) {
    const bool probe = call->stage == Stage::kProbe;
    auto attempt = std::make_unique<Attempt>();
    attempt->context.set_wait_for_ready(!probe);
    if (!probe) {
      for (const auto& [name, value] : call->metadata) {
        attempt->context.AddMetadata(name, value);
      }
    }
    const absl::Time deadline =
        probe ? absl::Now() + kProbeTime : call->deadline;
    if (deadline != absl::InfiniteFuture()) {
      // gRPC takes a time before the epoch for none at all.
      attempt->context.set_deadline(
          absl::ToChronoTime(std::max(deadline, absl::UnixEpoch())));
    }
    const char* const method = probe ? kHealth
                               : call->stage == Stage::kV1
                                   ? kRunFunctionV1
                                   : kRunFunctionV1beta1;
    MutexLock lock(&call->mutex);
    if (call->cancelled) return false;
    call->attempt = std::move(attempt);
    Attempt& started = *call->attempt;
    started.reader =
        grpc::GenericStub(call->channel)
            .PrepareUnaryCall(&started.context, method,
                              probe ? grpc::ByteBuffer() : call->request,
                              call->queue);
    started.started = absl::Now();
    started.reader->StartCall();
    ReleaseTo(call);
    started.reader->Finish(&started.response, &started.status, call);
    return true;
  }

  void Work(grpc::CompletionQueue* queue) {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) {
      const absl::Time ended = absl::Now();
      AcquireFrom(tag);
      CallPtr call;
      {
        MutexLock lock(&mutex);
        call = calls.at(static_cast<OneCall*>(tag));
      }
      // Its start, on another thread, is over only now.
      { MutexLock lock(&call->mutex); }
      call->attempt->ended = ended;
      if (run == nullptr) {
        Finished(call.get());
        continue;
      }
      run([self = shared_from_this(), call = std::move(call)] {
        self->Finished(call.get());
      });
    }
  }

  void Finished(OneCall* call) {
    const Attempt& attempt = *call->attempt;
    switch (call->stage) {
      case Stage::kV1:
        if (attempt.status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
          return Next(call, Stage::kV1Beta1);
        }
        break;
      case Stage::kV1Beta1:
        break;
      case Stage::kProbe: {
        CallResult result;
        result.status = NotConnectedError(attempt.status);
        return End(call, std::move(result));
      }
    }
    if (IsLocalDeadline(attempt.status) &&
        call->channel->GetState(false) != GRPC_CHANNEL_READY) {
      return Next(call, Stage::kProbe);
    }
    {
      MutexLock lock(&call->target->mutex);
      call->target->unanswered_since = absl::InfiniteFuture();
    }
    End(call, Result(call));
  }

  void Next(OneCall* call, Stage stage) {
    call->stage = stage;
    if (!StartAttempt(call)) End(call, Closing());
  }

  static CallResult Closing() {
    CallResult result;
    result.status = RpcError(grpc::StatusCode::CANCELLED,
                             "grpc: the client connection is closing");
    return result;
  }

  static CallResult Result(OneCall* call) {
    CallResult result;
    Attempt& attempt = *call->attempt;
    result.round_trip = attempt.ended - attempt.started;
    // An answer without a message has its headers where its status is.
    const auto& trailers = attempt.context.GetServerTrailingMetadata();
    std::vector<absl::string_view> cache_status;
    AddValues(attempt.context.GetServerInitialMetadata(), "cache-status",
              &cache_status);
    AddValues(trailers, "cache-status", &cache_status);
    result.cache_status = absl::StrJoin(cache_status, ", ");
    std::vector<absl::string_view> hint;
    AddValues(trailers, "fncache-depends", &hint);
    if (!hint.empty()) result.hint = absl::StrJoin(hint, ", ");
    if (!attempt.status.ok()) {
      result.status = RpcError(attempt.status, call->request_size);
      return result;
    }
    grpc::ProtoBufferReader reader(&attempt.response);
    if (!reader.status().ok() || !ParseNested(&reader, &result.response)) {
      result.response.Clear();
      result.status = RpcError(
          grpc::StatusCode::INTERNAL,
          "grpc: failed to unmarshal the received message: proto: cannot parse "
          "invalid wire-format data");
    }
    return result;
  }

  void End(OneCall* call, CallResult result) {
    {
      // `done` and all that it holds are destroyed before the call counts as
      // over.
      const Done done = std::move(call->done);
      done(std::move(result));
    }
    MutexLock lock(&mutex);
    calls.erase(call);
    if (calls.empty()) changed.SignalAll();
  }

  void Cancel() {
    MutexLock lock(&mutex);
    stopping = true;
    for (const auto& entry : calls) {
      OneCall& call = *entry.second;
      MutexLock call_lock(&call.mutex);
      call.cancelled = true;
      if (call.attempt != nullptr) call.attempt->context.TryCancel();
    }
  }

  // How a call that does not wait ends, which no function sees.
  static grpc::Status Try(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kProbeTime));
    grpc::CompletionQueue queue;
    grpc::ByteBuffer response;
    grpc::Status status;
    const auto reader = grpc::GenericStub(channel).PrepareUnaryCall(
        &context, kHealth, grpc::ByteBuffer(), &queue);
    reader->StartCall();
    reader->Finish(&response, &status, &status);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    return status;
  }

  std::vector<NotConnected> FindNotConnected(absl::Duration patience) {
    std::vector<NotConnected> found;
    for (const auto& target : targets) {
      NotConnected one;
      std::shared_ptr<grpc::Channel> channel;
      {
        MutexLock lock(&target->mutex);
        if (absl::Now() - target->unanswered_since < patience) continue;
        channel = target->channel;
        one.function = target->function;
      }
      if (channel->GetState(false) == GRPC_CHANNEL_READY) continue;
      const grpc::Status status = Try(channel);
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
          !IsLocalDeadline(status)) {
        continue;  // there is a connection now
      }
      one.target = target->address;
      const std::string words = PlainRpcError(NotConnectedError(status));
      one.why =
          std::string(absl::StripPrefix(words, "no connection in time: "));
      found.push_back(std::move(one));
    }
    return found;
  }

  void Stop() {
    Cancel();
    {
      MutexLock lock(&mutex);
      while (!calls.empty()) changed.Wait(&mutex);
    }
    for (const auto& queue : queues) queue->Shutdown();
    for (std::thread& thread : threads) thread.join();
  }
};

FunctionClient::FunctionClient(std::shared_ptr<Impl> impl)
    : impl_(std::move(impl)) {}

void FunctionClient::Cancel() { impl_->Cancel(); }

std::vector<NotConnected> FunctionClient::FindNotConnected(
    absl::Duration patience) {
  return impl_->FindNotConnected(patience);
}

FunctionClient::~FunctionClient() { impl_->Stop(); }

absl::StatusOr<FunctionTarget> ParseFunctionTarget(absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos || equals == 0 ||
      equals + 1 == text.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected NAME=TARGET, such as "
                     "function-auto-ready=127.0.0.1:9443, but got \"",
                     text, "\""));
  }
  return FunctionTarget{std::string(text.substr(0, equals)),
                        std::string(text.substr(equals + 1))};
}

absl::StatusOr<std::unique_ptr<FunctionClient>> FunctionClient::CreateUncached(
    std::vector<FunctionTarget> functions, std::string tls_dir) {
  FunctionClientOptions options;
  options.functions = std::move(functions);
  options.tls_dir = std::move(tls_dir);
  options.metadata = [] {
    return std::vector<std::pair<std::string, std::string>>{
        {"cache-control", "no-store"}, AskForHint()};
  };
  return Create(std::move(options));
}

absl::StatusOr<std::unique_ptr<FunctionClient>> FunctionClient::Create(
    FunctionClientOptions options) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "threads: ", options.threads, " is not accepted; accepted: 1 or more"));
  }
  auto credentials = Credentials(options.tls_dir);
  if (!credentials.ok()) return credentials.status();
  auto impl = std::make_shared<Impl>();
  impl->credentials = *std::move(credentials);
  impl->encode = std::move(options.encode);
  impl->metadata = std::move(options.metadata);
  impl->run = std::move(options.run);
  absl::flat_hash_map<std::string, Target*> by_address;
  for (const FunctionTarget& function : options.functions) {
    if (impl->by_function.contains(function.name)) continue;
    const std::string address = ChannelTarget(function.target);
    Target*& target = by_address[address];
    if (target == nullptr) {
      impl->targets.push_back(std::make_unique<Target>(address));
      target = impl->targets.back().get();
    }
    impl->by_function[function.name] = target;
  }
  for (int i = 0; i < options.threads; ++i) {
    impl->queues.push_back(std::make_unique<grpc::CompletionQueue>());
    impl->threads.emplace_back([impl = impl.get(),
                                queue = impl->queues.back().get(),
                                begin = options.begin_thread] {
      if (begin != nullptr) begin();
      impl->Work(queue);
    });
  }
  return std::unique_ptr<FunctionClient>(new FunctionClient(std::move(impl)));
}

void FunctionClient::Call(const std::string& function,
                          const RunFunctionRequest& request,
                          absl::Time deadline, Done done) {
  const auto target = impl_->by_function.find(function);
  if (target == impl_->by_function.end()) {
    CallResult result;
    result.status = absl::NotFoundError(
        absl::StrCat("unknown function \"", function,
                     "\" - is it listed in the render input?"));
    return done(std::move(result));
  }
  const auto call = std::make_shared<Impl::OneCall>();
  const grpc::Status written = impl_->Write(request, &call->request);
  if (!written.ok()) {
    CallResult result;
    result.status = RpcError(grpc::StatusCode::INTERNAL,
                             absl::StrCat("grpc: error while marshaling: ",
                                          written.error_message()));
    return done(std::move(result));
  }
  call->request_size = call->request.Length();
  if (impl_->metadata != nullptr) call->metadata = impl_->metadata();
  call->target = target->second;
  call->channel = impl_->Channel(call->target);
  {
    MutexLock lock(&call->target->mutex);
    if (call->target->unanswered_since == absl::InfiniteFuture()) {
      call->target->unanswered_since = absl::Now();
      call->target->function = function;
    }
  }
  call->queue = impl_->queues[impl_->next_queue++ % impl_->queues.size()].get();
  call->deadline = deadline;
  call->done = std::move(done);
  if (!impl_->Register(call)) return call->done(Impl::Closing());
  if (!Impl::StartAttempt(call.get())) {
    impl_->End(call.get(), Impl::Closing());
  }
}

}  // namespace fncache::runner::client
