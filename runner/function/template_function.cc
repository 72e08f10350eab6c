// SPDX-License-Identifier: Apache-2.0
#include "runner/function/template_function.h"

#include <utility>

#include "absl/status/status.h"
#include "runner/function/template.h"
#include "sdk/compose/call.h"

namespace fncache::runner::function {

::fncache::function::Function TemplateFunction(TemplateOptions options) {
  return [options = std::move(options)](::fncache::function::Context& ctx) {
    sdk::Call* const call = ctx.call();
    if (options.ttl.has_value()) {
      ctx.ttl(*options.ttl);
    } else {
      call->no_ttl = true;
    }
    absl::Status status;
    if (options.fatal.has_value()) {
      status = absl::InvalidArgumentError(*options.fatal);
    } else if (ctx.input().ref().get()->document->present()) {
      status = RenderTemplate(ctx);
    }
    // A document that cannot be read is FATAL already.
    if (status.ok() || call->fatal()) return;
    // Not ctx.fatal, whose results have a target.
    sdk::lazy::Result* const result = call->response->add_results();
    result->set_severity(sdk::lazy::SEVERITY_FATAL);
    result->set_message(std::string(status.message()));
    call->author_fatal = true;
  };
}

::fncache::function::Options FunctionOptions() {
  ::fncache::function::Options options;
  options.ttl_on_fatal = true;
  return options;
}

}  // namespace fncache::runner::function
