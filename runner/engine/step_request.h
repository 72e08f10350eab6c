// SPDX-License-Identifier: Apache-2.0
// Fills in what requests get from a Composition's step: input and credentials.
//
// Pure function, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_STEP_REQUEST_H_
#define FNCACHE_RUNNER_ENGINE_STEP_REQUEST_H_

#include "absl/status/status.h"
#include "proto/function_v1_fwd.h"
#include "runner/engine/composition.h"
#include "runner/engine/object_store.h"

namespace fncache::runner::engine {

// Sets `input` and `credentials` of `request` to the step's, whatever they
// were. Credentials come from Secrets in `objects`, other sources give none. An
// error, in the reference runner's words, where the input is no object
// (InvalidArgument), a Secret is missing (NotFound) or its data cannot be
// decoded (InvalidArgument); `request` is unspecified then.
absl::Status FillStep(
    const PipelineStep& step, const ObjectStore& objects,
    apiextensions::fn::proto::v1::RunFunctionRequest* request);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_STEP_REQUEST_H_
