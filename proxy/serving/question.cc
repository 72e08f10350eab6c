// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/question.h"

#include <utility>

#include "absl/random/random.h"
#include "cache/key/alteration.h"
#include "cache/response.h"
#include "http2/slice.h"
#include "proxy/serving/failure.h"
#include "proxy/transport/deadline.h"

namespace fncache::proxy::serving {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(2);

// The caller's metadata, for a question: it asks for an answer that no cache
// stores, and neither is compressed.
http2::Fields FieldsOf(const transport::IncomingCall& call) {
  http2::Fields fields;
  for (const http2::Field field : call.fields()) {
    if (field.name == "grpc-encoding" || field.name == "grpc-accept-encoding" ||
        field.name == "cache-control" || field.name == "content-length") {
      continue;
    }
    fields.Add(field);
  }
  fields.Add("cache-control", "no-store");
  return fields;
}

uint64_t Seed() {
  thread_local absl::BitGen random;
  return absl::Uniform<uint64_t>(random);
}

}  // namespace

void PrepareToLearn(ServingContext* context, const FunctionStatePtr& state,
                    const cache::key::Key& key,
                    const transport::IncomingCall& call, bool found,
                    TunedCall* tuned) {
  // A request that causes no questions adds nothing, and to read a large one
  // takes long.
  tuned->learns = call.plain().size() <= Questions::kMostBytes &&
                  (found || state->evidence->Knows(key));
  if (!tuned->learns) return;
  tuned->step =
      StepOf(context->name, state->options.generation, call.plain().bytes());
  tuned->questions = Questions::Open(context, state, key, *tuned, call);
}

std::shared_ptr<Questions> Questions::Open(
    ServingContext* context, FunctionStatePtr state, const cache::key::Key& key,
    const TunedCall& tuned, const transport::IncomingCall& call) {
  const size_t bytes = call.plain().size();
  if (tuned.reencoded || bytes > kMostBytes ||
      !state->evidence->MayAskLater(context->id, tuned.step, key,
                                    state->options.tune_share,
                                    context->clock.Now())) {
    return nullptr;
  }
  limits::Budget::Unattended memory;
  if (limits::Budget* const budget = context->upstream.options().inflight) {
    memory = budget->TakeUnattended(bytes);
    if (!memory.taken()) return nullptr;
  }
  return std::make_shared<Questions>(context, std::move(state), key, tuned,
                                     call, std::move(memory));
}

Questions::Questions(ServingContext* context, FunctionStatePtr state,
                     const cache::key::Key& key, const TunedCall& tuned,
                     const transport::IncomingCall& call,
                     limits::Budget::Unattended memory)
    : context_(*context),
      state_(std::move(state)),
      key_(key),
      step_(tuned.step),
      worker_(call.worker()),
      method_(call.method()),
      fields_(FieldsOf(call)),
      request_(call.plain()),
      memory_(std::move(memory)),
      seed_(Seed()) {}

void Questions::Start(const TunedEntry& answer) {
  answer_ = answer;
  if (!MayAsk()) return;
  running_ = state_->evidence->Begin(key_, state_->options.tune_share,
                                     context_.clock.Now());
  if (!running_.has_value()) return;
  self_ = shared_from_this();
  Next();
}

bool Questions::Holds() const {
  return context_.states.IsNewest(state_) &&
         !state_->bans.Covers(key_, answer_.started);
}

bool Questions::MayAsk() const {
  if (context_.tuning->silent.load(std::memory_order_relaxed) || !Holds()) {
    return false;
  }
  const limits::Budget* const budget = context_.upstream.options().inflight;
  return (budget == nullptr || budget->MayRun(request_.size())) &&
         !context_.flights.CallersWait();
}

void Questions::Next() {
  if (running_->proof.ended() || !MayAsk()) return End();
  // Parsing takes as long as many keys.
  if (worker_->Offload(this)) OnWorked();
}

void Questions::Work() {
  if (call_ == nullptr) return Make();
  answered_ = Compare();
}

void Questions::OnWorked() {
  if (call_ == nullptr) return Send();
  Report(answered_);
}

void Questions::Make() {
  const Question question = running_->proof.next();
  using cache::key::Altered;
  altered_ =
      question.number == 0
          ? cache::key::WithOwnTag(request_.bytes())
          : cache::key::Alter(
                request_.bytes(), state_->options.masks,
                static_cast<cache::key::Question>(question.number),
                question.versions_alone ? Altered::kVersions : Altered::kAll,
                seed_, context_.clock.Now());
  if (!altered_.has_value()) return;
  // A question that is another request would prove nothing.
  thread_local cache::key::DigestScratch scratch;
  const cache::key::Digest digest =
      state_->digester(method_).Compute({*altered_}, &scratch);
  if (!digest.keyed || digest.key != key_) altered_.reset();
}

void Questions::Send() {
  // A question that cannot be made costs nothing.
  if (!altered_.has_value() || !MayAsk() || !context_.flights.TakeSlot()) {
    return End();
  }
  has_slot_ = true;
  if (!state_->evidence->Take(&*running_, context_.clock.Now())) return End();
  using transport::Deadline;
  const transport::Message message(http2::Slice::Copy(*altered_));
  altered_.reset();
  call_ = context_.upstream.StartUnary(
      {worker_, fields_, message, Deadline::Own(kPatience, Deadline::Now())},
      [self = shared_from_this()](transport::UnaryCall& call) {
        self->OnAnswer(call);
      });
}

Answered Questions::Compare() {
  const transport::Message& message = call_->response();
  const auto view = cache::ReadResponse(message.bytes());
  if (!view.ok()) return Answered::kNone;
  const absl::optional<TunedEntry> answer =
      context_.tuning->AnswerOf(view->body, view->facts.ttl);
  if (!answer.has_value()) return Answered::kNone;
  if (answer->SameAnswer(answer_)) return Answered::kSame;
  NoteDifference(*view, *answer);
  return Answered::kDiffers;
}

void Questions::NoteDifference(const cache::ResponseView& view,
                               const TunedEntry& answer) {
  running_->seen = NamesOf(request_.bytes());
  // A later call may have replaced the entry. Then earlier paths stay.
  const cache::store::EntryRef entry =
      state_->store.GetMemory(key_, context_.clock.Now()).entry;
  if (!entry) return;
  const auto kept =
      context_.tuning->AnswerOf({entry->body()}, entry->info().ttl);
  if (!kept.has_value() || !kept->SameAnswer(answer_)) return;
  paths_ = kept->answer == answer.answer
               ? "meta.ttl"
               : PathsDiffering({entry->body()}, view.body);
}

void Questions::OnAnswer(transport::UnaryCall& call) {
  if (call.began()) {
    context_.instruments.RecordUpstream(call.status().error_code(),
                                        call.latency());
    context_.instruments.RecordQuestion(call.latency());
  }
  const transport::Message& message = call.response();
  if (!call.status().ok() || !message.valid() || message.compressed() ||
      !call.doubt().empty()) {
    return Report(Answered::kNone);
  }
  // To compare a large answer takes as long as many keys.
  if (worker_->Offload(this)) OnWorked();
}

void Questions::Report(Answered answered) {
  const absl::Time now = context_.clock.Now();
  if (answered == Answered::kNone) {
    state_->evidence->OnFailure(context_.id, now);
  }
  // Under other settings, or after a purge, an answer proves nothing.
  if (!Holds()) {
    state_->evidence->Abort(&*running_);
  } else {
    const Finding found = state_->evidence->Report(&*running_, answered, now);
    finding_.reads |= found.reads;
    finding_.varies |= found.varies;
    finding_.revoked_hits += found.revoked_hits;
  }
  context_.flights.ReturnSlot();
  has_slot_ = false;
  call_ = nullptr;  // self_ keeps this object
  Next();
}

void Questions::End() {
  if (has_slot_) context_.flights.ReturnSlot();
  has_slot_ = false;
  state_->evidence->Abort(&*running_);
  context_.tuning_log.Found(finding_, running_->proof.reads(), running_->seen,
                            paths_, context_.clock.Now());
  self_ = nullptr;
}

}  // namespace fncache::proxy::serving
