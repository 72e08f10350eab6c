// Method: which of the function protocol's methods a call is for.
#ifndef FNCACHE_COMMON_METHOD_H_
#define FNCACHE_COMMON_METHOD_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace fncache {

// RunFunction of either version, or anything else (forwarded as a stream).
enum class Method { kV1, kV1beta1, kOther };
inline constexpr size_t kMethods = 3;

// Of a path as on the wire, /package.Service/Method.
Method MethodOf(absl::string_view path);

// "v1", "v1beta1", "other": the label in metrics.
const char* MethodName(Method method);

}  // namespace fncache

#endif  // FNCACHE_COMMON_METHOD_H_
