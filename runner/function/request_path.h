// SPDX-License-Identifier: Apache-2.0
// Looks up a path of field names, map keys and list indices in a request, such
// as `observed.composite.resource.spec.region`.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_FUNCTION_REQUEST_PATH_H_
#define FNCACHE_RUNNER_FUNCTION_REQUEST_PATH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/function_v1_fwd.h"
#include "proto/struct_fwd.h"

namespace fncache::runner::function {

// The value at `path`; nullopt if the request has none there (a null counts as
// none). InvalidArgument if no request could have one: a field that the
// protocol does not know, or a path that ends above any value.
absl::StatusOr<absl::optional<google::protobuf::Value>> LookUp(
    const apiextensions::fn::proto::v1::RunFunctionRequest& request,
    const std::vector<std::string>& path);

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_REQUEST_PATH_H_
