// SPDX-License-Identifier: Apache-2.0
#include "text/object.h"

#include "google/protobuf/struct.pb.h"

namespace fncache::text {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

const Value* Field(const Struct& object, absl::string_view name) {
  const auto it = object.fields().find(std::string(name));
  return it == object.fields().end() ? nullptr : &it->second;
}

}  // namespace

const Value* Find(const Struct& object, ObjectPath path) {
  const Struct* at = &object;
  const Value* value = nullptr;
  for (const absl::string_view name : path) {
    if (at == nullptr) return nullptr;
    value = Field(*at, name);
    if (value == nullptr) return nullptr;
    at = value->has_struct_value() ? &value->struct_value() : nullptr;
  }
  return value;
}

const Struct* FindMap(const Struct& object, ObjectPath path) {
  const Value* const value = Find(object, path);
  return value != nullptr && value->has_struct_value() ? &value->struct_value()
                                                       : nullptr;
}

const ListValue* FindList(const Struct& object, ObjectPath path) {
  const Value* const value = Find(object, path);
  return value != nullptr && value->has_list_value() ? &value->list_value()
                                                     : nullptr;
}

const std::string& FindText(const Struct& object, ObjectPath path) {
  static const std::string* const kNone = new std::string;
  const Value* const value = Find(object, path);
  return value != nullptr && value->kind_case() == Value::kStringValue
             ? value->string_value()
             : *kNone;
}

bool IsNull(const Value& value) {
  return value.kind_case() == Value::kNullValue ||
         value.kind_case() == Value::KIND_NOT_SET;
}

Value* Ensure(Struct* object, ObjectPath path) {
  Struct* at = object;
  Value* value = nullptr;
  for (const absl::string_view name : path) {
    // mutable_struct_value replaces whatever else the value held.
    if (value != nullptr) at = value->mutable_struct_value();
    value = &(*at->mutable_fields())[std::string(name)];
  }
  return value;
}

Struct* EnsureMap(Struct* object, ObjectPath path) {
  return Ensure(object, path)->mutable_struct_value();
}

void SetText(Struct* object, ObjectPath path, absl::string_view text) {
  Ensure(object, path)->set_string_value(std::string(text));
}

void Remove(Struct* object, ObjectPath path) {
  Struct* at = object;
  size_t level = 0;
  for (const absl::string_view name : path) {
    if (++level == path.size()) {
      at->mutable_fields()->erase(std::string(name));
      return;
    }
    const auto it = at->mutable_fields()->find(std::string(name));
    if (it == at->mutable_fields()->end() || !it->second.has_struct_value()) {
      return;
    }
    at = it->second.mutable_struct_value();
  }
}

Value TextValue(absl::string_view text) {
  Value value;
  value.set_string_value(std::string(text));
  return value;
}

Value BoolValue(bool value) {
  Value made;
  made.set_bool_value(value);
  return made;
}

absl::string_view GroupOf(absl::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == absl::string_view::npos ? absl::string_view()
                                          : api_version.substr(0, slash);
}

absl::string_view VersionOf(absl::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == absl::string_view::npos ? api_version
                                          : api_version.substr(slash + 1);
}

bool Equal(const Value& a, const Value& b) {
  if (IsNull(a) || IsNull(b)) return IsNull(a) && IsNull(b);
  if (a.kind_case() != b.kind_case()) return false;
  switch (a.kind_case()) {
    case Value::kNumberValue:
      return a.number_value() == b.number_value();
    case Value::kStringValue:
      return a.string_value() == b.string_value();
    case Value::kBoolValue:
      return a.bool_value() == b.bool_value();
    case Value::kStructValue:
      return Equal(a.struct_value(), b.struct_value());
    case Value::kListValue: {
      const auto& left = a.list_value().values();
      const auto& right = b.list_value().values();
      if (left.size() != right.size()) return false;
      for (int i = 0; i < left.size(); ++i) {
        if (!Equal(left[i], right[i])) return false;
      }
      return true;
    }
    case Value::kNullValue:
    case Value::KIND_NOT_SET:
      return true;
  }
  return true;
}

bool Equal(const Struct& a, const Struct& b) {
  if (a.fields_size() != b.fields_size()) return false;
  for (const auto& [name, value] : a.fields()) {
    const auto it = b.fields().find(name);
    if (it == b.fields().end() || !Equal(value, it->second)) return false;
  }
  return true;
}

}  // namespace fncache::text
