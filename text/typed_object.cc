// SPDX-License-Identifier: Apache-2.0
#include "text/typed_object.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "nlohmann/json.hpp"
#include "text/base64.h"
#include "text/go_types.h"
#include "text/kubernetes_yaml.h"
#include "text/rfc3339.h"
#include "text/yaml_scalar.h"

namespace fncache::text {
namespace {

using Kind = GoType::Kind;

const GoType& TypeOf(ObjectType type) {
  switch (type) {
    case ObjectType::kComposition:
      return GoStruct("v1.Composition");
    case ObjectType::kFunction:
      return GoStruct("v1.Function");
    case ObjectType::kDefinition:
      return GoStruct("v1.CompositeResourceDefinition");
    case ObjectType::kSecret:
      break;
  }
  return GoStruct("v1.Secret");
}

// --- text of what is none (YAML) --------------------------------------------

// Go's text of a number or a boolean, of a float that of its 32 bits.
absl::optional<std::string> GoText(const Json& value) {
  if (const auto* flag = value.get_ptr<const bool*>()) {
    return std::string(*flag ? "true" : "false");
  }
  if (const auto* whole = value.get_ptr<const uint64_t*>()) {
    return absl::StrCat(*whole);
  }
  if (const auto* whole = value.get_ptr<const int64_t*>()) {
    return absl::StrCat(*whole);
  }
  if (const auto* number = value.get_ptr<const double*>()) {
    const auto single = static_cast<float>(*number);
    if (std::isnan(single)) return std::string("NaN");
    if (std::isinf(single)) return std::string(single > 0 ? "+Inf" : "-Inf");
    return YamlNumber(single);
  }
  return absl::nullopt;
}

// Makes texts of values that are to become texts. Null as `type` is no target.
// (Below an embedded struct the reference aims at that struct, not at its
// field.)
void MakeTexts(const GoType* type, Json* value) {
  if (type == nullptr || type->kind == Kind::kAny ||
      type->kind == Kind::kTime) {
    return;
  }
  if (value->is_object()) {
    for (auto it = value->begin(); it != value->end(); ++it) {
      const GoType* target = nullptr;
      if (type->kind == Kind::kMap) {
        target = type->element;
      } else if (type->kind == Kind::kStruct) {
        const GoType::Field* const field = type->Find(it.key());
        if (field != nullptr) {
          target = field->embedded != nullptr ? field->embedded : field->type;
        }
      }
      MakeTexts(target, &it.value());
    }
  } else if (value->is_array()) {
    if (type->kind != Kind::kList) return;
    for (Json& element : *value) MakeTexts(type->element, &element);
  } else if (type->kind == Kind::kText) {
    if (auto text = GoText(*value); text.has_value()) *value = *std::move(text);
  }
}

// The name of a float that JSON lacks, "" if there is none.
absl::string_view Unsupported(const Json& value) {
  if (value.is_structured()) {
    for (const Json& element : value) {
      const absl::string_view name = Unsupported(element);
      if (!name.empty()) return name;
    }
  } else if (const auto* number = value.get_ptr<const double*>()) {
    if (std::isnan(*number)) return "NaN";
    if (std::isinf(*number)) return *number > 0 ? "+Inf" : "-Inf";
  }
  return "";
}

// --- decoding ---------------------------------------------------------------

// A number as Go's JSON has it.
std::string NumberText(const Json& value) {
  const auto* const number = value.get_ptr<const double*>();
  if (number == nullptr) return value.dump();
  const double size = std::abs(*number);
  const bool plain = size == 0 || (size >= 1e-6 && size < 1e21);
  char text[64];
  const auto printed = std::to_chars(
      text, text + sizeof text, *number,
      plain ? std::chars_format::fixed : std::chars_format::scientific);
  // An exponent has no leading zero there.
  return absl::StrReplaceAll(absl::string_view(text, printed.ptr - text),
                             {{"e-0", "e-"}});
}

class Decoder {
 public:
  // `keep_empty`: fields that Go leaves out when it writes them stay.
  explicit Decoder(bool keep_empty) : keep_empty_(keep_empty) {}

  // The value as Go would write it. False if the error ends all.
  bool Decode(const GoType& type, const Json& value, Json* out) {
    switch (type.kind) {
      case Kind::kText:
        *out = "";
        if (value.is_string()) {
          *out = value;
        } else if (!value.is_null()) {
          Mistyped(WordFor(value), type.name);
        }
        return true;
      case Kind::kInt32:
      case Kind::kInt64:
        *out = 0;
        DecodeWhole(type, value, out);
        return true;
      case Kind::kBool:
        *out = false;
        if (value.is_boolean()) {
          *out = value;
        } else if (!value.is_null()) {
          Mistyped(WordFor(value), type.name);
        }
        return true;
      case Kind::kBytes:
        *out = nullptr;
        DecodeBytes(type, value, out);
        return true;
      case Kind::kTime:
        *out = nullptr;
        return DecodeTime(value, out);
      case Kind::kAny:
        *out = value;
        return true;
      case Kind::kList:
        return DecodeList(type, value, out);
      case Kind::kMap:
        return DecodeMap(type, value, out);
      case Kind::kStruct:
        return DecodeStruct(type, value, out);
    }
    return true;
  }

  const std::string& problem() const { return problem_; }

 private:
  static std::string WordFor(const Json& value) {
    if (value.is_string()) return "string";
    if (value.is_boolean()) return "bool";
    if (value.is_object()) return "object";
    return value.is_array() ? "array" : "number";
  }

  // Keeps the first mistake. The others are not looked for in vain: one that
  // ends all comes before it.
  void Mistyped(absl::string_view word, absl::string_view type) {
    if (problem_.empty()) problem_ = MistypedText(word, type);
  }

  std::string MistypedText(absl::string_view word,
                           absl::string_view type) const {
    const std::string into = path_.empty()
                                 ? "value"
                                 : absl::StrCat("struct field ", owner_, ".",
                                                absl::StrJoin(path_, "."));
    return absl::StrCat("json: cannot unmarshal ", word, " into Go ", into,
                        " of type ", type);
  }

  void DecodeWhole(const GoType& type, const Json& value, Json* out) {
    if (value.is_null()) return;
    if (!value.is_number()) return Mistyped(WordFor(value), type.name);
    const bool small = type.kind == Kind::kInt32;
    const double most = small ? 2147483647.0 : 9223372036854775807.0;
    bool fits = false;
    if (const auto* number = value.get_ptr<const double*>()) {
      // 2^63 itself is the double next to the largest whole number.
      fits = std::trunc(*number) == *number && *number >= -most - 1 &&
             (small ? *number <= most : *number < most);
      if (fits) *out = static_cast<int64_t>(*number);
    } else if (value.is_number_unsigned()) {
      fits = static_cast<double>(*value.get_ptr<const uint64_t*>()) <= most &&
             *value.get_ptr<const uint64_t*>() <=
                 static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      if (fits) *out = value;
    } else {
      const int64_t whole = *value.get_ptr<const int64_t*>();
      fits = !small || (whole >= std::numeric_limits<int32_t>::min() &&
                        whole <= std::numeric_limits<int32_t>::max());
      if (fits) *out = value;
    }
    if (!fits) {
      Mistyped(absl::StrCat("number ", NumberText(value)), type.name);
    }
  }

  void DecodeBytes(const GoType& type, const Json& value, Json* out) {
    if (value.is_null()) return;
    if (value.is_array()) return DecodeOctets(value, out);
    if (!value.is_string()) return Mistyped(WordFor(value), type.name);
    const auto bytes = DecodeBase64(*value.get_ptr<const std::string*>());
    if (bytes.ok()) {
      *out = absl::Base64Escape(*bytes);
    } else if (problem_.empty()) {
      problem_ = std::string(bytes.status().message());
    }
  }

  // Go takes a list of numbers for bytes as well.
  void DecodeOctets(const Json& value, Json* out) {
    std::string bytes;
    for (const Json& element : value) {
      const auto* const octet = element.get_ptr<const int64_t*>();
      if (octet != nullptr && *octet >= 0 && *octet <= 255) {
        bytes.push_back(static_cast<char>(*octet));
      } else if (element.is_null()) {
        bytes.push_back('\0');
      } else {
        Mistyped(element.is_number()
                     ? absl::StrCat("number ", NumberText(element))
                     : WordFor(element),
                 "uint8");
      }
    }
    *out = absl::Base64Escape(bytes);
  }

  bool DecodeTime(const Json& value, Json* out) {
    if (value.is_null()) return true;
    const auto* const text = value.get_ptr<const std::string*>();
    if (text == nullptr) {
      problem_ = MistypedText(WordFor(value), "string");
      return false;
    }
    const auto time = ParseRfc3339(*text);
    if (!time.has_value()) {
      problem_ = Rfc3339Problem(*text);
      return false;
    }
    *out = FormatRfc3339(*time);
    return true;
  }

  bool DecodeList(const GoType& type, const Json& value, Json* out) {
    *out = nullptr;
    if (value.is_null()) return true;
    if (!value.is_array()) {
      Mistyped(WordFor(value), type.name);
      return true;
    }
    *out = Json::array();
    for (const Json& element : value) {
      out->push_back(nullptr);
      if (!Decode(*type.element, element, &out->back())) return false;
    }
    return true;
  }

  bool DecodeMap(const GoType& type, const Json& value, Json* out) {
    *out = nullptr;
    if (value.is_null()) return true;
    if (!value.is_object()) {
      Mistyped(WordFor(value), type.name);
      return true;
    }
    *out = Json::object();
    for (auto it = value.begin(); it != value.end(); ++it) {
      if (!Decode(*type.element, it.value(), &(*out)[it.key()])) return false;
    }
    return true;
  }

  bool DecodeStruct(const GoType& type, const Json& value, Json* out) {
    *out = Json::object();
    if (value.is_object()) {
      for (auto it = value.begin(); it != value.end(); ++it) {
        const GoType::Field* const field = type.Find(it.key());
        if (field == nullptr) continue;
        // Null leaves a field as it is, and a pointer's is none.
        if (it.value().is_null()) continue;
        const std::vector<std::string> path = path_;
        const std::string owner = owner_;
        owner_ = std::string(type.ShortName());
        if (field->embedded != nullptr) {
          path_.emplace_back(field->embedded->ShortName());
        }
        path_.push_back(field->name);
        if (!Decode(*field->type, it.value(), &(*out)[field->name])) {
          return false;
        }
        path_ = path;
        owner_ = owner;
      }
    } else if (!value.is_null()) {
      Mistyped(WordFor(value), type.name);
    }
    Complete(type, out);
    return true;
  }

  // Adds what Go writes though it was not read, and leaves out what it leaves
  // out.
  void Complete(const GoType& type, Json* out) {
    for (const GoType::Field& field : type.fields) {
      const auto it = out->find(field.name);
      if (it == out->end()) {
        if (field.pointer) continue;
        if (field.omit_empty && !IsStruct(*field.type)) continue;
        Decode(*field.type, nullptr, &(*out)[field.name]);
      } else if (!keep_empty_ && field.omit_empty && !field.pointer &&
                 !IsStruct(*field.type) && IsEmpty(*it)) {
        out->erase(it);
      }
    }
  }

  // Go leaves out no struct, and keeps values of any form in one.
  static bool IsStruct(const GoType& type) {
    return type.kind == Kind::kStruct || type.kind == Kind::kAny;
  }

  static bool IsEmpty(const Json& value) {
    if (value.is_null()) return true;
    if (const auto* text = value.get_ptr<const std::string*>()) {
      return text->empty();
    }
    if (const auto* flag = value.get_ptr<const bool*>()) return !*flag;
    return value.is_structured() ? value.empty()
                                 : value.is_number() && value == 0;
  }

  const bool keep_empty_;
  std::string problem_;
  std::string owner_;  // the struct whose field is read
  std::vector<std::string> path_;
};

// --- conversion -------------------------------------------------------------

// The kind of Go's that a value has in an unstructured object.
absl::string_view GoKind(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "bool";
  if (value.is_object()) return "map";
  return value.is_array() ? "slice" : "float64";
}

std::string WholeProblem(absl::string_view type, const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_number()) return absl::StrCat("unrecognized type: ", type);
  const double number = value.get<double>();
  return std::trunc(number) == number
             ? ""
             : absl::StrCat("cannot convert float64 to ", type);
}

// The obstacle to the conversion of a value; "" if there is none.
std::string ConversionProblem(const GoType& type, const Json& value) {
  if (value.is_null() || type.kind == Kind::kAny) return "";
  const auto restore = [&value](absl::string_view what) {
    return absl::StrCat("cannot restore ", what, GoKind(value));
  };
  switch (type.kind) {
    case Kind::kText:
      return value.is_string() ? "" : "unrecognized type: string";
    case Kind::kBool:
      return value.is_boolean() ? "" : "unrecognized type: bool";
    case Kind::kInt32:
    case Kind::kInt64:
      return WholeProblem(type.name, value);
    case Kind::kBytes: {
      if (value.is_array()) {
        for (const Json& octet : value) {
          std::string problem = WholeProblem("uint8", octet);
          if (!problem.empty()) return problem;
        }
        return "";
      }
      const auto* const text = value.get_ptr<const std::string*>();
      if (text == nullptr) return restore("slice from ");
      const auto bytes = DecodeBase64(*text);
      return bytes.ok() ? ""
                        : absl::StrCat("error decoding from json: ",
                                       bytes.status().message());
    }
    case Kind::kTime: {
      Json ignored;
      Decoder decoder(/*keep_empty=*/true);
      decoder.Decode(type, value, &ignored);
      return decoder.problem();
    }
    case Kind::kList:
      if (!value.is_array()) return restore("slice from ");
      for (const Json& element : value) {
        std::string problem = ConversionProblem(*type.element, element);
        if (!problem.empty()) return problem;
      }
      return "";
    case Kind::kMap:
      if (!value.is_object()) return restore("map from ");
      for (const Json& element : value) {
        std::string problem = ConversionProblem(*type.element, element);
        if (!problem.empty()) return problem;
      }
      return "";
    case Kind::kStruct:
      if (!value.is_object()) return restore("struct from: ");
      for (const GoType::Field& field : type.fields) {
        const auto it = value.find(field.name);
        if (it == value.end()) continue;
        std::string problem = ConversionProblem(*field.type, *it);
        if (!problem.empty()) return problem;
      }
      return "";
    case Kind::kAny:
      break;
  }
  return "";
}

absl::StatusOr<Json> ReadTyped(ObjectType type, const Json& values,
                               bool keep_empty) {
  Decoder decoder(keep_empty);
  Json object;
  decoder.Decode(TypeOf(type), values, &object);
  if (!decoder.problem().empty()) {
    return absl::InvalidArgumentError(decoder.problem());
  }
  absl::Status made = MakeUnstructured(&object);
  if (!made.ok()) return made;
  return object;
}

}  // namespace

absl::Status CheckUnstructured(ObjectType type, const Json& object) {
  const std::string problem = ConversionProblem(TypeOf(type), object);
  return problem.empty() ? absl::OkStatus()
                         : absl::InvalidArgumentError(problem);
}

absl::StatusOr<Json> ReadTypedYaml(ObjectType type, Json values) {
  MakeTexts(&TypeOf(type), &values);
  const absl::string_view unsupported = Unsupported(values);
  if (!unsupported.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("error converting YAML to JSON: json: unsupported value: ",
                     unsupported));
  }
  absl::StatusOr<Json> object = ReadTyped(type, values, /*keep_empty=*/false);
  if (object.ok()) return object;
  return absl::InvalidArgumentError(
      absl::StrCat("error unmarshaling JSON: while decoding JSON: ",
                   object.status().message()));
}

absl::StatusOr<Json> ReadTypedJson(ObjectType type, const Json& values) {
  return ReadTyped(type, values, /*keep_empty=*/true);
}

}  // namespace fncache::text
