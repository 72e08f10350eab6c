// SPDX-License-Identifier: Apache-2.0
#include "common/method.h"

namespace fncache {

Method MethodOf(absl::string_view path) {
  if (path == kRunFunctionV1) return Method::kV1;
  if (path == kRunFunctionV1beta1) return Method::kV1beta1;
  return Method::kOther;
}

const char* MethodName(Method method) {
  switch (method) {
    case Method::kV1:
      return "v1";
    case Method::kV1beta1:
      return "v1beta1";
    case Method::kOther:
      break;
  }
  return "other";
}

}  // namespace fncache
