// SPDX-License-Identifier: Apache-2.0
#include "runner/text/typed_text.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "runner/text/yaml_scalar.h"

namespace fncache::runner::text {
namespace {

using google::protobuf::Value;

// Up to here every whole number is a double. (A Struct cannot tell 1 from 1.0.)
constexpr double kWhole = 9007199254740992.0;  // 2^53

// A number as YAML writes it, except that a large whole number has no exponent.
std::string NumberText(double number) {
  if (std::trunc(number) == number && std::abs(number) <= kWhole) {
    return absl::StrCat(static_cast<int64_t>(number));
  }
  return YamlNumber(number);
}

}  // namespace

absl::optional<std::string> TypedText(const Value& value) {
  switch (value.kind_case()) {
    case Value::kStringValue:
      return value.string_value();
    case Value::kNumberValue:
      return NumberText(value.number_value());
    case Value::kBoolValue:
      return std::string(value.bool_value() ? "true" : "false");
    case Value::kNullValue:
    case Value::KIND_NOT_SET:
      return std::string();
    default:
      return absl::nullopt;
  }
}

absl::optional<std::string> TypedText(const Json& value) {
  if (const auto* text = value.get_ptr<const std::string*>()) return *text;
  if (value.is_null()) return std::string();
  if (const auto* flag = value.get_ptr<const bool*>()) {
    return std::string(*flag ? "true" : "false");
  }
  if (const auto* number = value.get_ptr<const uint64_t*>()) {
    return absl::StrCat(*number);
  }
  if (const auto* number = value.get_ptr<const int64_t*>()) {
    return absl::StrCat(*number);
  }
  if (const auto* number = value.get_ptr<const double*>()) {
    return NumberText(*number);
  }
  return absl::nullopt;
}

std::string FindTypedText(const Json& object, JsonPath path) {
  const Json* const value = Find(object, path);
  return value == nullptr ? "" : TypedText(*value).value_or("");
}

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

}  // namespace fncache::runner::text
