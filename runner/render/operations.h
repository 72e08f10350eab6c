// SPDX-License-Identifier: Apache-2.0
// Crossplane's operations, which fncache refuses: it renders composite
// resources only.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_OPERATIONS_H_
#define FNCACHE_RUNNER_RENDER_OPERATIONS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "text/json.h"

namespace fncache::runner::render {

// The error for `what`, such as `cron operation`.
absl::Status OperationRefused(absl::string_view what);

// OperationRefused if the object is an Operation, a CronOperation or a
// WatchOperation of ops.crossplane.io, of any version.
absl::Status CheckNoOperation(const text::Json& object);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_OPERATIONS_H_
