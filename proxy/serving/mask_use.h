// SPDX-License-Identifier: Apache-2.0
// Which of a function's masks have been of use so far.
//
// Pure function of what the masks noted; thread-safe.
#ifndef FNCACHE_PROXY_SERVING_MASK_USE_H_
#define FNCACHE_PROXY_SERVING_MASK_USE_H_

#include <vector>

#include "cache/key/mask.h"
#include "proxy/telemetry/function_facts.h"

namespace fncache::proxy::serving {

// Each of the masks, in the order of MaskSet::canonical; named sets come first
// and stand for all of their paths, since few functions are sent all that a set
// is of.
std::vector<telemetry::MaskUse> UseOfMasks(const cache::key::MaskSet& masks);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_MASK_USE_H_
