// SPDX-License-Identifier: Apache-2.0
// The services beside functions: grpc.health.v1 and grpc.reflection (v1 and
// v1alpha). gRPC's library has both, but its health service is a switch of the
// whole process, and its reflection needs compiled message classes.
#ifndef FNCACHE_SDK_SERVE_SERVICES_H_
#define FNCACHE_SDK_SERVE_SERVICES_H_

#include "grpcpp/generic/async_generic_service.h"
#include "sdk/serve/core.h"

namespace fncache::sdk::serve {

// A reactor for the context's method, which owns itself; null if the method is
// none of these services.
grpc::ServerGenericBidiReactor* NewServiceCall(
    Core* core, grpc::GenericCallbackServerContext* context);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_SERVICES_H_
