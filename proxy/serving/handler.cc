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

absl::optional<telemetry::ShadowReport> FunctionHandler::Shadow() const {
  const FunctionStatePtr state = context_.states.Newest();
  if (state->shadow == nullptr) return absl::nullopt;
  return state->shadow->Report();
}

void FunctionHandler::Replace(const settings::FunctionOptions& options) {
  context_.states.Replace(options);
  // From now on no call stores secrets, and stored ones are not served.
  if (context_.misses != nullptr &&
      options.policy.store_secrets == cache::StoreSecrets::kNone) {
    context_.misses->OnSecretsErased(context_.name);
  }
  context_.flights.SetMaxReleased(options.policy.max_released);
}

}  // namespace fncache::proxy::serving
