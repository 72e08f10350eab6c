// SPDX-License-Identifier: Apache-2.0
#include "fncache/function/raw.h"

#include <string>

#include "sdk/compose/call.h"
#include "text/deterministic_bytes.h"

namespace fncache::function {

std::string_view RawRequest(Context& ctx) {
  sdk::Call* const call = ctx.call();
  call->raw = true;
  if (call->raw_request.empty()) {
    sdk::lazy::RunFunctionRequest request = *call->request;
    if (request.has_meta()) request.mutable_meta()->clear_tag();
    call->raw_request = fncache::text::DeterministicBytes(request);
  }
  return call->raw_request;
}

void MergeRawResponse(Context& ctx, std::string_view response) {
  sdk::Call* const call = ctx.call();
  call->raw = true;
  sdk::lazy::RunFunctionResponse parsed;
  if (!parsed.ParseFromArray(response.data(),
                             static_cast<int>(response.size()))) {
    call->Fatal("the raw response is no RunFunctionResponse");
    return;
  }
  for (const sdk::lazy::Result& result : parsed.results()) {
    call->author_fatal |= result.severity() == sdk::lazy::SEVERITY_FATAL;
  }
  // A FATAL response has these as well, in the order of calls.
  sdk::lazy::RunFunctionResponse reports;
  reports.mutable_results()->Swap(parsed.mutable_results());
  reports.mutable_conditions()->Swap(parsed.mutable_conditions());
  if (parsed.has_requirements()) {
    reports.mutable_requirements()->Swap(parsed.mutable_requirements());
    parsed.clear_requirements();
  }
  call->response->MergeFrom(reports);
  call->raw_responses.push_back(parsed.SerializeAsString());
}

}  // namespace fncache::function
