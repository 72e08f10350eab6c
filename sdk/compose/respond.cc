// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sdk/compose/call.h"
#include "sdk/compose/emission.h"
#include "sdk/compose/hint.h"
#include "sdk/compose/run.h"
#include "text/deterministic_bytes.h"

namespace fncache::sdk {
namespace {

void CallFunction(const function::Function& function, Call* call) {
  function::Context context(call);
  try {
    function(context);
  } catch (const std::exception& thrown) {
    call->Fatal(absl::StrCat("the function threw: ", thrown.what()));
  } catch (const std::string& thrown) {
    call->Fatal(absl::StrCat("the function threw: ", thrown));
  } catch (const char* thrown) {
    call->Fatal(
        absl::StrCat("the function threw: ", thrown == nullptr ? "" : thrown));
  } catch (...) {
    call->Fatal("the function threw: something that is no std::exception");
  }
}

std::string HintOf(Call* call) {
  std::set<std::string> reads;
  if (call->raw) {
    reads = {"extra_resources", "observed", "required_resources"};
  } else {
    for (Document* const document : call->documents) {
      // A broken document counts as read as a whole.
      if (!document->error.empty()) ReadWhole(document->root());
      AddReads(document, &reads);
    }
  }
  return Hint(reads, call->options.pure && !call->impure);
}

}  // namespace

CallResult Run(const function::Function& function,
               const function::Options& options, std::string request,
               const CallInfo& info) {
  CallResult result;
  Call call(options, info);
  if (!call.Parse(request)) {
    result.status = absl::InternalError("the request is no RunFunctionRequest");
    return result;
  }
  const WithReporter reporter(&call);
  CallFunction(function, &call);
  result.status = call.failed;
  if (!result.status.ok()) return result;
  Emit(&call, &result);
  const std::string tag = call.response->meta().tag();
  for (const std::string& raw : call.raw_responses) {
    if (call.fatal()) break;
    lazy::RunFunctionResponse more;
    more.ParseFromString(raw);
    call.response->MergeFrom(more);
    call.response->mutable_meta()->set_tag(tag);
  }
  result.response = text::DeterministicBytes(*call.response);
  if (info.depends) result.depends = HintOf(&call);
  return result;
}

}  // namespace fncache::sdk
