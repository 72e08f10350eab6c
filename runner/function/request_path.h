// SPDX-License-Identifier: Apache-2.0
// Looks up a path of field names, map keys and list indices in a call's
// request, such as `observed.composite.resource.spec.region`. The call then
// knows that path as read, and no other.
//
// Thread-safe; a Context belongs to one thread.
#ifndef FNCACHE_RUNNER_FUNCTION_REQUEST_PATH_H_
#define FNCACHE_RUNNER_FUNCTION_REQUEST_PATH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "fncache/function/context.h"

namespace fncache::runner::function {

namespace fn = ::fncache::function;

// The value at `path`; nullopt if the request has none there (a null counts as
// none). InvalidArgument if no request could have one: a field that the
// protocol does not know, or a path that ends above any value.
absl::StatusOr<absl::optional<fn::Value>> LookUp(
    fn::Context& ctx, const std::vector<std::string>& path);

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_REQUEST_PATH_H_
