// SPDX-License-Identifier: Apache-2.0
// The function's template: an input of kind Template, rendered against a
// request into desired resources, status, context, conditions, results and
// requirements. docs/function.md is its reference.
//
// Thread-safe; a Context belongs to one thread.
#ifndef FNCACHE_RUNNER_FUNCTION_TEMPLATE_H_
#define FNCACHE_RUNNER_FUNCTION_TEMPLATE_H_

#include "absl/status/status.h"
#include "fncache/function/context.h"

namespace fncache::runner::function {

// The most resources that one input may render.
inline constexpr int kMaxRenderedResources = 1000;

// Renders the input of `ctx`. If it requires resources that the request does
// not have, sets the requirements and renders nothing else: the runner will
// call again. On error, whose message is for the user, the call must become
// FATAL, or the response is half rendered.
absl::Status RenderTemplate(::fncache::function::Context& ctx);

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_TEMPLATE_H_
