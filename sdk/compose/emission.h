// SPDX-License-Identifier: Apache-2.0
// From what a function set to its response: which resources are emitted, held
// or kept, readiness, reports, requirements and the TTL.
#ifndef FNCACHE_SDK_COMPOSE_EMISSION_H_
#define FNCACHE_SDK_COMPOSE_EMISSION_H_

#include "sdk/compose/call.h"
#include "sdk/compose/run.h"

namespace fncache::sdk {

// Completes the call's response, and counts what is held and kept. The function
// has returned. The request's desired state and context move to the response.
void Emit(Call* call, CallResult* result);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_COMPOSE_EMISSION_H_
