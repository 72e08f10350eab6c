// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/call.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "cache/wire/origin.h"
#include "http2/recycler.h"
#include "proxy/serving/answer.h"
#include "proxy/serving/cache_headers.h"
#include "proxy/serving/call_access.h"
#include "proxy/serving/call_trace.h"
#include "proxy/serving/failure.h"
#include "proxy/serving/refresh.h"
#include "proxy/serving/upstream_run.h"
#include "proxy/transport/message.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {
namespace {

// Keeps a worker open while a look-up in the lower tiers will be posted to it.
class PendingLookup final : public transport::Activity {
 public:
  PendingLookup(transport::Worker* worker, cache::store::Bans* bans)
      : transport::Activity(Kind::kInner),
        worker_(worker),
        entered_(bans->Enter()) {
    worker_->Enter(this);
  }
  ~PendingLookup() { worker_->Leave(this); }
  // Nothing is cancelled, since a look-up ends by itself soon.
  void CancelActivity() override {}

 private:
  transport::Worker* const worker_;
  // A purge that comes meanwhile waits for it.
  const cache::store::Bans::Entered entered_;
};

// The memory in which a thread computes keys.
struct Keying {
  cache::key::DigestScratch scratch;
  std::vector<absl::string_view> pieces;  // of the request
};
thread_local Keying keying;

// Bytes of the tags that Crossplane makes.
constexpr size_t kUsualTag = 64;

// The part of a caller's time after which it gets an old answer, if it has one,
// rather than none.
constexpr double kPatience = 0.9;

// Requests from this size on are worth another thread's time.
constexpr size_t kHandedOver = 32 << 10;
// Keys of requests as large take milliseconds to be made, for which no other
// connection of the worker is to wait.
constexpr size_t kLongWork = 1 << 20;

// As what a call counts that is no hit. `collapsed`: it ended while it waited
// for another caller's flight.
telemetry::Outcome OutcomeOf(ForwardReason reason, bool collapsed = false) {
  if (collapsed) return telemetry::Outcome::kCollapsed;
  switch (reason) {
    case ForwardReason::kMiss:
      return telemetry::Outcome::kMiss;
    case ForwardReason::kStale:
      return telemetry::Outcome::kStale;
    case ForwardReason::kNoCache:
    case ForwardReason::kNoStore:
      return telemetry::Outcome::kRequest;
    default:
      return telemetry::Outcome::kBypass;
  }
}

// The reason of a bypass. Only calls that count as bypasses need it.
telemetry::BypassReason BypassReasonOf(ForwardReason reason) {
  switch (reason) {
    case ForwardReason::kAuthorization:
      return telemetry::BypassReason::kAuthorization;
    case ForwardReason::kMetadata:
      return telemetry::BypassReason::kMetadata;
    case ForwardReason::kModeOff:
      return telemetry::BypassReason::kModeOff;
    case ForwardReason::kOperation:
      return telemetry::BypassReason::kOperation;
    case ForwardReason::kShadow:
      return telemetry::BypassReason::kShadow;
    default:
      return telemetry::BypassReason::kUnreadable;
  }
}

// The use that may be made of the answer to a call that goes to the function.
Use UseOf(ForwardReason reason) {
  if (IsBypass(reason)) return Use::kPass;
  return reason == ForwardReason::kNoStore ? Use::kAnswer : Use::kStore;
}

// A stage of a call: it is waiting for something, and goes on in the function
// that is named here when that has come.
enum class Stage {
  kReading,       // waits for its request: OnRead
  kKeying,        // for the key, which another thread makes: OnKeyed
  kLookingBelow,  // for a look-up in the lower tiers: OnLower
  kWaiting,       // for a word of the flights: OnSignal; or OnDeadline
  kCalling,       // for the function: OnAnswer
  kOver,          // for nothing: it is answered, or its caller has gone
};

// One RunFunction call:
//
//   kReading -> [kKeying] -> LookUp ----------------> hit: AnswerFrom
//                              |--> kLookingBelow --> hit: AnswerFrom
//                              |         |
//                             Miss <-----'
//                              |--> kWaiting -------> answer: AnswerCollapsed
//                              |       |              failed: AnswerOld
//                            kCalling <'
//                              '--------------------> OnAnswer, or AnswerOld
//
// and its caller may leave in any stage (OnGone). kOver is reached exactly
// once, and nothing that arrives later does anything.
//
// It lives on its worker's thread. It keeps itself alive until kOver, and every
// event that may come after that keeps it alive too.
class RunFunctionCall final
    : public RunOwner,
      public std::enable_shared_from_this<RunFunctionCall> {
 public:
  RunFunctionCall(transport::IncomingCallPtr incoming, ServingContext* context)
      : context_(*context),
        incoming_(std::move(incoming)),
        worker_(incoming_->worker()),
        method_(incoming_->method()),
        arrived_(incoming_->arrived()) {}

  void Start();
  void OnAnswer(transport::UnaryCall& call, const transport::Message& message,
                bool stored) override;

 private:
  // The call among the flights. Their signals are passed to the call's worker,
  // where they come after whatever that is doing now.
  class Seat final : public FlightCaller {
   public:
    Seat(const cache::key::Key& key,
         const std::shared_ptr<RunFunctionCall>& call)
        : FlightCaller(key, call->incoming_->deadline(),
                       call->reason_ == ForwardReason::kStale,
                       /*has_old=*/static_cast<bool>(call->old_)),
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

  // Makes the key of a large request, which takes a while.
  class KeyingJob final : public transport::Job {
   public:
    explicit KeyingJob(RunFunctionCall* call) : call_(call) {}
    void Work() override;
    void OnWorked() override;

   private:
    RunFunctionCall* const call_;
  };

  void OnRead(const grpc::Status& status);
  // Makes a bypass of the call where no composite asks.
  void CheckOrigin();
  // The digest refers to this thread's `keying` and to the request. None for
  // what is not looked up: reason_ says why.
  cache::key::Digest ComputeDigest();
  void OnKeyed(const cache::key::Digest& digest);
  void LookUp(const cache::key::Digest& digest);
  void LookBelow();
  void OnLower(const cache::store::Found& found);
  void Miss();
  void Wait();
  // Does what the flights say: kLead or kRun. `look_again`: looks in memory
  // before, as an entry may have been filled since this call looked, by the
  // flight that just ended, or while it waited.
  void Follow(Verdict verdict, bool look_again);
  void OnSignal(const FlightSignal& signal);
  void OnDeadline();
  // It has waited for so long that an old answer is better.
  void OnPatienceEnd();
  void OnGone();

  // Under `mode: shadow`: it goes to the function, and if the look-up found
  // something that is `served`, that is compared with the answer.
  void Rehearse(const cache::store::EntryRef& served);
  // Begins kCalling. `outlives`: the function's call may go on when this one's
  // caller has left.
  void Launch(bool outlives = false);
  // Says why it missed, and what was asked is remembered.
  void Explain();
  // From now on OnGone is called when the caller leaves. This comes last where
  // a stage begins: a caller that has left already ends the call here.
  void WatchCaller();
  void StopTimer();
  // Gives up what it waits for. True if that was another caller's flight.
  bool StopWaiting();

  void KeepTag(absl::string_view tag) { tag_.assign(tag.begin(), tag.end()); }
  absl::string_view tag() const { return {tag_.data(), tag_.size()}; }

  bool IsFresh(const cache::store::EntryRef& entry, absl::Time now) const {
    return entry && context_.FreshnessOf(*state_, key_, *entry, now) ==
                        cache::Freshness::kFresh;
  }
  // Answers from what a look-up found, if policy lets it; else notes what that
  // is good for.
  bool AnswerFrom(const cache::store::Found& found, absl::string_view tag,
                  absl::Time now);
  // From now on a purge is not over before this call is, so that no entry which
  // the call holds or is given comes to light after it.
  void EnterBans() {
    if (!entered_.holds()) entered_ = state_->store.bans().Enter();
  }
  // The look-up's entry is past its time.
  void NoteStale(const cache::store::Found& found, absl::Time now);
  void AnswerHit(const cache::store::EntryRef& entry, absl::string_view tag,
                 absl::Time now);
  // Answers from an entry past its time, and has it refreshed behind.
  void AnswerAndRefresh(const cache::store::EntryRef& entry,
                        absl::string_view tag, absl::Time now);
  // What may answer in place of the function, which failed: null if there is
  // none, or it is not to be used any more.
  cache::store::EntryRef FindOld(absl::Time now);
  // Answers from that in place of this status; false if there is none.
  bool AnswerOld(const grpc::Status& status);
  void AnswerOld(const cache::store::EntryRef& entry, absl::Time now,
                 const grpc::Status& status);
  // `saved`: of the function's time.
  void AnswerStale(const cache::store::EntryRef& entry, absl::string_view tag,
                   absl::Time now, absl::Duration saved);
  void AnswerCollapsed(const cache::store::EntryRef& entry);
  // `collapsed`: the call waited for another caller's flight.
  void AnswerError(const grpc::Status& status, bool collapsed = false);
  void AddStatus(absl::string_view text) {
    incoming_->AddHeader(kCacheStatus, text);
  }
  // The same of a call that is not answered from an entry, with why it missed
  // where that is known.
  void AddForwardStatus(bool collapsed, bool stored);
  // The request, unpacked.
  const transport::Message& plain() const { return incoming_->plain(); }
  // Counts the call as it ends. Before its caller can know: who has an answer
  // finds it counted.
  void Count(telemetry::Outcome outcome, int code);
  // The last step. `incoming_` has been let go of by then.
  void End();

  ServingContext& context_;
  transport::IncomingCallPtr incoming_;
  transport::Worker* const worker_;
  const Method method_;
  const absl::Time arrived_;
  Stage stage_ = Stage::kReading;
  // Why it goes to the function, unless it is a hit. Its cache-status, its
  // outcome and the use of its answer follow from this.
  ForwardReason reason_ = ForwardReason::kMiss;
  std::shared_ptr<RunFunctionCall> self_;  // until kOver
  KeyingJob keying_job_{this};
  cache::key::Digest digest_;  // made by the job

  FunctionStatePtr state_;  // what it lives under; from OnRead on

  cache::key::Key key_;  // all zero: it has none (yet)
  // These are set once a call was looked up and not found in memory.
  absl::InlinedVector<char, kUsualTag> tag_;
  absl::Time looked_up_;
  std::shared_ptr<FlightCaller> seat_;
  absl::optional<transport::TimerId> deadline_timer_;  // in kWaiting
  // What answers if the function fails (stale_if_error), and until when it may
  // take.
  cache::store::EntryRef old_;
  cache::store::Bans::Entered entered_;  // with old_, and among the flights
  bool found_stale_ = false;
  absl::optional<transport::TimerId> patience_timer_;
  std::shared_ptr<UpstreamRun> run_;    // in kCalling
  absl::optional<CallTrace> trace_;     // while the daemon traces
  std::unique_ptr<ShadowCall> shadow_;  // under `mode: shadow`, once keyed
  CallAccess access_{context_.access_log};
  // Why it missed, once that is known.
  insight::explain::Explanation why_{
      insight::trace::Reason::kNone, "", "", "", {}};
};

void RunFunctionCall::Start() {
  self_ = shared_from_this();
  context_.instruments.Begin(method_);
  if (context_.traces != nullptr && !context_.traces->IsNewest(nullptr)) {
    const auto& writer = context_.traces->Of(incoming_->worker()->index());
    if (writer != nullptr) trace_.emplace(context_, writer, method_, arrived_);
  }
  incoming_->Read([this](const grpc::Status& status) { OnRead(status); });
}

void RunFunctionCall::OnRead(const grpc::Status& status) {
  const auto keep = shared_from_this();
  state_ = context_.states.Of(worker_->index());
  const Directives directives =
      ReadDirectives(incoming_->fields(), state_->options.bypass_metadata);
  if (directives.authorization) {
    reason_ = ForwardReason::kAuthorization;
  } else if (directives.bypass) {
    reason_ = ForwardReason::kMetadata;
  } else if (state_->options.policy.mode == cache::Mode::kOff) {
    reason_ = ForwardReason::kModeOff;
  } else if (directives.no_store) {
    reason_ = ForwardReason::kNoStore;
  } else if (directives.no_cache) {
    reason_ = ForwardReason::kNoCache;
  }
  if (trace_ && status.ok()) trace_->SetMetadata(incoming_->fields());
  if (!status.ok()) {
    if (status.error_code() == grpc::StatusCode::CANCELLED) return OnGone();
    reason_ = ForwardReason::kUnreadable;
    return AnswerError(status);
  }
  // What cannot be unpacked cannot be keyed.
  if (!plain().valid()) reason_ = ForwardReason::kUnreadable;
  if (IsBypass(reason_)) {
    Launch();
    return WatchCaller();
  }
  // A tag is found at once, but not that a large request has no composite.
  const bool by_content =
      state_->options.key == cache::key::KeySource::kContent;
  if (plain().size() >= (by_content ? kHandedOver : kLongWork)) {
    stage_ = Stage::kKeying;
    using Effort = transport::Worker::Effort;
    const bool is_long = plain().size() >= kLongWork;
    if (worker_->Offload(&keying_job_,
                         is_long ? Effort::kLong : Effort::kUsual)) {
      OnKeyed(digest_);
    }
    return;
  }
  OnKeyed(ComputeDigest());
}

void RunFunctionCall::CheckOrigin() {
  switch (cache::wire::OriginOf(plain().bytes())) {
    case cache::wire::Origin::kComposite:
      return;
    case cache::wire::Origin::kOperation:
      reason_ = ForwardReason::kOperation;
      return;
    case cache::wire::Origin::kUnreadable:
      reason_ = ForwardReason::kUnreadable;
      return;
  }
}

void RunFunctionCall::KeyingJob::Work() {
  call_->digest_ = call_->ComputeDigest();
  // The tag is copied, because it refers to memory that the thread's next call
  // overwrites.
  call_->KeepTag(call_->digest_.tag);
  call_->digest_.tag = call_->tag();
}

void RunFunctionCall::KeyingJob::OnWorked() {
  // Nothing has ended it: nobody has asked yet whether its caller is there.
  const auto keep = call_->shared_from_this();
  call_->OnKeyed(call_->digest_);
}

void RunFunctionCall::OnKeyed(const cache::key::Digest& digest) {
  if (digest.keyed && reason_ != ForwardReason::kNoCache) return LookUp(digest);
  if (digest.keyed) {
    key_ = digest.key;
  } else if (!IsBypass(reason_) && reason_ != ForwardReason::kNoStore) {
    reason_ = ForwardReason::kUnreadable;
    shadow_ = nullptr;
  }
  Launch();
  WatchCaller();
}

cache::key::Digest RunFunctionCall::ComputeDigest() {
  if (!state_->options.cache_operations) CheckOrigin();
  if (IsBypass(reason_) || reason_ == ForwardReason::kNoStore) return {};
  keying.pieces.assign({plain().bytes()});
  if (state_->shadow != nullptr) {
    shadow_ = state_->shadow->Read(keying.pieces, &context_.instruments,
                                   &context_.clock);
    if (reason_ == ForwardReason::kMiss) reason_ = ForwardReason::kShadow;
  }
  const cache::key::Digest digest =
      state_->digester(method_).Compute(keying.pieces, &keying.scratch);
  if (!state_->options.masks.empty()) state_->TryMasks();
  return digest;
}

bool RunFunctionCall::AnswerFrom(const cache::store::Found& found,
                                 absl::string_view tag, absl::Time now) {
  if (found.entry) {
    switch (context_.FreshnessOf(*state_, key_, *found.entry, now)) {
      case cache::Freshness::kFresh:
        if (shadow_ != nullptr) {
          Rehearse(found.entry);
          return true;
        }
        AnswerHit(found.entry, tag, now);
        return true;
      case cache::Freshness::kWhileRevalidate:
        // The refresh would fill, which a rehearsal does.
        if (shadow_ != nullptr) break;
        AnswerAndRefresh(found.entry, tag, now);
        return true;
      case cache::Freshness::kIfError:
      case cache::Freshness::kSpent:
        break;
    }
  }
  NoteStale(found, now);
  return false;
}

void RunFunctionCall::NoteStale(const cache::store::Found& found,
                                absl::Time now) {
  if (!found.entry && !found.expired) return;
  found_stale_ = true;
  if (shadow_ != nullptr) return;
  EnterBans();
  // One that may not be used is as good as none.
  if (found.entry && !context_.MayUse(*state_, key_, *found.entry)) return;
  reason_ = ForwardReason::kStale;
  if (!found.entry ||
      state_->policy.options().stale_if_error <= absl::ZeroDuration() ||
      context_.FreshnessOf(*state_, key_, *found.entry, now) ==
          cache::Freshness::kSpent) {
    return;
  }
  old_ = found.entry;
  const absl::Time deadline = incoming_->deadline();
  if (patience_timer_.has_value() || deadline == absl::InfiniteFuture()) return;
  const absl::Time end = arrived_ + (deadline - arrived_) * kPatience;
  patience_timer_ =
      worker_->After(std::max(end - absl::Now(), absl::ZeroDuration()),
                     [this] { OnPatienceEnd(); });
}

void RunFunctionCall::LookUp(const cache::key::Digest& digest) {
  looked_up_ = absl::Now();
  key_ = digest.key;
  if (trace_) trace_->SetKey(digest.key);
  const absl::Time now = context_.clock.Now();
  const cache::store::Found found = state_->store.GetMemory(key_, now);
  if (AnswerFrom(found, digest.tag, now)) return;
  if (digest.tag.data() != tag_.data()) KeepTag(digest.tag);
  // An entry that has expired in memory is not looked up below, where it is no
  // younger.
  if (!found.entry && !found.expired && state_->store.has_lower()) {
    return LookBelow();
  }
  Miss();
}

void RunFunctionCall::LookBelow() {
  stage_ = Stage::kLookingBelow;
  auto* const pending = new PendingLookup(worker_, &state_->store.bans());
  // OnLower is posted, so it comes later, even if the store answers at once.
  state_->store.GetLower(key_, context_.id, context_.clock.Now(),
                         [call = shared_from_this(), worker = worker_,
                          pending](cache::store::Found found) mutable {
                           worker->Post([call = std::move(call), pending,
                                         found = std::move(found)] {
                             call->OnLower(found);
                             delete pending;
                           });
                         });
  WatchCaller();
}

void RunFunctionCall::OnLower(const cache::store::Found& found) {
  if (stage_ != Stage::kLookingBelow) return;  // the caller has gone
  const absl::Time now = context_.clock.Now();
  if (AnswerFrom(found, tag(), now)) return;
  Miss();
}

void RunFunctionCall::Rehearse(const cache::store::EntryRef& served) {
  shadow_->LookedUp(served);
  Launch();
  WatchCaller();
}

void RunFunctionCall::Miss() {
  if (shadow_ != nullptr) return Rehearse(nullptr);
  EnterBans();
  seat_ = std::make_shared<Seat>(key_, shared_from_this());
  const Verdict verdict = context_.flights.Enter(seat_, context_.clock.Now());
  if (seat_->stale()) reason_ = ForwardReason::kStale;
  if (verdict == Verdict::kWait) return Wait();
  Follow(verdict, /*look_again=*/true);
}

void RunFunctionCall::Wait() {
  stage_ = Stage::kWaiting;
  const absl::Time deadline = incoming_->deadline();
  if (deadline != absl::InfiniteFuture()) {
    deadline_timer_ =
        worker_->After(std::max(deadline - absl::Now(), absl::ZeroDuration()),
                       [this] { OnDeadline(); });
  }
  WatchCaller();
}

void RunFunctionCall::Follow(Verdict verdict, bool look_again) {
  if (look_again) {
    looked_up_ = absl::Now();
    const absl::Time now = context_.clock.Now();
    const cache::store::Found found = state_->store.GetMemory(key_, now);
    if (IsFresh(found.entry, now)) {
      // Whoever has joined by now is answered with it; a released caller gives
      // up its place.
      if (verdict == Verdict::kLead) {
        context_.flights.FinishFound(seat_.get(), found.entry, now);
      } else {
        context_.flights.Leave(seat_.get());
      }
      return AnswerHit(found.entry, tag(), now);
    }
    NoteStale(found, now);
  }
  const bool leads = verdict == Verdict::kLead;
  const bool outlives =
      leads &&
      state_->policy.options().finish_abandoned > absl::ZeroDuration() &&
      context_.refreshes.Allows(key_, context_.clock.Now());
  Launch(outlives);
  if (leads) {
    run_->SetFlight(context_.flights.Launched(seat_.get(), run_, outlives));
  } else {
    run_->SetPlace(seat_);
  }
  WatchCaller();
}

void RunFunctionCall::Launch(bool outlives) {
  stage_ = Stage::kCalling;
  run_ = http2::MakeRecycled<UpstreamRun>(&context_, state_, UseOf(reason_),
                                          &state_->store, key_);
  if (shadow_ != nullptr) run_->SetShadow(std::move(shadow_));
  if (found_stale_ || reason_ == ForwardReason::kStale ||
      reason_ == ForwardReason::kNoCache) {
    run_->SetReplaces();
  }
  const absl::Duration longer = outlives
                                    ? state_->policy.options().finish_abandoned
                                    : absl::ZeroDuration();
  run_->Start({worker_, incoming_->fields(), arrived_, incoming_->request(),
               incoming_->deadline() + longer,
               /*own_deadline=*/longer > absl::ZeroDuration(),
               /*impatient=*/static_cast<bool>(old_)},
              shared_from_this());
  // The function works meanwhile.
  Explain();
  if (trace_) trace_->KeepRequest(plain());
  access_.KeepRequest(plain());
  if (!run_->waits_in_place()) return incoming_->ForgetRequest();
  run_->WhenAdmitted([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self != nullptr && self->incoming_ != nullptr) {
      self->incoming_->ForgetRequest();
    }
  });
}

void RunFunctionCall::Explain() {
  const bool stale = reason_ == ForwardReason::kStale;
  if (!stale && reason_ != ForwardReason::kMiss) return;
  why_.reason = stale ? insight::trace::Reason::kExpired
                      : insight::trace::Reason::kUnknown;
  if (context_.misses == nullptr) return;
  keying.pieces.assign({plain().bytes()});
  why_ = context_.misses->Explain(context_.name, method_,
                                  state_->options.generation, key_,
                                  state_->options.masks, keying.pieces, stale);
}

void RunFunctionCall::OnSignal(const FlightSignal& signal) {
  // A caller that left meanwhile has no say in the flight any more.
  if (stage_ != Stage::kWaiting) return;
  StopTimer();
  if (signal.verdict == Verdict::kAnswer) {
    if (signal.entry && context_.Purged(*state_, key_, *signal.entry)) {
      return Miss();
    }
    // Whoever shares it may live under settings of before.
    if (signal.entry && !state_->policy.MayServe(*signal.entry)) {
      return Follow(Verdict::kRun, /*look_again=*/false);
    }
    if (!signal.found) return AnswerCollapsed(signal.entry);
    looked_up_ = absl::Now();
    return AnswerHit(signal.entry, tag(), context_.clock.Now());
  }
  if (signal.verdict == Verdict::kOld) {
    if (AnswerOld(grpc::Status(static_cast<grpc::StatusCode>(signal.code),
                               "so ended the call that this one joined"))) {
      return;
    }
    // It is not to be used any more, so this call goes on as one without.
    old_ = nullptr;
    return Miss();
  }
  Follow(signal.verdict,
         /*look_again=*/signal.verdict == Verdict::kLead || signal.queued);
}

void RunFunctionCall::OnDeadline() {
  deadline_timer_.reset();
  const bool joined = context_.flights.Leave(seat_.get());
  AnswerError(context_.upstream.TooLate(worker_), /*collapsed=*/joined);
}

bool RunFunctionCall::StopWaiting() {
  if (stage_ == Stage::kWaiting) {
    StopTimer();
    return context_.flights.Leave(seat_.get());
  }
  if (stage_ != Stage::kCalling) return false;
  run_->Detach();
  // A flight's call goes on while anyone waits; the place of a released caller
  // is kept until its call has ended.
  if (run_->has_flight()) {
    context_.flights.Leave(seat_.get());
  } else {
    run_->Cancel();
  }
  return false;
}

void RunFunctionCall::OnPatienceEnd() {
  patience_timer_.reset();
  const absl::Time now = context_.clock.Now();
  const cache::store::EntryRef entry = FindOld(now);
  // It may be answered to the very end of its time.
  if (!entry) return;
  StopWaiting();
  AnswerOld(entry, now,
            grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED,
                         "nine tenths of the caller's time are over"));
}

void RunFunctionCall::OnGone() {
  const bool late = transport::IsOver(incoming_->deadline(), absl::Now());
  const bool connecting = stage_ == Stage::kCalling && run_->connecting();
  const bool waits = stage_ == Stage::kWaiting || connecting;
  const bool joined = StopWaiting();
  // One whose deadline has passed is still told that.
  if (stage_ == Stage::kReading) {
    reason_ = ForwardReason::kUnreadable;
    AddStatus(ForwardStatus(reason_, /*collapsed=*/false, /*stored=*/false));
  } else {
    AddForwardStatus(joined, /*stored=*/false);
  }
  Count(OutcomeOf(reason_, joined), late ? grpc::StatusCode::DEADLINE_EXCEEDED
                                         : grpc::StatusCode::CANCELLED);
  if (late && waits) {
    transport::IncomingCall::Finish(
        std::move(incoming_), context_.upstream.TooLate(worker_, connecting));
  }
  incoming_ = nullptr;
  End();
}

void RunFunctionCall::WatchCaller() {
  if (!incoming_->OnCancelled([this] { OnGone(); })) OnGone();
}

void RunFunctionCall::StopTimer() {
  if (!deadline_timer_.has_value()) return;
  worker_->Cancel(*deadline_timer_);
  deadline_timer_.reset();
}

void RunFunctionCall::AnswerHit(const cache::store::EntryRef& entry,
                                absl::string_view tag, absl::Time now) {
  const cache::store::EntryInfo info = entry->info();
  context_.instruments.RecordHit(absl::Now() - looked_up_, info.cost);
  AddStatus(HitStatus(context_.ServedFor(*state_, key_, *entry, now)).text());
  const auto ttl = state_->policy.HitTtl(info, now);
  transport::Message message = EntryMessage(entry, tag, ttl);
  if (trace_) {
    trace_->SetHit(info, entry->body().size(), ttl, now);
    trace_->SetAnswer(message);
  }
  Count(telemetry::Outcome::kHit, grpc::StatusCode::OK);
  transport::IncomingCall::Answer(std::move(incoming_), std::move(message),
                                  grpc::Status::OK);
  End();
}

void RunFunctionCall::AnswerAndRefresh(const cache::store::EntryRef& entry,
                                       absl::string_view tag, absl::Time now) {
  const std::shared_ptr<Refresh> refresh =
      Refresh::Open(&context_, state_, &state_->store, key_, *incoming_);
  // Where the function runs for it all the same, nothing of its time is saved.
  AnswerStale(entry, tag, now,
              refresh == nullptr ? entry->info().cost : absl::ZeroDuration());
  if (refresh != nullptr) refresh->Launch();
}

cache::store::EntryRef RunFunctionCall::FindOld(absl::Time now) {
  if (!old_) return nullptr;
  looked_up_ = absl::Now();
  // One that is newer may have been filled by a call that joined no flight.
  cache::store::EntryRef entry = state_->store.GetMemory(key_, now).entry;
  if (!entry) entry = old_;
  const bool spent = context_.FreshnessOf(*state_, key_, *entry, now) ==
                     cache::Freshness::kSpent;
  return spent ? nullptr : entry;
}

bool RunFunctionCall::AnswerOld(const grpc::Status& status) {
  const absl::Time now = context_.clock.Now();
  const cache::store::EntryRef entry = FindOld(now);
  if (!entry) return false;
  AnswerOld(entry, now, status);
  return true;
}

void RunFunctionCall::AnswerOld(const cache::store::EntryRef& entry,
                                absl::Time now, const grpc::Status& status) {
  // It is no miss, whatever was to be said of it.
  why_.reason = insight::trace::Reason::kNone;
  if (IsFresh(entry, now)) return AnswerHit(entry, tag(), now);
  context_.instruments.RecordServedOver(status.error_code());
  context_.log.ServedOver(status);
  AnswerStale(entry, tag(), now, /*saved=*/absl::ZeroDuration());
}

void RunFunctionCall::AnswerStale(const cache::store::EntryRef& entry,
                                  absl::string_view tag, absl::Time now,
                                  absl::Duration saved) {
  thread_local absl::InsecureBitGen random;
  const cache::store::EntryInfo info = entry->info();
  context_.instruments.RecordHit(absl::Now() - looked_up_, saved);
  AddStatus(HitStatus(context_.ServedFor(*state_, key_, *entry, now)).text());
  const auto ttl =
      state_->policy.StaleTtl(info, absl::Uniform(random, 0.0, 1.0));
  transport::Message message = EntryMessage(entry, tag, ttl);
  if (trace_) {
    trace_->SetHit(info, entry->body().size(), ttl, now);
    trace_->SetAnswer(message);
  }
  Count(telemetry::Outcome::kStaleHit, grpc::StatusCode::OK);
  transport::IncomingCall::Answer(std::move(incoming_), std::move(message),
                                  grpc::Status::OK);
  End();
}

void RunFunctionCall::AnswerCollapsed(const cache::store::EntryRef& entry) {
  const cache::store::EntryInfo info = entry->info();
  const absl::Time now = context_.clock.Now();
  context_.instruments.RecordSaved(info.cost);
  AddStatus(ForwardStatus(reason_, /*collapsed=*/true, /*stored=*/true));
  const auto ttl = state_->policy.HitTtl(info, now);
  transport::Message message = EntryMessage(entry, tag(), ttl);
  if (trace_) {
    trace_->SetHit(info, entry->body().size(), ttl, now);
    trace_->SetAnswer(message);
  }
  Count(telemetry::Outcome::kCollapsed, grpc::StatusCode::OK);
  transport::IncomingCall::Answer(std::move(incoming_), std::move(message),
                                  grpc::Status::OK);
  End();
}

void RunFunctionCall::AddForwardStatus(bool collapsed, bool stored) {
  const absl::string_view status = ForwardStatus(reason_, collapsed, stored);
  if (why_.reason == insight::trace::Reason::kNone ||
      context_.misses == nullptr) {
    return AddStatus(status);
  }
  AddStatus(absl::StrCat(status, MissDetail(why_)));
}

void RunFunctionCall::AnswerError(const grpc::Status& status, bool collapsed) {
  AddStatus(ForwardStatus(reason_, collapsed, /*stored=*/false));
  Count(OutcomeOf(reason_, collapsed), status.error_code());
  transport::IncomingCall::Finish(std::move(incoming_), status);
  End();
}

void RunFunctionCall::OnAnswer(transport::UnaryCall& call,
                               const transport::Message& message, bool stored) {
  const grpc::Status& status = call.status();
  access_.SetUpstreamLatency(call.latency());
  if (IsFailure(status.error_code()) && AnswerOld(status)) return;
  if (const absl::optional<transport::Refusal> why = call.refused()) {
    context_.instruments.RequestRefused(static_cast<size_t>(*why));
    context_.log.MissRefused(status);
  }
  // RFC 9211: a cache further on has its say first, then this one.
  if (call.answered()) incoming_->Relay(call.headers(), call.trailers());
  AddForwardStatus(/*collapsed=*/false, stored);
  if (trace_) {
    trace_->SetRun(*run_);
    if (message.valid()) trace_->SetAnswer(message);
  }
  Count(OutcomeOf(reason_), status.error_code());
  if (message.valid()) {
    transport::IncomingCall::Answer(std::move(incoming_),
                                    transport::Message(message), status);
  } else {
    transport::IncomingCall::Finish(std::move(incoming_), status);
  }
  End();
}

void RunFunctionCall::Count(telemetry::Outcome outcome, int code) {
  telemetry::CallRecord record;
  record.method = method_;
  record.outcome = outcome;
  record.code = code;
  record.upstream = stage_ == Stage::kCalling;
  record.reason = why_.reason;
  record.bypass = BypassReasonOf(reason_);
  if (outcome == telemetry::Outcome::kBypass) {
    why_.detail = telemetry::BypassReasonName(record.bypass);
  }
  record.latency = absl::Now() - arrived_;
  context_.instruments.End(record);
  const transport::Message none;
  access_.Write(context_.name, record, why_, key_,
                incoming_ != nullptr ? plain() : none);
  if (trace_) {
    trace_->Write(outcome, code, record.latency, why_,
                  state_ == nullptr ? "" : state_->options.generation,
                  incoming_ != nullptr ? &plain() : &none);
  }
}

void RunFunctionCall::End() {
  stage_ = Stage::kOver;
  if (patience_timer_.has_value()) worker_->Cancel(*patience_timer_);
  patience_timer_.reset();
  old_ = nullptr;
  entered_ = {};
  // It may go on for others.
  if (run_ != nullptr) run_->LetGo();
  run_ = nullptr;
  self_ = nullptr;
}

}  // namespace

void StartRunFunction(transport::IncomingCallPtr call,
                      ServingContext* context) {
  http2::MakeRecycled<RunFunctionCall>(std::move(call), context)->Start();
}

}  // namespace fncache::proxy::serving
