// SPDX-License-Identifier: Apache-2.0
// How a call is answered: from an entry, from an old entry where the function
// failed, with the function's answer, or with an error.
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proxy/serving/answer.h"
#include "proxy/serving/call.h"
#include "proxy/serving/failure.h"
#include "proxy/serving/refresh.h"

namespace fncache::proxy::serving {

namespace {

// A hint is for this daemon.
http2::Fields WithoutHint(const http2::Fields& trailers) {
  http2::Fields rest;
  for (const http2::Field field : trailers) {
    if (field.name != cache::key::kHintField) rest.Add(field);
  }
  return rest;
}

}  // namespace

void RunFunctionCall::Answer(const cache::store::EntryRef& entry,
                             absl::string_view tag, absl::Time now,
                             cache::Outcome how, bool saves) {
  using cache::Outcome;
  const cache::store::EntryInfo info = entry->info();
  const absl::Duration saved = saves ? info.cost : absl::ZeroDuration();
  if (how == Outcome::kCollapsed) {
    context_.instruments.RecordSaved(saved);
    AddStatus(ForwardStatus(reason_, /*collapsed=*/true, /*stored=*/true));
  } else {
    context_.instruments.RecordHit(absl::Now() - looked_up_, saved);
    const HitStatus status(state_->ServedFor(Request().key, *entry, now));
    if (varied_ != nullptr && varied_->by_hint()) {
      key_ = varied_->entry_key();
      if (trace_) trace_->SetKey(key_, /*tuned=*/false);
      context_.hints.CountHit();
      AddStatus(absl::StrCat(status.text(), "; detail=hint"));
    } else if (state_->tunes() && info.drift.value_or(drift_) != drift_) {
      state_->evidence->OnHit(key_, tuned_->kinds, saves);
      context_.instruments.RecordTuneSaved(saved);
      AddStatus(absl::StrCat(status.text(), "; detail=drift"));
    } else {
      AddStatus(status.text());
    }
  }
  absl::optional<absl::Duration> ttl;
  if (how == Outcome::kStaleHit) {
    thread_local absl::InsecureBitGen random;
    ttl = state_->policy.StaleTtl(info, absl::Uniform(random, 0.0, 1.0));
  } else {
    ttl = state_->policy.HitTtl(info, now);
  }
  transport::Message message = EntryMessage(entry, tag, ttl);
  if (trace_) {
    trace_->SetHit(info, entry->body().size(), ttl, now);
    trace_->SetAnswer(message);
  }
  Count(how, grpc::StatusCode::OK);
  transport::IncomingCall::Answer(std::move(incoming_), std::move(message),
                                  grpc::Status::OK);
  End();
}

void RunFunctionCall::AnswerAndRefresh(const cache::store::EntryRef& entry,
                                       absl::string_view tag, absl::Time now) {
  absl::optional<Refresh> refresh =
      Refresh::Open(&context_, state_, {key_, drift_}, entry->started(), tuned_,
                    varied_.get(), *incoming_);
  // If the function runs for a refresh, none of its time is saved.
  Answer(entry, tag, now, cache::Outcome::kStaleHit,
         /*saves=*/!refresh.has_value());
  if (refresh.has_value()) refresh->Launch();
}

cache::store::EntryRef RunFunctionCall::FindOld(absl::Time now) {
  if (!old_) return nullptr;
  looked_up_ = absl::Now();
  // A call that joined no flight may have filled a newer entry.
  cache::store::EntryRef entry = FindInMemory(now).entry;
  if (!entry) entry = old_;
  const bool spent =
      state_->FreshnessOf(Request(), *entry, now) == cache::Freshness::kSpent;
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
  // The call is not a miss any more, so it has no reason.
  why_.reason = cache::Reason::kNone;
  if (state_->IsFreshForItself(Request().key, entry, now)) {
    return Answer(entry, tag(), now, cache::Outcome::kHit);
  }
  context_.instruments.RecordServedOver(status.error_code());
  context_.log.ServedOver(status);
  Answer(entry, tag(), now, cache::Outcome::kStaleHit, /*saves=*/false);
}

void RunFunctionCall::AddForwardStatus(bool collapsed, bool stored) {
  const absl::string_view status = ForwardStatus(reason_, collapsed, stored);
  const bool known =
      context_.misses != nullptr || why_.reason == cache::Reason::kDrift;
  if (why_.reason == cache::Reason::kNone || !known) return AddStatus(status);
  AddStatus(absl::StrCat(status, MissDetail(why_)));
}

void RunFunctionCall::AnswerError(const grpc::Status& status) {
  AddStatus(ForwardStatus(reason_, /*collapsed=*/false, /*stored=*/false));
  Count(cache::OutcomeOf(reason_), status.error_code());
  transport::IncomingCall::Finish(std::move(incoming_), status);
  End();
}

void RunFunctionCall::OnAnswer(transport::UnaryCall& call, bool stored) {
  const transport::Message& message = call.response();
  const grpc::Status& status = call.status();
  access_.SetUpstreamLatency(call.latency());
  if (IsFailure(status.error_code()) && AnswerOld(status)) return;
  if (const absl::optional<transport::Refusal> why = call.refused()) {
    context_.instruments.RequestRefused(static_cast<size_t>(*why));
    context_.log.MissRefused(status);
  }
  // RFC 9211: the field of a cache nearer to the function comes first.
  if (call.answered()) {
    incoming_->Relay(call.headers(), state_->options.varies()
                                         ? WithoutHint(call.trailers())
                                         : call.trailers());
  }
  AddForwardStatus(/*collapsed=*/false, stored);
  if (trace_) {
    trace_->SetRun(*run_, call.latency());
    // Where later calls find it.
    if (stored && varied_ != nullptr) {
      trace_->SetKey(run_->FillKey(), state_->tunes());
    }
    if (message.valid()) trace_->SetAnswer(message);
  }
  Count(cache::OutcomeOf(reason_), status.error_code());
  if (message.valid()) {
    transport::IncomingCall::Answer(std::move(incoming_),
                                    transport::Message(message), status);
  } else {
    transport::IncomingCall::Finish(std::move(incoming_), status);
  }
  End();
}

void RunFunctionCall::Count(cache::Outcome outcome, int code) {
  if (patience_timer_.has_value()) worker()->Cancel(*patience_timer_);
  patience_timer_.reset();
  telemetry::CallRecord record;
  record.method = incoming_->method();
  record.outcome = outcome;
  record.code = code;
  record.upstream = stage_ == Stage::kCalling;
  record.reason = why_.reason;
  if (outcome == cache::Outcome::kBypass) {
    record.reason = reason_;
    why_.detail =
        telemetry::BypassReasonName(telemetry::BypassReasonIndex(reason_));
  }
  record.latency = absl::Now() - incoming_->arrived();
  context_.instruments.End(record);
  access_.Write(context_.name, record, why_, key_, plain().bytes());
  if (trace_) {
    trace_->Write(outcome, code, record.latency, why_,
                  state_ == nullptr ? "" : state_->options.generation,
                  &plain());
  }
}

}  // namespace fncache::proxy::serving
