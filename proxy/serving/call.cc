// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/call.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/key/drift_kinds.h"
#include "cache/wire/origin.h"
#include "http2/recycler.h"
#include "proxy/serving/pending_lookup.h"
#include "proxy/serving/question.h"

namespace fncache::proxy::serving {
namespace {

// The memory in which a thread computes keys.
struct Keying {
  cache::key::DigestScratch scratch;
  std::vector<absl::string_view> pieces;  // of the request
};
thread_local Keying keying;

// The fraction of a caller's time after which it gets an old answer, if there
// is one, rather than none.
constexpr double kPatience = 0.9;

// Bytes. From this size on another thread makes the request's key.
constexpr size_t kHandedOver = 32 << 10;
// Bytes. The key of such a request takes milliseconds, and no other connection
// of the worker must wait for it.
constexpr size_t kLongWork = 1 << 20;

// The use that may be made of the answer to a call that goes to the function.
// `stale`: its lookup found an entry past its time.
Use UseOf(cache::Reason reason, bool stale) {
  using cache::Reason;
  if (cache::SkipsLookup(reason)) return Use::kPass;
  if (reason == Reason::kNoStore) return Use::kAnswer;
  const bool replaces = stale || reason == Reason::kExpired ||
                        reason == Reason::kNoCache || reason == Reason::kDrift;
  return replaces ? Use::kReplace : Use::kStore;
}

}  // namespace

void RunFunctionCall::Start() {
  self_ = shared_from_this();
  context_.instruments.Begin(incoming_->method());
  if (context_.traces != nullptr && !context_.traces->IsNewest(nullptr)) {
    const auto& writer = context_.traces->Of(incoming_->worker()->index());
    if (writer != nullptr) {
      trace_.emplace(context_, writer, incoming_->method(),
                     incoming_->arrived());
    }
  }
  incoming_->Read([this](const grpc::Status& status) { OnRead(status); });
}

void RunFunctionCall::OnRead(const grpc::Status& status) {
  const auto keep = shared_from_this();
  state_ = context_.states.Of(worker()->index());
  const Directives directives =
      ReadDirectives(incoming_->fields(), state_->options.bypass_metadata);
  if (directives.authorization) {
    reason_ = cache::Reason::kAuthorization;
  } else if (directives.bypass) {
    reason_ = cache::Reason::kMetadata;
  } else if (state_->options.policy.mode == cache::Mode::kOff) {
    reason_ = cache::Reason::kModeOff;
  } else if (directives.no_store) {
    reason_ = cache::Reason::kNoStore;
  } else if (directives.no_cache) {
    reason_ = cache::Reason::kNoCache;
  }
  if (trace_ && status.ok()) trace_->SetMetadata(incoming_->fields());
  if (!status.ok()) {
    if (status.error_code() == grpc::StatusCode::CANCELLED) return OnGone();
    reason_ = cache::Reason::kUnreadable;
    return AnswerError(status);
  }
  // A request that cannot be decompressed gets no key.
  if (!plain().valid()) reason_ = cache::Reason::kUnreadable;
  if (cache::SkipsLookup(reason_)) {
    Launch();
    return WatchCaller();
  }
  if (state_->options.varies() && reason_ == cache::Reason::kUnknown &&
      AnswerByHint()) {
    return;
  }
  // With `key: tag` the key is found at once. The check for a composite may
  // take long in a large request.
  const bool by_content =
      state_->options.key == cache::key::KeySource::kContent;
  if (plain().size() >= (by_content ? kHandedOver : kLongWork)) {
    stage_ = Stage::kKeying;
    using Effort = transport::Worker::Effort;
    const bool is_long = plain().size() >= kLongWork;
    if (worker()->Offload(this, is_long ? Effort::kLong : Effort::kUsual)) {
      OnWorked();
    }
    return;
  }
  OnKeyed(ComputeDigest());
}

bool RunFunctionCall::AnswerByHint() {
  // The key of a large request is made by another thread, and a rehearsal
  // calls the function anyway.
  if (plain().size() >= kLongWork || state_->shadow != nullptr) return false;
  if (!state_->options.cache_operations) CheckOrigin();
  if (reason_ != cache::Reason::kUnknown) return false;
  looked_up_ = absl::Now();
  varied_ = VariedCall::Make(&context_.hints, state_, incoming_->method(),
                             plain().bytes());
  if (varied_ == nullptr) return false;
  const absl::Time now = context_.clock.Now();
  const cache::store::EntryRef entry = varied_->FindFresh(plain().bytes(), now);
  if (!entry) return false;
  Answer(entry, varied_->tag(), now, cache::Outcome::kHit);
  return true;
}

void RunFunctionCall::CheckOrigin() {
  switch (cache::wire::OriginOf(plain().bytes())) {
    case cache::wire::Origin::kComposite:
      return;
    case cache::wire::Origin::kOperation:
      reason_ = cache::Reason::kOperation;
      return;
    case cache::wire::Origin::kUnreadable:
      reason_ = cache::Reason::kUnreadable;
      return;
  }
}

void RunFunctionCall::Work() {
  const cache::key::Digest digest = ComputeDigest();
  if (digest.keyed) key_ = digest.key;
  if (state_->tunes()) KeepDrift(digest);
  // The tag is copied, because it refers to memory that the thread's next call
  // overwrites.
  KeepTag(digest.tag);
}

void RunFunctionCall::OnWorked() {
  // The call has not ended: up to here no stage watches its caller.
  const auto keep = shared_from_this();
  cache::key::Digest digest;
  digest.keyed = key_ != cache::key::Key();
  digest.key = key_;
  digest.drift = drift_;
  digest.tag = tag();
  OnKeyed(digest);
}

void RunFunctionCall::OnKeyed(const cache::key::Digest& digest) {
  if (digest.keyed && reason_ != cache::Reason::kNoCache) return LookUp(digest);
  if (digest.keyed) {
    key_ = digest.key;
    if (state_->tunes()) KeepDrift(digest);
  } else if (!cache::SkipsLookup(reason_) &&
             reason_ != cache::Reason::kNoStore) {
    reason_ = cache::Reason::kUnreadable;
    shadow_ = nullptr;
  }
  Launch();
  WatchCaller();
}

cache::key::Digest RunFunctionCall::ComputeDigest() {
  if (!state_->options.cache_operations) CheckOrigin();
  if (cache::SkipsLookup(reason_) || reason_ == cache::Reason::kNoStore) {
    return {};
  }
  keying.pieces.assign({plain().bytes()});
  if (state_->shadow != nullptr) {
    shadow_ = state_->shadow->Read(keying.pieces, &context_.instruments,
                                   &context_.clock);
    if (reason_ == cache::Reason::kUnknown) reason_ = cache::Reason::kShadow;
  }
  const cache::key::Digest digest =
      state_->digester(incoming_->method())
          .Compute(keying.pieces, &keying.scratch);
  if (!state_->options.masks.empty()) state_->TryMasks();
  if (state_->options.varies() && digest.keyed) {
    if (varied_ == nullptr) {
      varied_ = VariedCall::Make(&context_.hints, state_, incoming_->method(),
                                 plain().bytes());
    }
    if (varied_ != nullptr) varied_->MakeKeys(plain().bytes());
  }
  return digest;
}

bool RunFunctionCall::AnswerFrom(const cache::store::Found& found,
                                 absl::string_view tag, absl::Time now) {
  absl::optional<Judgement> judged;
  if (found.entry) {
    switch (state_->FreshnessOf(Request(), *found.entry, now, &judged)) {
      case cache::Freshness::kFresh:
        if (shadow_ != nullptr) {
          Rehearse(found.entry);
          return true;
        }
        Answer(found.entry, tag, now, cache::Outcome::kHit);
        return true;
      case cache::Freshness::kWhileRevalidate:
        // A refresh would fill, but the rehearsal does that.
        if (shadow_ != nullptr) break;
        AnswerAndRefresh(found.entry, tag, now);
        return true;
      case cache::Freshness::kIfError:
      case cache::Freshness::kSpent:
        break;
    }
  }
  NoteMiss(found, judged, now);
  return false;
}

void RunFunctionCall::NoteMiss(const cache::store::Found& found,
                               const absl::optional<Judgement>& judged,
                               absl::Time now) {
  if (judged.has_value() && judged->verdict != DriftVerdict::kHit &&
      tuned_ != nullptr &&
      state_->FreshnessForItself(key_, *found.entry, now) <
          cache::Freshness::kIfError) {
    reason_ = cache::Reason::kDrift;
    tuned_->judgement = *judged;
  } else {
    NoteStale(found, now);
  }
}

void RunFunctionCall::KeepDrift(const cache::key::Digest& digest) {
  if (tuned_ != nullptr || !digest.keyed) return;
  drift_ = digest.drift;
  tuned_ = std::make_shared<TunedCall>();
  tuned_->drift = digest.drift;
  tuned_->kinds = cache::key::KindsOf(digest.drifts);
  tuned_->reencoded = digest.reencoded;
}

std::string RunFunctionCall::DriftDetail() {
  const Judgement& judgement = tuned_->judgement;
  std::string detail = VerdictName(judgement.verdict);
  // No other connection of the worker waits for the name.
  if (judgement.verdict != DriftVerdict::kMoved ||
      plain().size() >= kLongWork) {
    return detail;
  }
  // The names are not kept: such a request is read once more.
  keying.pieces.assign({plain().bytes()});
  const cache::key::Digest digest =
      state_->digester(incoming_->method())
          .Compute(keying.pieces, &keying.scratch);
  return absl::StrCat(detail, " ",
                      cache::key::KindName(digest.drifts, judgement.moved));
}

void RunFunctionCall::NoteStale(const cache::store::Found& found,
                                absl::Time now) {
  if (!found.entry && !found.expired) return;
  found_stale_ = true;
  if (shadow_ != nullptr) return;
  EnterBans();
  // An entry that may not be used counts as none.
  if (found.entry && !state_->MayUse(Request().key, *found.entry)) return;
  reason_ = cache::Reason::kExpired;
  if (!found.entry ||
      state_->policy.options().stale_if_error <= absl::ZeroDuration() ||
      state_->FreshnessOf(Request(), *found.entry, now) ==
          cache::Freshness::kSpent) {
    return;
  }
  old_ = found.entry;
  const transport::Deadline& deadline = incoming_->deadline();
  if (patience_timer_.has_value() || deadline.none()) return;
  patience_timer_ =
      worker()->After(deadline.LeftOf(kPatience, transport::Deadline::Now()),
                      [this] { OnPatienceEnd(); });
}

void RunFunctionCall::LookUp(const cache::key::Digest& digest) {
  looked_up_ = absl::Now();
  key_ = digest.key;
  drift_ = digest.drift;
  if (trace_) trace_->SetKey(digest.key, state_->tunes());
  const absl::Time now = context_.clock.Now();
  const cache::store::Found found = FindInMemory(now);
  // A fresh entry of its own drift answers without a look at its kinds.
  if (state_->tunes() && !(found.entry && found.entry->drift() == drift_ &&
                           state_->IsFreshForItself(key_, found.entry, now))) {
    KeepDrift(digest);
  }
  if (AnswerFrom(found, digest.tag, now)) return;
  if (digest.tag.data() != tag_.data()) KeepTag(digest.tag);
  if (MayFindBelow(found)) {
    return LookBelow(
        varied_ == nullptr ? key_ : *varied_->FirstBelow(key_),
        found.entry ? found.entry->started() : absl::InfinitePast());
  }
  Miss();
}

bool RunFunctionCall::MayFindBelow(const cache::store::Found& found) const {
  cache::store::TieredStore& store = state_->store;
  if (!store.has_lower()) return false;
  // Below it is no younger than an entry that is past its time in memory,
  // unless other replicas fill it, too.
  const bool known = found.entry || found.expired;
  return (!known || store.MayBeYoungerBelow()) && store.MayFindBelow();
}

void RunFunctionCall::LookBelow(const cache::key::Key& key, absl::Time than) {
  stage_ = Stage::kLookingBelow;
  auto pending =
      std::make_unique<PendingLookup>(worker(), &state_->store.bans());
  // OnLower is posted, so it comes later, even if the store answers at once.
  state_->store.GetLower(
      key, context_.id, than, context_.clock.Now(),
      [call = shared_from_this(), worker = worker(), than,
       pending = std::move(pending)](cache::store::Found found) mutable {
        worker->Post(
            [call = std::move(call), pending = std::move(pending), than,
             found = std::move(found)] { call->OnLower(found, than); });
      });
  WatchCaller();
}

void RunFunctionCall::OnLower(const cache::store::Found& found,
                              absl::Time than) {
  if (stage_ != Stage::kLookingBelow) return;  // the caller has left
  const absl::Time now = context_.clock.Now();
  if (varied_ == nullptr) {
    if (AnswerFrom(found, tag(), now)) return;
    return Miss();
  }
  if (AnswerFrom(varied_->FoundBelow(found, key_), tag(), now)) return;
  if (old_ && old_->started() > than) than = old_->started();
  if (const cache::key::Key* const next = varied_->NextBelow(key_)) {
    return LookBelow(*next, than);
  }
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
  if (seat_->stale()) reason_ = cache::Reason::kExpired;
  if (verdict == Verdict::kWait) {
    stage_ = Stage::kWaiting;
    if (incoming_->MayWait()) return WatchCaller();
    StopWaiting();
    const grpc::Status refused = transport::IncomingCall::OverCap();
    if (AnswerOld(refused)) return;
    incoming_->CountOverCap();
    return AnswerError(refused);
  }
  Follow(verdict, /*look_again=*/true);
}

void RunFunctionCall::Follow(Verdict verdict, bool look_again) {
  if (look_again) {
    looked_up_ = absl::Now();
    const absl::Time now = context_.clock.Now();
    // A flight may have brought a hint, too.
    if (varied_ != nullptr) varied_->MakeKeys(plain().bytes());
    const cache::store::Found found = FindInMemory(now);
    absl::optional<Judgement> judged;
    if (found.entry &&
        state_->FreshnessOf(Request(), *found.entry, now, &judged) ==
            cache::Freshness::kFresh) {
      // Joined callers get this entry. A released caller frees its slot.
      if (verdict == Verdict::kLead) {
        context_.flights.FinishFound(seat_.get(), found.entry, now);
      } else {
        context_.flights.Leave(seat_.get());
      }
      return Answer(found.entry, tag(), now, cache::Outcome::kHit);
    }
    // An entry of another drift is that of the look-up, or a newer one.
    if (reason_ != cache::Reason::kDrift) NoteMiss(found, judged, now);
  }
  const bool leads = verdict == Verdict::kLead;
  const bool outlives =
      leads &&
      state_->policy.options().finish_abandoned > absl::ZeroDuration() &&
      context_.refreshes.Allows({key_, drift_}, context_.clock.Now());
  Launch(outlives);
  if (leads) {
    run_->SetFlight(context_.flights.Launched(seat_.get(), run_, outlives));
  } else {
    run_->SetSeat(seat_);
  }
  WatchCaller();
}

void RunFunctionCall::Launch(bool outlives) {
  stage_ = Stage::kCalling;
  run_ = http2::MakeRecycled<UpstreamRun>(&context_, state_,
                                          UseOf(reason_, found_stale_), key_);
  if (shadow_ != nullptr) run_->SetShadow(std::move(shadow_));
  if (tuned_ != nullptr && UseOf(reason_, found_stale_) >= Use::kStore) {
    PrepareToLearn(&context_, state_, key_, *incoming_,
                   /*found=*/found_stale_ || reason_ == cache::Reason::kDrift,
                   tuned_.get());
    run_->SetTuned(tuned_);
  }
  transport::Message request = incoming_->request();
  if (varied_ != nullptr && UseOf(reason_, found_stale_) >= Use::kStore) {
    run_->SetVaried(*varied_, &request);
  }
  const absl::Duration longer = outlives
                                    ? state_->policy.options().finish_abandoned
                                    : absl::ZeroDuration();
  run_->Start({worker(), incoming_->fields(), request,
               incoming_->deadline().Extended(longer), incoming_->account(),
               incoming_->KeptIn(), /*impatient=*/static_cast<bool>(old_)},
              shared_from_this());
  // The function works meanwhile.
  Explain();
  if (trace_) trace_->KeepRequest(plain());
  access_.KeepRequest(plain().bytes());
  incoming_->ForgetRequest();
}

void RunFunctionCall::Explain() {
  if (reason_ != cache::Reason::kUnknown &&
      reason_ != cache::Reason::kExpired && reason_ != cache::Reason::kDrift) {
    return;
  }
  why_.reason = reason_;
  if (reason_ == cache::Reason::kDrift) why_.detail = DriftDetail();
  if (context_.misses == nullptr) return;
  keying.pieces.assign({plain().bytes()});
  why_ = context_.misses->Explain(
      context_.name, incoming_->method(), state_->options.generation, key_,
      state_->options.masks, keying.pieces,
      {reason_, why_.detail, state_->tunes(),
       varied_ == nullptr ? nullptr : varied_->newest()});
}

void RunFunctionCall::OnSignal(const FlightSignal& signal) {
  // A signal may arrive after its caller has left: it is ignored.
  if (stage_ != Stage::kWaiting) return;
  if (signal.verdict == Verdict::kAnswer) {
    if (signal.entry && state_->Purged(key_, *signal.entry)) {
      return Miss();
    }
    // The call that filled the entry may have had older settings.
    if (signal.entry && !state_->policy.MayServe(*signal.entry)) {
      return Follow(Verdict::kRun, /*look_again=*/false);
    }
    // A later call with other drift may have filled it.
    if (varied_ != nullptr) varied_->SetPlain();
    if (signal.entry && state_->tunes() &&
        signal.entry->drift().value_or(drift_) != drift_ &&
        !state_->IsFresh(Request(), signal.entry, context_.clock.Now())) {
      return Miss();
    }
    looked_up_ = absl::Now();
    return Answer(
        signal.entry, tag(), context_.clock.Now(),
        signal.found ? cache::Outcome::kHit : cache::Outcome::kCollapsed);
  }
  if (signal.verdict == Verdict::kOld) {
    if (AnswerOld(grpc::Status(static_cast<grpc::StatusCode>(signal.code),
                               "so ended the call that this one joined"))) {
      return;
    }
    // The old entry may not be used any more, so this call continues without.
    old_ = nullptr;
    return Miss();
  }
  Follow(signal.verdict,
         /*look_again=*/signal.verdict == Verdict::kLead || signal.queued);
}

bool RunFunctionCall::StopWaiting() {
  if (stage_ == Stage::kWaiting) {
    return context_.flights.Leave(seat_.get());
  }
  if (stage_ != Stage::kCalling) return false;
  run_->Detach();
  // A flight's call continues while any caller waits. A released caller keeps
  // its slot until its call has ended.
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
  // Without an old entry the call may use all of its caller's time.
  if (!entry) return;
  StopWaiting();
  AnswerOld(entry, now,
            grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED,
                         "nine tenths of the caller's time are over"));
}

void RunFunctionCall::OnGone() {
  const bool late = incoming_->deadline().IsOver(transport::Deadline::Now());
  const bool connecting = stage_ == Stage::kCalling && run_->connecting();
  const bool waits = stage_ == Stage::kWaiting || connecting;
  const bool joined = StopWaiting();
  // A caller whose deadline has passed still gets an answer that says so.
  if (stage_ == Stage::kReading) {
    reason_ = cache::Reason::kUnreadable;
    AddStatus(ForwardStatus(reason_, /*collapsed=*/false, /*stored=*/false));
  } else {
    AddForwardStatus(joined, /*stored=*/false);
  }
  Count(
      joined ? cache::Outcome::kCollapsed : cache::OutcomeOf(reason_),
      late ? grpc::StatusCode::DEADLINE_EXCEEDED : grpc::StatusCode::CANCELLED);
  if (late && waits) {
    const grpc::Status status = context_.upstream.TooLate(worker(), connecting);
    transport::IncomingCall::Finish(std::move(incoming_), status);
  }
  incoming_ = nullptr;
  End();
}

void RunFunctionCall::WatchCaller() {
  if (!incoming_->OnCancelled([this] { OnGone(); })) OnGone();
}

void RunFunctionCall::End() {
  stage_ = Stage::kOver;
  old_ = nullptr;
  entered_ = {};
  run_ = nullptr;  // it may continue for other callers
  self_ = nullptr;
}

void StartRunFunction(transport::IncomingCallPtr call,
                      ServingContext* context) {
  http2::MakeRecycled<RunFunctionCall>(std::move(call), context)->Start();
}

}  // namespace fncache::proxy::serving
