// SPDX-License-Identifier: Apache-2.0
// Reflection: answers which services a server has and what their messages are.
//
// Source: grpc/reflection/v1/reflection.proto, whose messages are those of
// v1alpha, too. Pure function, thread-safe.
#ifndef FNCACHE_SDK_SERVE_REFLECTION_H_
#define FNCACHE_SDK_SERVE_REFLECTION_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache::sdk::serve {

// The ServerReflectionResponse for the bytes of a ServerReflectionRequest.
std::string Reflect(absl::string_view request);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_REFLECTION_H_
