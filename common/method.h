// SPDX-License-Identifier: Apache-2.0
// Method: which of the function protocol's methods a call is for, and how those
// methods are spelled on the wire.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_METHOD_H_
#define FNCACHE_COMMON_METHOD_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace fncache {

// RunFunction of either version, or anything else.
enum class Method { kV1, kV1beta1, kOther };
inline constexpr size_t kMethods = 3;

// RunFunction's paths as on the wire, /package.Service/Method.
inline constexpr char kRunFunctionV1[] =
    "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";
inline constexpr char kRunFunctionV1beta1[] =
    "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction";

// The method that a path as on the wire names.
Method MethodOf(absl::string_view path);

// "v1", "v1beta1", "other": the label in metrics.
const char* MethodName(Method method);

}  // namespace fncache

#endif  // FNCACHE_COMMON_METHOD_H_
