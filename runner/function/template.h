// SPDX-License-Identifier: Apache-2.0
// The function's template: an input of kind Template, rendered against a
// request into desired resources, status, context, conditions, results and
// requirements. docs/function.md is its reference.
//
// Pure function, thread-safe.
#ifndef FNCACHE_RUNNER_FUNCTION_TEMPLATE_H_
#define FNCACHE_RUNNER_FUNCTION_TEMPLATE_H_

#include "absl/status/status.h"
#include "proto/function_v1_fwd.h"

namespace fncache::runner::function {

// The most resources that one input may render.
inline constexpr int kMaxRenderedResources = 1000;

// Renders `request.input` on top of `response`, which has the state of earlier
// steps. If the input requires resources that the request does not have, sets
// the requirements and renders nothing else: the runner will call again. On
// error, whose message is for the user, `response` is unspecified.
absl::Status RenderTemplate(
    const apiextensions::fn::proto::v1::RunFunctionRequest& request,
    apiextensions::fn::proto::v1::RunFunctionResponse* response);

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_TEMPLATE_H_
