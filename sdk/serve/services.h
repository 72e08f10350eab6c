// SPDX-License-Identifier: Apache-2.0
// The services beside functions: grpc.health.v1 and grpc.reflection (v1 and
// v1alpha). gRPC's library has both, but its health service is a switch of the
// whole process, and its reflection needs compiled message classes.
#ifndef FNCACHE_SDK_SERVE_SERVICES_H_
#define FNCACHE_SDK_SERVE_SERVICES_H_

#include "sdk/serve/core.h"
#include "sdk/serve/streams.h"

namespace fncache::sdk::serve {

// A reactor for the call's method, also for one of another service.
Reactor* NewServiceCall(Core* core, Stream* stream);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_SERVICES_H_
