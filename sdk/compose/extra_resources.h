// SPDX-License-Identifier: Apache-2.0
// The deprecated field `extra_resources`, which runners before 2.2 use.
#ifndef FNCACHE_SDK_COMPOSE_EXTRA_RESOURCES_H_
#define FNCACHE_SDK_COMPOSE_EXTRA_RESOURCES_H_

#include "proto/function_lazy.pb.h"

namespace fncache::sdk {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
inline const auto& ExtraResources(const lazy::RunFunctionRequest& request) {
  return request.extra_resources();
}
inline auto* MutableExtraResources(lazy::Requirements* requirements) {
  return requirements->mutable_extra_resources();
}
#pragma GCC diagnostic pop

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_COMPOSE_EXTRA_RESOURCES_H_
