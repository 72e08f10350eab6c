// SPDX-License-Identifier: Apache-2.0
// One RunFunction call: digest -> look-up -> hit, or flight -> upstream ->
// policy -> fill -> answer. The stages that it passes are in call.cc; who calls
// the function when many miss at once is settled in flight.h, and who asks it
// behind an answer that is past its time in refresh.h.
//
// Every call of the methods v1 and v1beta1 comes here, also those that are not
// looked up (bypass). Each is answered once, with `cache-status` in its
// headers, and counted once, also if its caller left before.
#ifndef FNCACHE_PROXY_SERVING_CALL_H_
#define FNCACHE_PROXY_SERVING_CALL_H_

#include "proxy/serving/context.h"
#include "proxy/transport/incoming_call.h"

namespace fncache::proxy::serving {

// Serves `call`, from which nothing has been read, to the end; on its worker's
// thread. `context` outlives the call.
void StartRunFunction(transport::IncomingCallPtr call, ServingContext* context);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CALL_H_
