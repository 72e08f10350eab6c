// SPDX-License-Identifier: Apache-2.0
// Reports which of a function's masks have matched so far.
//
// A pure function of the state of the masks; thread-safe.
#ifndef FNCACHE_PROXY_SERVING_MASK_USE_H_
#define FNCACHE_PROXY_SERVING_MASK_USE_H_

#include <vector>

#include "cache/key/mask.h"
#include "proxy/telemetry/function_facts.h"

namespace fncache::proxy::serving {

// The use of each mask, in the order of MaskSet::canonical. Named sets come
// first. A set stands for all of its paths, because few functions get all paths
// of a set.
std::vector<telemetry::MaskUse> UseOfMasks(const cache::key::MaskSet& masks);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_MASK_USE_H_
