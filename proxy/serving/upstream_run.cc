// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/upstream_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proxy/serving/answer.h"
#include "proxy/serving/question.h"
#include "proxy/transport/codec.h"

namespace fncache::proxy::serving {
namespace {

// Bytes. To read a smaller answer takes less time than to hand it over: waking
// another thread and moving the bytes to its core cost a quarter of a miss with
// an answer of 13 KB.
constexpr size_t kHandedOver = 64 << 10;
// Bytes that one job decompresses of an answer that was handed over. A few
// kilobytes may become a gigabyte, so other jobs run between the steps.
constexpr size_t kUnpackedATime = 4 << 20;

// The longest time that a call continues after its last caller has left.
constexpr absl::Duration kMostAbandoned = absl::Minutes(2);

}  // namespace

void UpstreamRun::Start(const transport::UnaryRequest& request,
                        std::shared_ptr<RunOwner> owner) {
  owner_ = std::move(owner);
  request_bytes_ = request.message.size();
  if (may_store()) entered_ = state_->store.bans().Enter();
  started_ = context_.clock.Now();
  call_ = context_.upstream.StartUnary(
      request, [self = shared_from_this()](transport::UnaryCall& call) {
        self->OnDone(call);
      });
}

void UpstreamRun::SetVaried(const VariedCall& call,
                            transport::Message* request) {
  varied_ = std::make_unique<VariedCall>(call);
  // The answer to a compressed request is stored under a key by hint once its
  // hint is known.
  if (request->compressed()) return;
  varied_->KeepRequest(*request);
  request->Keep();
}

bool UpstreamRun::MayBeAbandoned() {
  limits::Budget* const budget = context_.upstream.options().inflight;
  if (budget == nullptr || memory_.taken()) return true;
  memory_ = budget->TakeUnattended(request_bytes_);
  return memory_.taken();
}

void UpstreamRun::OnAbandoned(uint64_t abandonment) {
  unattended_.store(Unattended::kAbandoned, std::memory_order_relaxed);
  call_->worker()->Post([self = shared_from_this(), abandonment] {
    if (!self->has_flight()) return;  // it is over
    // Two threads may report two abandonments: the later one counts.
    if (abandonment < self->abandonment_) return;
    self->abandonment_ = abandonment;
    absl::Duration limit = kMostAbandoned;
    if (self->call_->deadline().none()) {
      // Nothing else ends it.
      limit = std::min(limit, self->state_->options.policy.finish_abandoned);
    }
    if (self->abandoned_timer_.has_value()) {
      self->call_->worker()->Cancel(*self->abandoned_timer_);
    }
    self->abandoned_timer_ =
        self->call_->worker()->After(limit, [self = self.get(), abandonment] {
          self->abandoned_timer_.reset();
          self->context_.flights.EndAbandoned(self->flight(), abandonment);
        });
  });
}

void UpstreamRun::OnDone(transport::UnaryCall& call) {
  ended_ = context_.clock.Now();
  // An OK without a message has nothing to read. An answer that gRPC's
  // libraries may read as an error is not kept. Both are passed on unchanged.
  if (!message().valid() || use_ == Use::kPass) return End();
  if (!call.doubt().empty()) {
    context_.log.AnswerInDoubt(call.doubt());
    return End();
  }
  const size_t compared = shadow_ == nullptr ? 0 : shadow_->bytes();
  if (message().size() + compared < kHandedOver && UnpackSome(kHandedOver)) {
    Read();
    return End();
  }
  // The upstream call releases this object when OnDone returns.
  self_ = shared_from_this();
  if (call_->worker()->Offload(this)) OnWorked();
}

bool UpstreamRun::UnpackSome(size_t step) {
  if (!message().compressed()) return true;
  if (unpacker_ == nullptr) {
    auto unpacker = transport::Unpacker::Create(
        call_->headers().Find("grpc-encoding"), message().bytes());
    if (!unpacker.ok()) return true;
    unpacker_ = *std::move(unpacker);
  }
  const absl::Status status =
      unpacker_->Step(step, call_->max_response_bytes());
  if (status.ok()) {
    // Too large to be stored, and perhaps too large to be passed on.
    if (unpacker_->size() > state_->options.policy.max_entry_bytes) {
      unpacker_->StopKeeping();
      refusal_ = cache::Policy::Refusal::kTooLarge;
    }
    if (!unpacker_->done()) return false;
    if (unpacker_->keeps()) return true;  // Read takes it
  }
  if (absl::IsResourceExhausted(status)) fate_ = Fate::kOversized;
  unpacker_ = nullptr;
  return true;
}

void UpstreamRun::Read() {
  if (!message().compressed()) return Apply(message());
  // An answer that cannot be decompressed here, or is too large to be stored,
  // is passed on unchanged.
  if (unpacker_ == nullptr) return;
  const transport::Message plain(unpacker_->Release());
  unpacker_ = nullptr;
  Apply(plain);
}

void UpstreamRun::Work() {
  if (UnpackSome(kUnpackedATime)) Read();
}

void UpstreamRun::OnWorked() {
  while (unpacker_ != nullptr) {
    using Effort = transport::Worker::Effort;
    if (!call_->worker()->Offload(this, Effort::kGoesOn)) return;
  }
  const std::shared_ptr<UpstreamRun> self = std::move(self_);
  End();
}

void UpstreamRun::CompareWithBefore(const cache::ResponseView& view) const {
  if (context_.misses == nullptr || !may_store() || shadow_ != nullptr) return;
  const auto over = context_.misses->OnAnswer(key_, view.body, view.facts.ttl);
  if (over.has_value()) context_.instruments.RecordExamined(*over);
}

void UpstreamRun::TellMisses() const {
  if (context_.misses == nullptr || !may_store()) return;
  // In `mode: shadow` no miss is explained.
  if (shadow_ != nullptr) return;
  using cache::Policy;
  using insight::explain::NotStored;
  if (fate_ == Fate::kPurged) return context_.misses->OnPurged(key_);
  if (entry_) {
    const bool secrets = entry_->secrets();
    context_.misses->OnStored(key_, ServedUntil(), secrets);
    // Newer settings may not serve the entry: then later calls miss for them.
    if (secrets && !context_.states.IsNewest(state_) &&
        !context_.states.Newest()->policy.MayServe(*entry_)) {
      context_.misses->OnNotStored(key_, NotStored::kSecrets);
    }
    return;
  }
  if (fate_ == Fate::kOutlived) return context_.misses->OnStored(key_, ended_);
  NotStored why = NotStored::kError;
  if (!refusal_.has_value()) {
    if (cancelled_.load(std::memory_order_relaxed)) why = NotStored::kAbandoned;
  } else if (*refusal_ == Policy::Refusal::kFatal) {
    why = NotStored::kFatal;
  } else if (*refusal_ == Policy::Refusal::kSecrets) {
    why = NotStored::kSecrets;
  } else if (*refusal_ == Policy::Refusal::kNoTtl) {
    why = NotStored::kNoTtl;
  } else if (*refusal_ == Policy::Refusal::kOff) {
    why = NotStored::kModeOff;
  } else {
    why = NotStored::kTooLarge;
  }
  context_.misses->OnNotStored(key_, why);
}

void UpstreamRun::End() {
  if (fate_ == Fate::kOversized) {
    call_->Refuse(
        transport::Refusal::kSize,
        grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                     absl::StrCat("the function's decompressed answer exceeds "
                                  "max_response_bytes, ",
                                  call_->max_response_bytes())));
  }
  if (trace_facts_.told_ttl.has_value()) call_->OnMessageChanged();
  if (call_->began()) {
    context_.instruments.RecordUpstream(call_->status().error_code(),
                                        call_->latency());
  }
  if (abandoned_timer_.has_value()) {
    call_->worker()->Cancel(*abandoned_timer_);
  }
  abandoned_timer_.reset();
  TellMisses();
  SupersedeOlder();
  ReportUnattended();
  shadow_ = nullptr;  // counts a call that was not compared
  const auto role = std::exchange(role_, std::monostate());
  if (const auto* const flight = std::get_if<std::shared_ptr<Flight>>(&role)) {
    // Null: its caller had left before it was launched.
    if (*flight != nullptr) {
      context_.flights.Finish(*flight, EndOf(*call_), entry_, ended_,
                              /*found=*/!stored(),
                              call_->status().error_code());
    }
  } else if (const auto* const released =
                 std::get_if<std::shared_ptr<FlightCaller>>(&role)) {
    context_.flights.Leave(released->get());
  }
  if (tuned_ != nullptr && IsFailure(call_->status().error_code())) {
    state_->evidence->OnFailure(context_.id, ended_);
  }
  if (owner_ != nullptr) {
    const std::shared_ptr<RunOwner> owner = std::move(owner_);
    owner->OnAnswer(*call_, stored());
  }
  if (tuned_ != nullptr && tuned_->asks.has_value()) {
    tuned_->questions->Start(*tuned_->asks);
  }
}

void UpstreamRun::Learn(const cache::ResponseView& view,
                        const cache::store::EntryRef& older) {
  // The evidence follows the newest entry.
  if (fate_ == Fate::kNewer || fate_ == Fate::kOutlived) return;
  Tuning& tuning = *context_.tuning;
  TunedRun run;
  run.function = context_.id;
  run.step = tuned_->step;
  run.key = key_;
  run.kinds = &tuned_->kinds;
  run.stored = stored();
  run.for_caller =
      unattended_.load(std::memory_order_relaxed) != Unattended::kRefresh;
  run.tune_share = state_->options.tune_share;
  absl::optional<TunedEntry> before;
  if (tuned_->learns) {
    const auto answer = tuning.AnswerOf(view.body, view.facts.ttl);
    if (answer.has_value()) run.entry = *answer;
    run.stored = run.stored && answer.has_value();
    if (older && older->drift().has_value() &&
        !tuning.evidence.Knows(key_, older->started())) {
      before = tuning.AnswerOf({older->body()}, older->info().ttl);
      if (before.has_value()) {
        before->started = older->started();
        before->drift = *older->drift();
      }
    }
  } else if (tuning.evidence.Knows(key_)) {
    // It began while the function ran, so in doubt nothing is known.
    run.stored = false;
  }
  run.entry.started = started_;
  run.entry.drift = tuned_->drift;
  const RunNote note = tuning.evidence.OnRun(
      run, before.has_value() ? &*before : nullptr, ended_);
  if (state_->bans.Covers(key_, started_)) {
    // A purge bans before it forgets: one of both finds the other's effect.
    return tuning.evidence.Forget(key_);
  }
  if (note.questions_due && tuned_->questions != nullptr) {
    tuned_->asks = run.entry;
  }
}

void UpstreamRun::SupersedeOlder() {
  if (!may_store() || fate_ == Fate::kPurged || entry_ || !message().valid() ||
      !call_->doubt().empty()) {
    return;
  }
  if (varied_ != nullptr) {
    varied_->SupersedeOthers(context_.id, use_ != Use::kReplace, started_,
                             ended_);
  }
  // Also for an answer that could not be read.
  if (tuned_ != nullptr) state_->evidence->Forget(key_);
  const cache::store::Found found = state_->store.GetMemory(key_, ended_);
  const bool older = found.entry && found.entry->started() <= started_;
  if (older && found.entry->superseded()) return;  // lower tiers dropped it
  // In a rehearsal, an answer that would have been a hit supersedes nothing.
  if (use_ != Use::kReplace && (!older || shadow_ != nullptr)) return;
  if (older) context_.instruments.Superseded();
  state_->store.Supersede(key_, started_, context_.id, ended_);
  // Learn did so already if the answer could be read.
  if (tuned_ != nullptr) context_.tuning->evidence.Forget(key_);
}

absl::Time UpstreamRun::ServedUntil() const {
  return ended_ + (stored() ? state_->policy.ServedFor(entry_->info(), ended_)
                            : state_->ServedFor(key_, *entry_, ended_));
}

void UpstreamRun::ReportUnattended() {
  const Unattended why = unattended_.load(std::memory_order_relaxed);
  if (why == Unattended::kNo) return;
  const bool refreshes = why == Unattended::kRefresh;
  if (refreshes) context_.instruments.RefreshEnded();
  // A purge is no failure of the function. A call that started later may have
  // filled the key before this one ended.
  if (entry_ || fate_ == Fate::kPurged || (refreshes && IsFreshInMemory())) {
    return context_.refreshes.Succeeded(flight_key());
  }
  context_.refreshes.Failed(flight_key(), ended_);
  if (!refreshes) return context_.log.AbandonedFailed(call_->status());
  context_.instruments.RefreshFailed();
  context_.log.RefreshFailed(call_->status());
}

bool UpstreamRun::IsFreshInMemory() const {
  if (varied_ != nullptr) return varied_->IsFresh(key_, ended_);
  const cache::store::Found found = state_->store.GetMemory(key_, ended_);
  return state_->IsFreshForItself(key_, found.entry, ended_);
}

FlightEnd UpstreamRun::EndOf(const transport::UnaryCall& call) const {
  if (entry_) return FlightEnd::kShared;
  if (EndedByDeadline(call)) return FlightEnd::kDeadline;
  return IsFailure(call.status().error_code()) ? FlightEnd::kFailed
                                               : FlightEnd::kAlone;
}

void UpstreamRun::Apply(const transport::Message& response) {
  const absl::string_view bytes = response.bytes();
  auto view = cache::ReadResponse(bytes);
  if (!view.ok()) return;  // it is passed on unchanged
  view->facts.pure = ReadHint();
  cache::Policy::Storing storing;
  const cache::key::Key& found_key = varied_ != nullptr && varied_->by_hint()
                                         ? varied_->entry_key()
                                         : FillKey();
  if (may_store() &&
      (shadow_ == nullptr ||
       shadow_->Judge(
           *view, found_key, state_->policy.options().max_entry_bytes,
           &state_->store,
           [&](const cache::store::Entry& entry) {
             return state_->FreshnessForItself(found_key, entry, ended_) ==
                    cache::Freshness::kFresh;
           },
           ended_))) {
    thread_local absl::InsecureBitGen random;
    storing = state_->policy.Decide(view->facts, bytes.size(),
                                    absl::Uniform(random, 0.0, 1.0));
    ObeyNewest(view->facts, &storing);
  }
  refusal_ = storing.refusal;
  if (storing.store && shadow_ != nullptr)
    shadow_->Remember(FillKey(), started_);
  cache::store::EntryRef older;
  if (tuned_ != nullptr && tuned_->learns) {
    older = state_->store.GetMemory(key_, ended_).entry;
  }
  if (storing.store) Fill(*view, storing);
  // A key by hint has no drift.
  if (tuned_ != nullptr && FillKey() == key_) Learn(*view, older);
  CompareWithBefore(*view);
  trace_facts_.facts = view->facts;
  for (const absl::string_view piece : view->body) {
    trace_facts_.bytes += piece.size();
  }
  // An answer that memory did not take is not stored, so its TTL must not be
  // that of an entry.
  if (!stored()) storing = {};
  const auto ttl = state_->policy.MissTtl(view->facts, storing);
  trace_facts_.told_ttl = ttl;
  if (ttl.has_value()) {
    message() = MessageWithTtl(*view, response, *ttl);
  }
}

bool UpstreamRun::ReadHint() {
  if (varied_ == nullptr) return false;
  absl::Status why;
  if (varied_->ReadHint(call_->trailers(), &why)) return varied_->pure();
  if (!why.ok() && context_.hints.Refuse()) context_.log.HintRefused(why);
  return false;
}

void UpstreamRun::ObeyNewest(const cache::ResponseFacts& facts,
                             cache::Policy::Storing* storing) const {
  if (!storing->store || context_.states.IsNewest(state_)) return;
  const FunctionStatePtr newest = context_.states.Newest();
  const cache::PolicyOptions& policy = newest->options.policy;
  if (policy.mode == cache::Mode::kOff) {
    *storing = {};
    storing->refusal = cache::Policy::Refusal::kOff;
    return;
  }
  if (facts.secrets && policy.store_secrets == cache::StoreSecrets::kNone) {
    *storing = {};
    storing->refusal = cache::Policy::Refusal::kSecrets;
    return;
  }
  // Tiers that outlive the process name the generation in force now.
  if ((facts.secrets && policy.store_secrets != cache::StoreSecrets::kAll) ||
      newest->options.generation != state_->options.generation) {
    storing->lower_tiers = false;
  }
}

void UpstreamRun::Fill(const cache::ResponseView& view,
                       const cache::Policy::Storing& storing) {
  cache::store::EntryInfo info;
  info.function = context_.id;
  info.started = started_;
  info.arrived = ended_;
  info.lifetime = storing.lifetime;
  info.retention = storing.retention;
  info.ttl = view.facts.ttl;
  info.cost = call_->latency();
  info.secrets = view.facts.secrets;
  info.pure = view.facts.pure;
  const cache::key::Key& key = FillKey();
  if (tuned_ != nullptr && key == key_) info.drift = tuned_->drift;
  cache::store::EntryRef entry =
      cache::store::Entry::Create(info, view.meta_rest, view.body);
  if (!entry) return;  // no memory for it: it is only passed on
  auto put = cache::store::PutResult::kPurged;
  state_->bans.FillUnlessBanned(key, started_, [&] {
    put = state_->store.Fill(key, entry, storing.lower_tiers, ended_);
  });
  switch (put) {
    case cache::store::PutResult::kStored:
      if (!context_.states.IsNewest(state_) &&
          !context_.states.Newest()->policy.MayServe(*entry)) {
        // The settings changed after ObeyNewest. Perhaps they cleared the
        // entries that they do not keep before this one was filled.
        state_->store.Erase(key);
        refusal_ = cache::Policy::Refusal::kSecrets;
        return;
      }
      if (varied_ != nullptr) {
        if (auto later =
                varied_->EndOthers(key_, context_.id, started_, ended_)) {
          state_->store.Displace(key, started_, context_.id, ended_);
          fate_ = Fate::kNewer;
          entry_ = std::move(later);
          return;
        }
        varied_->Learn(ended_);
      }
      context_.instruments.RecordFill(entry->body().size() +
                                      entry->meta_rest().size());
      fate_ = Fate::kStored;
      entry_ = std::move(entry);
      return;
    case cache::store::PutResult::kOlder: {
      // A call that started later has filled the key: waiting callers get that
      // entry.
      cache::store::Found newer = state_->store.GetMemory(key, ended_);
      // Each caller that waited asks whether it may have that one.
      if (!state_->IsFreshForItself(key, newer.entry, ended_)) {
        fate_ = Fate::kOutlived;
        return;
      }
      fate_ = Fate::kNewer;
      entry_ = std::move(newer.entry);
      return;
    }
    case cache::store::PutResult::kPurged:
      fate_ = Fate::kPurged;
      return;
    case cache::store::PutResult::kExpired:
      fate_ = Fate::kOutlived;
      return;
    default:
      return;
  }
}

bool UpstreamRun::EndedByDeadline(const transport::UnaryCall& call) const {
  // A function that returns this status near the deadline had the same one.
  return call.status().error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
         call.deadline().IsOver(transport::Deadline::Now());
}

}  // namespace fncache::proxy::serving
