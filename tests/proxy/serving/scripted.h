// SPDX-License-Identifier: Apache-2.0
// The surroundings of tests of the RunFunction path: a function that answers
// when and as the test says, a store whose lower tier does too, callers that
// need no thread of their own, and the listener and handler under test.
#ifndef FNCACHE_TESTS_PROXY_SERVING_SCRIPTED_H_
#define FNCACHE_TESTS_PROXY_SERVING_SCRIPTED_H_

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "cache/store/memory_store.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "proto/function_v1.pb.h"
#include "proxy/serving/handler.h"
#include "proxy/telemetry/instruments.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::serving {

namespace fnv1 = ::apiextensions::fn::proto::v1;

// A call that has reached the function and waits for its answer. Answer it
// once; answering one that is cancelled is allowed and does nothing.
class FunctionCall {
 public:
  FunctionCall(grpc::GenericCallbackServerContext* context,
               std::function<void(grpc::Status, const std::string*)> answer)
      : context_(context), answer_(std::move(answer)) {}

  std::string bytes;  // the request
  std::string path;
  std::multimap<std::string, std::string> metadata;
  bool has_deadline = false;

  fnv1::RunFunctionRequest request() const {
    fnv1::RunFunctionRequest request;
    EXPECT_TRUE(request.ParseFromString(bytes));
    return request;
  }
  bool cancelled() const { return cancelled_; }
  // Until the call's deadline, as the function received it; while it runs.
  absl::Duration TimeLeft() const {
    return absl::FromChrono(context_->deadline() -
                            std::chrono::system_clock::now());
  }

  // Before the answer: compresses it if the caller accepts that.
  void Compress() { context_->set_compression_level(GRPC_COMPRESS_LEVEL_HIGH); }
  // Before the answer.
  void AddHeader(const std::string& key, const std::string& value) {
    headers_.emplace_back(key, value);
  }
  void AddTrailer(const std::string& key, const std::string& value) {
    trailers_.emplace_back(key, value);
  }
  void Answer(const std::string& response) { End(grpc::Status::OK, &response); }
  void Fail(const grpc::Status& status) { End(status, nullptr); }
  // Says OK, and sends no message.
  void AnswerNothing() { End(grpc::Status::OK, nullptr); }

  void OnCancel() {
    cancelled_ = true;
    End(grpc::Status::CANCELLED, nullptr);
  }

 private:
  void End(const grpc::Status& status, const std::string* response) {
    if (ended_.exchange(true)) return;
    if (!cancelled_) {
      for (const auto& [key, value] : headers_) {
        context_->AddInitialMetadata(key, value);
      }
      for (const auto& [key, value] : trailers_) {
        context_->AddTrailingMetadata(key, value);
      }
    }
    answer_(status, response);
  }

  grpc::GenericCallbackServerContext* const context_;
  const std::function<void(grpc::Status, const std::string*)> answer_;
  std::vector<std::pair<std::string, std::string>> headers_;
  std::vector<std::pair<std::string, std::string>> trailers_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> ended_{false};
};

using FunctionCallPtr = std::shared_ptr<FunctionCall>;

// Hands every call to `script`, on gRPC's threads; without one, to Next.
class ScriptedFunction : public grpc::CallbackGenericService {
 public:
  explicit ScriptedFunction(
      std::function<void(const FunctionCallPtr&)> script = nullptr)
      : script_(std::move(script)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedFunction() override {
    // Unanswered calls are cancelled at once.
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }
  int calls() const { return calls_; }
  // Calls that are neither answered nor cancelled.
  int running() const { return running_; }

  // Calls whose requests have come and that were not taken yet.
  size_t waiting() {
    MutexLock lock(&mutex_);
    return waiting_.size();
  }

  // The next call that was not taken yet; waits for it.
  FunctionCallPtr Next() {
    FunctionCallPtr call;
    EXPECT_TRUE(Eventually([&] {
      MutexLock lock(&mutex_);
      if (waiting_.empty()) return false;
      call = waiting_.front();
      waiting_.pop_front();
      return true;
    }));
    return call;
  }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Reactor(this, context);
  }

 private:
  class Reactor : public grpc::ServerGenericBidiReactor {
   public:
    Reactor(ScriptedFunction* owner,
            grpc::GenericCallbackServerContext* context)
        : owner_(owner),
          call_(std::make_shared<FunctionCall>(
              context,
              [this](grpc::Status status, const std::string* response) {
                End(status, response);
              })) {
      ++owner_->calls_;
      ++owner_->running_;
      call_->path = context->method();
      call_->has_deadline =
          context->deadline() != std::chrono::system_clock::time_point::max();
      for (const auto& [key, value] : context->client_metadata()) {
        call_->metadata.emplace(std::string(key.data(), key.size()),
                                std::string(value.data(), value.size()));
      }
      StartRead(&in_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) {
        call_->Fail(grpc::Status(grpc::StatusCode::INTERNAL, "no message"));
        return;
      }
      call_->bytes = Text(in_);
      if (owner_->script_ != nullptr) {
        owner_->script_(call_);
        return;
      }
      MutexLock lock(&owner_->mutex_);
      owner_->waiting_.push_back(call_);
    }
    void OnCancel() override { call_->OnCancel(); }
    void OnDone() override { delete this; }

   private:
    void End(const grpc::Status& status, const std::string* response) {
      // Before the caller can know it and call again.
      --owner_->running_;
      if (response == nullptr) {
        Finish(status);
        return;
      }
      out_ = Buffer(*response);
      StartWriteAndFinish(&out_, grpc::WriteOptions(), status);
    }

    ScriptedFunction* const owner_;
    const FunctionCallPtr call_;
    grpc::ByteBuffer in_;
    grpc::ByteBuffer out_;
  };

  const std::function<void(const FunctionCallPtr&)> script_;
  int port_ = 0;
  std::atomic<int> calls_{0};
  std::atomic<int> running_{0};
  Mutex mutex_;
  std::deque<FunctionCallPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

// A store with the real memory tier, and below it either nothing or a tier that
// answers what the test says, when the test says it.
class ScriptedStore : public cache::store::TieredStore {
 public:
  using Done = absl::AnyInvocable<void(cache::store::Found)>;

  explicit ScriptedStore(bool has_lower = false,
                         const cache::store::MemoryStoreOptions& options = {},
                         const cache::key::Seed& seed = {1, 2, 3})
      : seed_(seed), memory_(options, nullptr), has_lower_(has_lower) {}

  const cache::key::Seed& seed() const override {
    return late_ ? late_seed_ : seed_;
  }
  cache::store::Found Get(const cache::key::Key& key, absl::Time now) override {
    return memory_.Get(key, now);
  }
  cache::store::Found GetMemory(const cache::key::Key& key,
                                absl::Time now) override {
    return memory_.Get(key, now);
  }
  bool has_lower() const override { return has_lower_; }
  bool MayBeYoungerBelow() const override { return younger_below; }
  bool MayFindBelow() override { return may_find_below; }
  void GetLower(const cache::key::Key& key, cache::FunctionId function,
                absl::Time than, absl::Time now, Done done) override {
    MutexLock lock(&mutex_);
    thans_.push_back(than);
    lookups_.push_back(std::move(done));
  }
  std::vector<absl::Time> thans() const {
    MutexLock lock(&mutex_);
    return thans_;
  }
  // Takes the next look-up below; waits for it.
  Done NextLookup() {
    Done done;
    EXPECT_TRUE(Eventually([&] {
      MutexLock lock(&mutex_);
      if (lookups_.empty()) return false;
      done = std::move(lookups_.front());
      lookups_.pop_front();
      return true;
    }));
    return done;
  }
  cache::store::PutResult Fill(const cache::key::Key& key,
                               cache::store::EntryRef entry, bool lower,
                               absl::Time now) override {
    fills.fetch_add(1);
    if (lower) fills_below.fetch_add(1);
    return memory_.Put(key, std::move(entry), now);
  }
  void Displace(const cache::key::Key& key, absl::Time started,
                cache::FunctionId function, absl::Time now) override {
    memory_.Purge(key, started, now);
  }
  bool Erase(const cache::key::Key& key) override { return memory_.Erase(key); }
  cache::store::PurgedKey Purge(const cache::key::Key& key, absl::Time until,
                                absl::Time now) override {
    return memory_.Purge(key, until, now);
  }
  std::vector<cache::store::Inspection> Inspect(
      const cache::key::Key& key) const override {
    return memory_.Inspect(key);
  }
  uint64_t Sweep(cache::FunctionId function, absl::Time until) override {
    return memory_.Sweep(function, until);
  }
  cache::store::StoreStats Stats() const override { return memory_.Stats(); }
  cache::store::StoreStats LowerStats() const override { return {}; }
  size_t QueueDepth() const override { return 0; }
  size_t LookupQueueDepth() const override { return 0; }
  absl::Status Change(const cache::store::TieredChange& change,
                      absl::Time now) override {
    memory_.SetCapacity(change.memory_bytes, now);
    return absl::OkStatus();
  }
  void EraseSecrets(cache::FunctionId function) override {
    memory_.EraseSecrets(function);
  }
  void Flush() override {}

  // As where a disk tier opens late: another seed, and memory is emptied.
  void OpenLate() {
    late_ = true;
    memory_.Clear();
  }

  // The lower tier is one that other processes fill, too.
  std::atomic<bool> younger_below{false};
  std::atomic<bool> may_find_below{true};
  std::atomic<int> fills{0};
  std::atomic<int> fills_below{0};

 private:
  const cache::key::Seed seed_;
  const cache::key::Seed late_seed_ = {4, 5, 6};
  std::atomic<bool> late_{false};
  cache::store::MemoryStore memory_;
  const bool has_lower_;
  mutable Mutex mutex_;
  // The starts that the look-ups below gave.
  std::vector<absl::Time> thans_ ABSL_GUARDED_BY(mutex_);
  std::deque<Done> lookups_ ABSL_GUARDED_BY(mutex_);
};

// One unary call; Start returns at once.
class Caller : public std::enable_shared_from_this<Caller> {
 public:
  grpc::ClientContext context;

  void Start(const std::shared_ptr<grpc::Channel>& channel,
             const std::string& path, const std::string& request) {
    stub_ = std::make_unique<grpc::GenericStub>(channel);
    request_ = Buffer(request);
    stub_->UnaryCall(&context, path, {}, &request_, &response_,
                     [self = shared_from_this()](grpc::Status status) {
                       MutexLock lock(&self->mutex_);
                       self->status_ = std::move(status);
                       self->late_ = std::chrono::system_clock::now() >=
                                     self->context.deadline();
                       ++self->answers_;
                     });
  }
  // How many answers there were so far, for tests that go on as answers come.
  int answers() {
    MutexLock lock(&mutex_);
    return answers_;
  }
  grpc::Status Wait() {
    EXPECT_TRUE(Eventually([&] { return answers() > 0; }, absl::Seconds(60)));
    MutexLock lock(&mutex_);
    return status_;
  }
  // Whether the deadline had passed when the answer came; after Wait.
  bool answered_late() {
    MutexLock lock(&mutex_);
    return late_;
  }
  // After Wait.
  bool has_message() const { return response_.Valid(); }
  std::string bytes() { return Text(response_); }
  fnv1::RunFunctionResponse response() {
    fnv1::RunFunctionResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes()));
    return response;
  }
  std::vector<std::string> Headers(const std::string& key) {
    auto out = TestCall::Values(context.GetServerInitialMetadata(), key);
    // An error without messages comes with trailers only.
    if (out.empty()) {
      out = TestCall::Values(context.GetServerTrailingMetadata(), key);
    }
    return out;
  }
  std::vector<std::string> Trailers(const std::string& key) {
    return TestCall::Values(context.GetServerTrailingMetadata(), key);
  }
  std::string cache_status() {
    return absl::StrJoin(Headers("cache-status"), ", ");
  }

 private:
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  Mutex mutex_;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  int answers_ ABSL_GUARDED_BY(mutex_) = 0;
  bool late_ ABSL_GUARDED_BY(mutex_) = false;
};

using CallerPtr = std::shared_ptr<Caller>;

// A handler, its listener and upstream, on a clock that the test advances.
class CachingProxy {
 public:
  // `inflight`: the bytes that its calls may hold; 0: as many as they like.
  CachingProxy(const std::string& target,
               const settings::FunctionOptions& options, ScriptedStore* store,
               int workers = 2, bool explains = false, size_t inflight = 0)
      : options_(options),
        inflight_(inflight == 0
                      ? nullptr
                      : std::make_unique<limits::Budget>(inflight, workers)),
        upstream_(To(target, inflight_.get()), nullptr, workers),
        handler_(0, options, store, &clock, &upstream_, instruments.function(0),
                 &traces, explains ? &misses_ : nullptr, &access_log, &tuning),
        listener_(std::make_unique<TestListener>(&handler_, workers, nullptr,
                                                 inflight_.get())) {}
  std::string target() const { return listener_->address(); }
  limits::Budget& inflight() { return *inflight_; }
  transport::Upstream& upstream() { return upstream_; }
  FlightTable::Stats flights() const { return handler_.GetFlights(); }
  FunctionHandler& handler() { return handler_; }
  insight::explain::MissMemory& misses() { return misses_; }
  telemetry::ShadowReport shadow() const {
    const auto report = handler_.Shadow();
    EXPECT_TRUE(report.has_value());
    return report.value_or(telemetry::ShadowReport());
  }
  TestListener& listener() { return *listener_; }
  // Cancels what is left, and waits for it.
  void Stop() { listener_ = nullptr; }

  SimulatedClock clock{absl::FromUnixSeconds(1'800'000'000)};
  telemetry::Instruments instruments{{"function"}};
  Tuning tuning;  // in use if the options say so
  telemetry::AccessLog access_log{instruments.access_log()};
  TraceShared traces;  // to be replaced by a writer

 private:
  static transport::UpstreamOptions To(const std::string& target,
                                       limits::Budget* inflight) {
    transport::UpstreamOptions options = TestProxy::To(target);
    options.inflight = inflight;
    return options;
  }

  const settings::FunctionOptions options_;
  const std::unique_ptr<limits::Budget> inflight_;
  insight::explain::MissMemory misses_{{}, &clock};
  transport::Upstream upstream_;
  FunctionHandler handler_;
  std::unique_ptr<TestListener> listener_;
};

// A composite's request that differs from others by `name` only, its tag aside.
inline std::string Request(const std::string& name, const std::string& tag) {
  fnv1::RunFunctionRequest request;
  request.mutable_observed()->mutable_composite()->mutable_resource();
  request.mutable_meta()->set_tag(tag);
  (*request.mutable_context()->mutable_fields())["name"].set_string_value(name);
  return request.SerializeAsString();
}

// A response with a body that says `text`, and this TTL; negative: none.
inline fnv1::RunFunctionResponse Response(const std::string& tag,
                                          const std::string& text,
                                          int ttl_seconds) {
  fnv1::RunFunctionResponse response;
  response.mutable_meta()->set_tag(tag);
  if (ttl_seconds >= 0) {
    response.mutable_meta()->mutable_ttl()->set_seconds(ttl_seconds);
  }
  auto* const result = response.add_results();
  result->set_severity(fnv1::SEVERITY_NORMAL);
  result->set_message(text);
  return response;
}

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_TESTS_PROXY_SERVING_SCRIPTED_H_
