// SPDX-License-Identifier: Apache-2.0
#include "text/json.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"

namespace fncache::text {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// Builds the tree as the text is read, and stops it at the first thing that is
// wrong: nlohmann's own builder has no bound on nesting.
class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(Json* root) : root_(root) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return Add(value);
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(size_t /*size*/) override { return Open(Json::object()); }
  bool start_array(size_t /*size*/) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    slot_ = &(*open_.back())[name];
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const Json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: why"
    const absl::string_view what = error.what();
    const size_t prefix = what.find("] ");
    problem_ = absl::StrCat(
        "not JSON from byte ", position, " on: ",
        prefix == absl::string_view::npos ? what : what.substr(prefix + 2));
    return false;
  }

 private:
  Json* Put(Json value) {
    if (open_.empty()) {
      *root_ = std::move(value);
      return root_;
    }
    Json* parent = open_.back();
    if (parent->is_array()) {
      parent->push_back(std::move(value));
      return &parent->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool Add(Json value) {
    Put(std::move(value));
    return true;
  }
  bool Open(Json empty) {
    if (open_.size() >= kMaxJsonDepth) {
      problem_ = absl::StrCat("nested more than ", kMaxJsonDepth, " deep");
      return false;
    }
    open_.push_back(Put(std::move(empty)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  Json* const root_;
  std::vector<Json*> open_;
  Json* slot_ = nullptr;  // of the key read last
  std::string problem_;
};

void Fill(const Json& json, Value* value);

void Fill(const Json& json, Struct* object) {
  auto* fields = object->mutable_fields();
  for (auto it = json.begin(); it != json.end(); ++it) {
    Fill(it.value(), &(*fields)[it.key()]);
  }
}

void Fill(const Json& json, Value* value) {
  switch (json.type()) {
    case Json::value_t::object:
      Fill(json, value->mutable_struct_value());
      return;
    case Json::value_t::array: {
      auto* list = value->mutable_list_value()->mutable_values();
      list->Reserve(static_cast<int>(json.size()));
      for (const Json& element : json) Fill(element, list->Add());
      return;
    }
    case Json::value_t::string:
      value->set_string_value(*json.get_ptr<const std::string*>());
      return;
    case Json::value_t::boolean:
      value->set_bool_value(*json.get_ptr<const bool*>());
      return;
    case Json::value_t::number_integer:
      value->set_number_value(
          static_cast<double>(*json.get_ptr<const int64_t*>()));
      return;
    case Json::value_t::number_unsigned:
      value->set_number_value(
          static_cast<double>(*json.get_ptr<const uint64_t*>()));
      return;
    case Json::value_t::number_float: {
      const double number = *json.get_ptr<const double*>();
      value->set_number_value(number == 0 ? 0.0 : number);  // -0.0 too
      return;
    }
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      value->set_null_value(google::protobuf::NULL_VALUE);
      return;
  }
}

// Sets `*whole` to the whole number that the shortest digits of `number` are,
// with zeros added. Returns false if they have a fraction or no 64-bit integer
// holds that number.
bool WholeNumber(double number, Json* whole) {
  constexpr double kExact = 9007199254740992.0;  // every integer below is one
  if (!std::isfinite(number) || number != std::trunc(number)) return false;
  if (number > -kExact && number < kExact) {
    *whole = static_cast<int64_t>(number);
    return true;
  }
  if (std::fabs(number) >= 1e21) return false;
  char text[32];
  // Fixed notation would write the digits that lie behind the shortest ones.
  const auto printed = std::to_chars(text, text + sizeof text, number,
                                     std::chars_format::scientific);
  std::string digits;
  int exponent = 0;
  for (const char* at = text; at != printed.ptr; ++at) {
    if (*at == 'e') {
      std::from_chars(at[1] == '+' ? at + 2 : at + 1, printed.ptr, exponent);
      break;
    }
    if (*at != '.') digits += *at;
  }
  const size_t sign = digits[0] == '-' ? 1 : 0;
  digits.resize(sign + static_cast<size_t>(exponent) + 1, '0');
  const char* begin = digits.data();
  const char* end = begin + digits.size();
  int64_t with_sign = 0;
  if (std::from_chars(begin, end, with_sign).ec == std::errc()) {
    *whole = with_sign;
    return true;
  }
  uint64_t without_sign = 0;
  if (sign == 0 &&
      std::from_chars(begin, end, without_sign).ec == std::errc()) {
    *whole = without_sign;
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  Json root;
  TreeBuilder builder(&root);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return absl::InvalidArgumentError(builder.problem());
  }
  return root;
}

absl::StatusOr<Struct> ParseJsonStruct(absl::string_view text) {
  const absl::StatusOr<Json> json = ParseJson(text);
  if (!json.ok()) return json.status();
  return ToStruct(*json);
}

Struct ToStruct(const Json& json) {
  Struct object;
  if (json.is_object()) Fill(json, &object);
  return object;
}

Value ToValue(const Json& json) {
  Value value;
  Fill(json, &value);
  return value;
}

Json FromStruct(const Struct& from) {
  Json object = Json::object();
  for (const auto& field : from.fields()) {
    object[field.first] = FromValue(field.second);
  }
  return object;
}

Json FromValue(const Value& from) {
  switch (from.kind_case()) {
    case Value::kStructValue:
      return FromStruct(from.struct_value());
    case Value::kListValue: {
      Json list = Json::array();
      list.get_ptr<Json::array_t*>()->reserve(
          static_cast<size_t>(from.list_value().values_size()));
      for (const Value& element : from.list_value().values()) {
        list.push_back(FromValue(element));
      }
      return list;
    }
    case Value::kStringValue:
      return from.string_value();
    case Value::kBoolValue:
      return from.bool_value();
    case Value::kNumberValue: {
      Json whole;
      if (WholeNumber(from.number_value(), &whole)) return whole;
      return from.number_value();
    }
    case Value::kNullValue:
    case Value::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

std::string ToJsonText(const Value& value) {
  return FromValue(value).dump(-1, ' ', /*ensure_ascii=*/false,
                               Json::error_handler_t::replace);
}

const Json* Find(const Json& json, JsonPath path) {
  const Json* at = &json;
  for (const absl::string_view name : path) {
    if (!at->is_object()) return nullptr;
    const auto field = at->find(std::string(name));
    if (field == at->end()) return nullptr;
    at = &*field;
  }
  return at;
}

const std::string& FindText(const Json& json, JsonPath path) {
  static const std::string* const kNone = new std::string;
  const Json* const value = Find(json, path);
  const auto* const text =
      value == nullptr ? nullptr : value->get_ptr<const std::string*>();
  return text == nullptr ? *kNone : *text;
}

void MergeInto(Json* into, const Json& from) {
  if (!from.is_object() || !into->is_object()) {
    *into = from;
    return;
  }
  for (auto it = from.begin(); it != from.end(); ++it) {
    MergeInto(&(*into)[it.key()], it.value());
  }
}

}  // namespace fncache::text
