// SPDX-License-Identifier: Apache-2.0
// Altered requests: what a hint does not name is altered, removed or added at
// random.
//
// Only the content of observed and required objects changes, never which of
// them there are: a mask may hide nothing else. A list keeps its length if the
// hint names something in it.
//
// Pure function, thread-safe.
#ifndef FNCACHE_RUNNER_TESTING_ALTER_H_
#define FNCACHE_RUNNER_TESTING_ALTER_H_

#include <cstdint>
#include <set>
#include <string>

#include "cache/key/mask.h"
#include "proto/function_v1.pb.h"

namespace fncache::function::testing {

// The request with changes that follow from `seed` and the paths alone.
// `altered` gets the path of each change. With `only`, no other path changes.
apiextensions::fn::proto::v1::RunFunctionRequest Altered(
    apiextensions::fn::proto::v1::RunFunctionRequest request,
    const cache::key::MaskSet& reads, uint64_t seed,
    const std::set<std::string>* only, std::set<std::string>* altered);

}  // namespace fncache::function::testing

#endif  // FNCACHE_RUNNER_TESTING_ALTER_H_
