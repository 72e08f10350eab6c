// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/handler.h"

#include <utility>

#include "proxy/serving/call.h"
#include "proxy/serving/stream.h"

namespace fncache::proxy::serving {

void FunctionHandler::StartCall(transport::IncomingCallPtr call) {
  if (call->method() == Method::kOther) {
    ForwardStream(std::move(call), &context_.upstream, context_.instruments);
  } else {
    StartRunFunction(std::move(call), &context_);
  }
}

void FunctionHandler::OnRefused(transport::Refusal why,
                                const grpc::Status& status) {
  context_.instruments.RequestRefused(static_cast<size_t>(why));
  context_.log.Refused(why, status);
}

void FunctionHandler::OnAnswered(const grpc::Status& status) {
  context_.instruments.Answered(status.error_code());
}

void FunctionHandler::OnPaused() { context_.instruments.ConnectionPaused(); }

cache::key::Key FunctionHandler::KeyOfHit(Method method,
                                          absl::string_view request,
                                          const cache::key::Key& plain) {
  const FunctionStatePtr state = State();
  if (!state->options.varies()) return plain;
  const auto varied = VariedCall::Make(&context_.hints, state, method, request);
  if (varied == nullptr) return plain;
  varied->MakeKeys(request);
  return varied->KeyOfHit(plain, context_.clock.Now());
}

absl::optional<telemetry::ShadowReport> FunctionHandler::Shadow() const {
  const FunctionStatePtr state = context_.states.Newest();
  if (state->shadow == nullptr) return absl::nullopt;
  return state->shadow->Report();
}

telemetry::TuneFigures FunctionHandler::TuneFigures() const {
  telemetry::TuneFigures figures;
  if (context_.tuning == nullptr) return figures;
  const Evidence::FunctionFigures now =
      context_.tuning->FiguresOf(context_.id, context_.clock.Now());
  figures.hits = now.hits;
  figures.revoked_hits = now.revoked_hits;
  figures.questions = now.questions;
  figures.proofs = now.proofs;
  figures.keys_repeating = now.keys_repeating;
  figures.keys_proven = now.keys_proven;
  figures.steps_read = now.steps_read;
  figures.steps_vary = now.steps_vary;
  figures.budget = now.budget;
  return figures;
}

telemetry::TuneReport FunctionHandler::Tune() const {
  telemetry::TuneReport report;
  report.function = context_.name;
  const FunctionStatePtr state = context_.states.Newest();
  report.state = state->tunes() ? "on" : state->options.tune ? "idle" : "off";
  report.figures = TuneFigures();
  const telemetry::FunctionCounts counts = context_.instruments.Read();
  report.saved = counts.tune_saved;
  report.question_time = counts.tune_question_time;
  if (context_.tuning == nullptr) return report;
  for (const Evidence::StepFigures& step :
       context_.tuning->evidence.StepsOf(context_.id)) {
    report.steps.push_back(
        {step.seen.input_kind, step.seen.input_digest, step.seen.api_version,
         step.seen.kind, ReadsName(step.reads), step.read_since,
         step.varies_since, step.no_questions_until, step.seen.composite});
  }
  return report;
}

void FunctionHandler::Replace(const settings::FunctionOptions& options) {
  // While it was off, neither answers nor purges ended entries by hint.
  if (options.varies() && !State()->options.varies()) {
    context_.hints.Drop(context_.clock.Now());
  }
  context_.states.Replace(options);
  // From now on no call stores secrets, and stored ones are not served.
  if (context_.misses != nullptr &&
      options.policy.store_secrets == cache::StoreSecrets::kNone) {
    context_.misses->OnSecretsErased(context_.name);
  }
  context_.flights.SetMaxReleased(options.policy.max_released);
}

}  // namespace fncache::proxy::serving
