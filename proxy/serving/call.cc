#include "proxy/serving/call.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "cache/key/digest.h"
#include "proxy/serving/answer.h"
#include "proxy/serving/upstream_run.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/transport/core_buffer.h"
#include "proxy/transport/metadata.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {
namespace {

// Keeps a worker open while a look-up in the lower tiers will be posted to it.
class PendingLookup final : public transport::Activity {
 public:
  explicit PendingLookup(transport::Worker* worker)
      : transport::Activity(Kind::kInner), worker_(worker) {
    worker_->Enter(this);
  }
  ~PendingLookup() { worker_->Leave(this); }
  // It ends by itself, soon.
  void CancelActivity() override {}

 private:
  transport::Worker* const worker_;
};

FlightTable::Options FlightOptions(const cache::PolicyOptions& policy) {
  FlightTable::Options options;
  options.max_released = policy.max_released;
  return options;
}

// What a thread computes keys with.
struct Keying {
  cache::key::DigestScratch scratch;
  std::vector<absl::string_view> pieces;  // of the request
};
thread_local Keying keying;

// Bytes of the tags that Crossplane makes.
constexpr size_t kUsualTag = 64;

// Requests from this size on are worth another thread's time.
constexpr size_t kHandedOver = 32 << 10;

cache::key::KeyScope Scope(const settings::FunctionOptions& options,
                           const char* path) {
  return {options.name, path, options.generation, options.key,
          options.key_hash};
}

}  // namespace

// One RunFunction call:
//
//   Start -> OnRead -> LookUp -> hit: AnswerHit
//                          |---> lower tiers: OnLower -> hit or
//                          '---> Miss -> the flights' turn: Launch -> OnAnswer
//                                        or wait: OnSignal, OnDeadline
//
// and OnGone at any time in between. Over is reached exactly once, and nothing
// that arrives later does anything.
//
// On its worker's thread. It keeps itself alive until Over, and every event
// that may go on after Over keeps it alive too.
class RunFunctionCall final
    : public RunOwner,
      public std::enable_shared_from_this<RunFunctionCall> {
 public:
  RunFunctionCall(RunFunctionHandler* handler,
                  transport::IncomingCallPtr incoming)
      : handler_(handler),
        incoming_(std::move(incoming)),
        method_(incoming_->method()),
        arrived_(incoming_->arrived()) {}

  void Start();
  void OnAnswer(transport::UnaryCall& call, const grpc::ByteBuffer& message,
                bool stored) override;

 private:
  // Its place among the flights; tells it on its own worker.
  class Seat final : public FlightCaller {
   public:
    Seat(const cache::key::Key& key,
         const std::shared_ptr<RunFunctionCall>& call)
        : FlightCaller(key, call->incoming_->deadline(),
                       call->forward_ == transport::Forward::kStale),
          worker_(call->incoming_->worker()),
          call_(call) {}
    void OnSignal(FlightSignal signal) override {
      worker_->Post([call = call_, signal = std::move(signal)] {
        if (const auto alive = call.lock()) alive->OnSignal(signal);
      });
    }

   private:
    transport::Worker* const worker_;
    const std::weak_ptr<RunFunctionCall> call_;
  };

  // The key of a large request, which takes a while.
  class KeyingJob final : public transport::Job {
   public:
    explicit KeyingJob(RunFunctionCall* call) : call_(call) {}
    void Work() override;
    void OnWorked() override;

   private:
    RunFunctionCall* const call_;
  };

  void OnRead(bool ok);
  // Refers to this thread's `keying` and to the request.
  cache::key::Digest ComputeDigest();
  void OnKeyed(const cache::key::Digest& digest);
  void LookUp(const cache::key::Digest& digest);
  void LookBelow();
  void OnLower(const cache::store::Found& found);
  void Miss();
  void TakeTurn(Turn turn, bool again);
  void OnSignal(const FlightSignal& signal);
  void OnDeadline();
  void OnGone();

  // There is an entry that policy still serves; else notes that it is stale.
  bool Served(const cache::store::Found& found, absl::Time now);
  void NoteStale() {
    forward_ = transport::Forward::kStale;
    outcome_ = telemetry::Outcome::kStale;
  }
  void Launch(Use use);
  void WatchCaller();
  void StopWaiting();

  void KeepTag(absl::string_view tag) { tag_.assign(tag.begin(), tag.end()); }
  absl::string_view tag() const { return {tag_.data(), tag_.size()}; }

  void AnswerHit(const cache::store::EntryRef& entry, absl::string_view tag,
                 absl::Time now);
  void AnswerCollapsed(const cache::store::EntryRef& entry);
  void AnswerError(const grpc::Status& status);
  void AddStatus(absl::string_view text) {
    incoming_->AddStaticHeader(transport::kCacheStatus, text);
  }
  // Counts the call as it ends. Before its caller can know: who has an answer
  // finds it counted.
  void Count(int code);
  void Over();

  RunFunctionHandler* const handler_;
  transport::IncomingCallPtr incoming_;
  const Method method_;
  const absl::Time arrived_;
  std::shared_ptr<RunFunctionCall> self_;
  grpc::ByteBuffer request_;
  transport::MemberEvent<RunFunctionCall, &RunFunctionCall::OnRead> read_event_{
      this};

  KeyingJob keying_job_{this};
  cache::key::Digest digest_;  // what that came to
  bool no_cache_ = false;      // the caller wants no stored answer

  transport::Forward forward_ = transport::Forward::kMiss;
  telemetry::Outcome outcome_ = telemetry::Outcome::kMiss;
  bool asked_upstream_ = false;

  // Of a call that was looked up and not found in memory.
  cache::key::Key key_;
  absl::InlinedVector<char, kUsualTag> tag_;
  absl::Time looked_up_;
  std::shared_ptr<FlightCaller> seat_;
  std::shared_ptr<UpstreamRun> run_;
  bool waiting_ = false;  // for a signal
  bool timed_ = false;
  transport::TimerId timer_;
};

void RunFunctionCall::Start() {
  self_ = shared_from_this();
  handler_->instruments_->Begin(method_);
  incoming_->Read(&request_, &read_event_);
}

void RunFunctionCall::OnRead(bool ok) {
  const auto keep = shared_from_this();
  const transport::Directives directives = transport::ReadDirectives(
      incoming_->metadata(), handler_->options_.bypass_metadata);
  if (directives.bypass ||
      handler_->options_.policy.mode == cache::Mode::kOff) {
    forward_ = transport::Forward::kBypass;
    outcome_ = telemetry::Outcome::kBypass;
  } else if (directives.no_cache || directives.no_store) {
    forward_ = transport::Forward::kRequest;
    outcome_ = telemetry::Outcome::kRequest;
  }
  if (!ok) {
    if (incoming_->ReadWasCutOff()) return OnGone();
    // gRPC's own words for a number of requests other than one.
    forward_ = transport::Forward::kBypass;
    outcome_ = telemetry::Outcome::kBypass;
    return AnswerError(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                                    "RunFunction needs one request message"));
  }
  if (forward_ == transport::Forward::kBypass) return Launch(Use::kPass);
  if (directives.no_store) return Launch(Use::kAnswer);

  no_cache_ = directives.no_cache;
  if (handler_->options_.key == cache::key::KeySource::kContent &&
      request_.Length() >= kHandedOver) {
    incoming_->worker()->Offload(&keying_job_);
    return;
  }
  OnKeyed(ComputeDigest());
}

void RunFunctionCall::KeyingJob::Work() {
  call_->digest_ = call_->ComputeDigest();
  // It refers to what is another call's in a moment.
  call_->KeepTag(call_->digest_.tag);
  call_->digest_.tag = call_->tag();
}

void RunFunctionCall::KeyingJob::OnWorked() {
  // Nothing has ended it: nobody has asked yet whether its caller is there.
  const auto keep = call_->shared_from_this();
  call_->OnKeyed(call_->digest_);
}

void RunFunctionCall::OnKeyed(const cache::key::Digest& digest) {
  if (!digest.keyed) {
    forward_ = transport::Forward::kBypass;
    outcome_ = telemetry::Outcome::kBypass;
    Launch(Use::kPass);
  } else if (no_cache_) {
    key_ = digest.key;
    Launch(Use::kStore);
  } else {
    LookUp(digest);
  }
}

cache::key::Digest RunFunctionCall::ComputeDigest() {
  keying.pieces.clear();
  if (!transport::AppendPieces(&request_, &keying.pieces)) return {};
  const cache::key::Digester& digester =
      method_ == Method::kV1 ? handler_->v1_ : handler_->v1beta1_;
  return digester.Compute(keying.pieces, &keying.scratch);
}

bool RunFunctionCall::Served(const cache::store::Found& found, absl::Time now) {
  if (found.entry && handler_->policy_.ServedFor(found.entry->info(), now) >
                         absl::ZeroDuration()) {
    return true;
  }
  if (found.entry || found.expired) NoteStale();
  return false;
}

void RunFunctionCall::LookUp(const cache::key::Digest& digest) {
  looked_up_ = absl::Now();
  const absl::Time now = handler_->clock_->Now();
  const cache::store::Found found =
      handler_->store_->GetMemory(digest.key, now);
  if (Served(found, now)) return AnswerHit(found.entry, digest.tag, now);
  key_ = digest.key;
  if (digest.tag.data() != tag_.data()) KeepTag(digest.tag);
  // What is past its time in memory is no younger below.
  if (!found.entry && !found.expired && handler_->store_->has_lower()) {
    return LookBelow();
  }
  Miss();
}

void RunFunctionCall::LookBelow() {
  WatchCaller();
  if (incoming_ == nullptr) return;
  transport::Worker* const worker = incoming_->worker();
  auto* const pending = new PendingLookup(worker);
  handler_->store_->GetLower(key_, handler_->id_, handler_->clock_->Now(),
                             [call = shared_from_this(), worker,
                              pending](cache::store::Found found) mutable {
                               worker->Post([call = std::move(call), pending,
                                             found = std::move(found)] {
                                 call->OnLower(found);
                                 delete pending;
                               });
                             });
}

void RunFunctionCall::OnLower(const cache::store::Found& found) {
  if (incoming_ == nullptr) return;  // the caller has gone
  const absl::Time now = handler_->clock_->Now();
  if (Served(found, now)) return AnswerHit(found.entry, tag(), now);
  Miss();
}

void RunFunctionCall::Miss() {
  seat_ = std::make_shared<Seat>(key_, shared_from_this());
  const Turn turn = handler_->flights_.Enter(seat_, handler_->clock_->Now());
  if (seat_->stale()) NoteStale();
  TakeTurn(turn, /*again=*/true);
}

// `again`: look in memory once more. An entry may have been filled since this
// call looked: by the flight that just ended, or while it waited.
void RunFunctionCall::TakeTurn(Turn turn, bool again) {
  if (turn == Turn::kWait) {
    waiting_ = true;
    WatchCaller();
    if (incoming_ == nullptr) return;
    const absl::Time deadline = incoming_->deadline();
    if (deadline == absl::InfiniteFuture()) return;
    timed_ = true;
    timer_ = incoming_->worker()->After(
        std::max(deadline - absl::Now(), absl::ZeroDuration()),
        [this] { OnDeadline(); });
    return;
  }
  if (again) {
    looked_up_ = absl::Now();
    const absl::Time now = handler_->clock_->Now();
    const cache::store::Found found = handler_->store_->GetMemory(key_, now);
    if (Served(found, now)) {
      // Whoever has joined by now is answered with it; a released caller gives
      // up its place.
      if (turn == Turn::kLead) {
        handler_->flights_.FinishFound(seat_.get(), found.entry, now);
      } else {
        handler_->flights_.Leave(seat_.get());
      }
      return AnswerHit(found.entry, tag(), now);
    }
  }
  Launch(Use::kStore);
  if (turn == Turn::kLead) {
    run_->EndFlight(handler_->flights_.Launched(seat_.get(), run_));
  } else {
    run_->EndPlace(seat_);
  }
  WatchCaller();
}

void RunFunctionCall::Launch(Use use) {
  asked_upstream_ = true;
  run_ = std::make_shared<UpstreamRun>(handler_, use, key_);
  run_->Start(*incoming_, request_, shared_from_this());
  request_.Clear();
  // A caller with a seat is watched once the run knows what it ends.
  if (seat_ == nullptr) WatchCaller();
}

void RunFunctionCall::OnSignal(const FlightSignal& signal) {
  if (!waiting_) return;  // left meanwhile: its turn is another's by now
  StopWaiting();
  if (signal.turn == Turn::kAnswer) {
    if (!signal.found) return AnswerCollapsed(signal.entry);
    looked_up_ = absl::Now();
    return AnswerHit(signal.entry, tag(), handler_->clock_->Now());
  }
  TakeTurn(signal.turn, /*again=*/signal.turn == Turn::kLead || signal.queued);
}

void RunFunctionCall::OnDeadline() {
  timed_ = false;
  if (!waiting_) return;
  StopWaiting();
  if (handler_->flights_.Leave(seat_.get()))
    outcome_ = telemetry::Outcome::kCollapsed;
  AnswerError(
      grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"));
}

void RunFunctionCall::OnGone() {
  if (incoming_ == nullptr) return;
  const bool late = incoming_->deadline() <= absl::Now();
  if (run_ != nullptr) {
    run_->Detach();
    // A flight's call goes on while anyone waits; the place of a released
    // caller is kept until the call has ended.
    if (run_->has_flight()) {
      handler_->flights_.Leave(seat_.get());
    } else {
      run_->Cancel();
    }
  } else if (seat_ != nullptr) {
    if (handler_->flights_.Leave(seat_.get()))
      outcome_ = telemetry::Outcome::kCollapsed;
  }
  StopWaiting();
  incoming_ = nullptr;
  Count(late ? grpc::StatusCode::DEADLINE_EXCEEDED
             : grpc::StatusCode::CANCELLED);
  Over();
}

void RunFunctionCall::WatchCaller() {
  incoming_->OnCancelled([this] { OnGone(); });
}

void RunFunctionCall::StopWaiting() {
  waiting_ = false;
  if (!timed_) return;
  timed_ = false;
  incoming_->worker()->Cancel(timer_);
}

void RunFunctionCall::AnswerHit(const cache::store::EntryRef& entry,
                                absl::string_view tag, absl::Time now) {
  const cache::store::EntryInfo info = entry->info();
  outcome_ = telemetry::Outcome::kHit;
  handler_->instruments_->RecordHit(absl::Now() - looked_up_, info.cost);
  AddStatus(
      transport::HitStatus(handler_->policy_.ServedFor(info, now)).text());
  Count(grpc::StatusCode::OK);
  transport::IncomingCall::WriteFinishAndForget(
      std::move(incoming_),
      EntryMessage(entry, tag, handler_->policy_.HitTtl(info, now)),
      grpc::Status::OK);
  Over();
}

void RunFunctionCall::AnswerCollapsed(const cache::store::EntryRef& entry) {
  const cache::store::EntryInfo info = entry->info();
  outcome_ = telemetry::Outcome::kCollapsed;
  handler_->instruments_->RecordSaved(info.cost);
  AddStatus(
      transport::ForwardStatus(forward_, /*collapsed=*/true, /*stored=*/true));
  Count(grpc::StatusCode::OK);
  transport::IncomingCall::WriteFinishAndForget(
      std::move(incoming_),
      EntryMessage(entry, tag(),
                   handler_->policy_.HitTtl(info, handler_->clock_->Now())),
      grpc::Status::OK);
  Over();
}

void RunFunctionCall::AnswerError(const grpc::Status& status) {
  AddStatus(transport::ForwardStatus(forward_,
                                     outcome_ == telemetry::Outcome::kCollapsed,
                                     /*stored=*/false));
  Count(status.error_code());
  transport::IncomingCall::FinishAndForget(std::move(incoming_), status);
  Over();
}

void RunFunctionCall::OnAnswer(transport::UnaryCall& call,
                               const grpc::ByteBuffer& message, bool stored) {
  const grpc::Status& status = call.status();
  // RFC 9211: a cache further on has its say first, then this one.
  transport::CopyHeaders(call.headers(), incoming_.get());
  AddStatus(transport::ForwardStatus(forward_, /*collapsed=*/false, stored));
  transport::CopyTrailers(call.trailers(), incoming_.get());
  Count(status.error_code());
  if (message.Valid()) {
    transport::IncomingCall::WriteFinishAndForget(
        std::move(incoming_), grpc::ByteBuffer(message), status);
  } else {
    transport::IncomingCall::FinishAndForget(std::move(incoming_), status);
  }
  Over();
}

void RunFunctionCall::Count(int code) {
  telemetry::CallRecord record;
  record.method = method_;
  record.outcome = outcome_;
  record.code = code;
  record.upstream = asked_upstream_;
  record.latency = absl::Now() - arrived_;
  handler_->instruments_->End(record);
}

void RunFunctionCall::Over() {
  run_ = nullptr;
  self_ = nullptr;
}

RunFunctionHandler::RunFunctionHandler(
    cache::store::FunctionId id, const settings::FunctionOptions& options,
    cache::store::TieredStore* store, Clock* clock,
    transport::Upstream* upstream,
    const telemetry::FunctionInstruments* instruments)
    : id_(id),
      options_(options),
      policy_(options.policy),
      v1_(store->seed(),
          Scope(options,
                "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"),
          options.masks),
      v1beta1_(store->seed(),
               Scope(options,
                     "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/"
                     "RunFunction"),
               options.masks),
      store_(store),
      clock_(clock),
      upstream_(upstream),
      instruments_(instruments),
      flights_(FlightOptions(options.policy), instruments) {}

RunFunctionHandler::~RunFunctionHandler() = default;

void RunFunctionHandler::StartRunFunction(transport::IncomingCallPtr call) {
  std::make_shared<RunFunctionCall>(this, std::move(call))->Start();
}

}  // namespace fncache::proxy::serving
