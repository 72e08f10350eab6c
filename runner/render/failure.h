// SPDX-License-Identifier: Apache-2.0
// The words of `render` on stderr where it fails: the reference command line's
// message, and then, where a call failed, one line in plain words of our own.
//
// Functions and files decide parts of it, so all that is made here can be given
// to a terminal (Printable of common/utf8.h).
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_FAILURE_H_
#define FNCACHE_RUNNER_RENDER_FAILURE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runner/client/function_client.h"
#include "runner/render/batch.h"

namespace fncache::runner::render {

// Everything that is said about `rendered`, which failed and is not FATAL's:
//
//   crossplane: error: cannot render composite resource: ...
//                      : exit status 1
//   fncache render: step "buckets" failed: function "f" at h:1: no connection
//   in time: connection refused
//
// (the last of them on one line, and only where a call failed). The reference's
// engine is a process, and its command line reports how that ended, except
// after a FATAL result. `title` names the composite where there are several,
// else it is empty. `functions` are those that were to be called.
std::string FailureLines(const Rendered& rendered, absl::string_view title,
                         const std::vector<client::FunctionTarget>& functions);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_FAILURE_H_
