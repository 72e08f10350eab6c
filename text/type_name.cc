// SPDX-License-Identifier: Apache-2.0
#include "text/type_name.h"

#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"

namespace fncache::text {

using google::protobuf::Value;

absl::string_view TypeName(const Value& value) {
  switch (value.kind_case()) {
    case Value::kStringValue:
      return "text";
    case Value::kNumberValue:
      return "a number";
    case Value::kBoolValue:
      return "a boolean";
    case Value::kStructValue:
      return "a map";
    case Value::kListValue:
      return "a list";
    default:
      return "null";
  }
}

absl::string_view TypeName(const Json& value) {
  if (value.is_string()) return "text";
  if (value.is_number()) return "a number";
  if (value.is_boolean()) return "a boolean";
  if (value.is_object()) return "a map";
  if (value.is_array()) return "a list";
  return "null";
}

}  // namespace fncache::text
