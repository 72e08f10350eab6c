// SPDX-License-Identifier: Apache-2.0
#include "runner/demo/encoding.h"

#include <string.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/struct.pb.h"

namespace fncache::runner::demo {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::ListValue;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Struct;
using google::protobuf::Value;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };

// Bytes that grow at their front: a message's length is known once it is
// written, and nothing is copied to put it before.
class BackwardBytes {
 public:
  size_t size() const { return bytes_.size() - at_; }

  void Put(absl::string_view text) {
    if (text.empty()) return;
    if (text.size() > at_) Grow(text.size());
    at_ -= text.size();
    memcpy(&bytes_[at_], text.data(), text.size());
  }

  void PutVarint(uint64_t value) {
    char digits[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) {
      digits[count++] = static_cast<char>(value | 0x80);
    }
    digits[count++] = static_cast<char>(value);
    Put({digits, count});
  }

  void PutTag(int field, WireType type) {
    PutVarint(static_cast<uint32_t>(field) << 3 | type);
  }

  // Makes a field of what was put since the size was `since`.
  void Close(int field, size_t since) {
    PutVarint(size() - since);
    PutTag(field, kBytes);
  }

  void PutField(int field, absl::string_view text) {
    const size_t since = size();
    Put(text);
    Close(field, since);
  }

  std::string Take() { return bytes_.substr(at_); }

 private:
  void Grow(size_t needed) {
    const size_t more = std::max(needed, bytes_.size() + 1024);
    bytes_.insert(0, more, '\0');
    at_ += more;
  }

  std::string bytes_;
  size_t at_ = 0;  // where the content begins
};

// Writes messages, their last field first.
class Encoder {
 public:
  explicit Encoder(std::mt19937* random) : random_(random) {}

  std::string Take() { return out_.Take(); }

  // The field of number `field` that is `message`.
  void AddMessage(int field, const Message& message) {
    const size_t since = out_.size();
    AddFields(message, 0);
    out_.Close(field, since);
  }

  // All fields but that of number `but`.
  void AddFields(const Message& message, int but) {
    // Most of a request are Structs. They are not written by reflection, which
    // is slow.
    const auto* const type = message.GetDescriptor();
    if (type == Struct::descriptor()) {
      return AddMap(1, static_cast<const Struct&>(message).fields());
    }
    if (type == Value::descriptor()) {
      return AddValue(static_cast<const Value&>(message));
    }
    if (type == ListValue::descriptor()) {
      return AddList(static_cast<const ListValue&>(message));
    }
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    std::reverse(fields.begin(), fields.end());
    for (const FieldDescriptor* field : fields) {
      if (field->number() == but) continue;
      if (type == fn::State::descriptor() && field->is_map()) {
        // By reflection a map is copied before it can be read.
        AddMap(field->number(),
               static_cast<const fn::State&>(message).resources());
      } else if (field->is_packed()) {
        AddPackedEnums(message, field);
      } else if (field->is_repeated()) {
        std::vector<int> order(reflection.FieldSize(message, field));
        std::iota(order.rbegin(), order.rend(), 0);
        if (field->is_map()) {
          std::shuffle(order.begin(), order.end(), *random_);
        }
        for (const int index : order) AddField(message, field, index);
      } else {
        AddField(message, field, -1);
      }
    }
  }

 private:
  // A map whose values are messages.
  template <typename Map>
  void AddMap(int field, const Map& map) {
    std::vector<const typename Map::value_type*> entries;
    entries.reserve(map.size());
    for (const auto& entry : map) entries.push_back(&entry);
    std::shuffle(entries.begin(), entries.end(), *random_);
    for (const auto* entry : entries) {
      const size_t since = out_.size();
      AddMessage(2, entry->second);
      out_.PutField(1, entry->first);
      out_.Close(field, since);
    }
  }

  void AddList(const ListValue& list) {
    for (int i = list.values_size() - 1; i >= 0; --i) {
      AddMessage(ListValue::kValuesFieldNumber, list.values(i));
    }
  }

  void AddValue(const Value& value) {
    switch (value.kind_case()) {
      case Value::kNullValue:
        PutNumber(Value::kNullValueFieldNumber, 0);
        break;
      case Value::kNumberValue:
        PutDouble(Value::kNumberValueFieldNumber, value.number_value());
        break;
      case Value::kStringValue:
        out_.PutField(Value::kStringValueFieldNumber, value.string_value());
        break;
      case Value::kBoolValue:
        PutNumber(Value::kBoolValueFieldNumber, value.bool_value() ? 1 : 0);
        break;
      case Value::kStructValue:
        AddMessage(Value::kStructValueFieldNumber, value.struct_value());
        break;
      case Value::kListValue:
        AddMessage(Value::kListValueFieldNumber, value.list_value());
        break;
      case Value::KIND_NOT_SET:
        break;
    }
  }

  // Requests have no other packed fields than enums.
  void AddPackedEnums(const Message& message, const FieldDescriptor* field) {
    const Reflection& reflection = *message.GetReflection();
    const size_t since = out_.size();
    for (int i = reflection.FieldSize(message, field) - 1; i >= 0; --i) {
      out_.PutVarint(static_cast<uint64_t>(static_cast<int64_t>(
          reflection.GetRepeatedEnumValue(message, field, i))));
    }
    out_.Close(field->number(), since);
  }

  // One field's value, tag included; `index` is -1 for a singular field.
  void AddField(const Message& message, const FieldDescriptor* field,
                int index) {
    const Reflection& reflection = *message.GetReflection();
    const int number = field->number();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        AddMessage(number, index < 0 ? reflection.GetMessage(message, field)
                                     : reflection.GetRepeatedMessage(
                                           message, field, index));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        out_.PutField(number, index < 0 ? reflection.GetString(message, field)
                                        : reflection.GetRepeatedString(
                                              message, field, index));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        PutNumber(number, reflection.GetBool(message, field) ? 1 : 0);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        PutNumber(number, index < 0 ? reflection.GetEnumValue(message, field)
                                    : reflection.GetRepeatedEnumValue(
                                          message, field, index));
        break;
      default:
        // Requests have no other types.
        break;
    }
  }

  void PutNumber(int field, int64_t value) {
    out_.PutVarint(static_cast<uint64_t>(value));
    out_.PutTag(field, kVarint);
  }

  void PutDouble(int field, double value) {
    uint64_t bits;
    static_assert(sizeof bits == sizeof value);
    memcpy(&bits, &value, sizeof bits);
    char bytes[sizeof bits];
    for (size_t i = 0; i < sizeof bits; ++i) {
      bytes[i] = static_cast<char>(bits >> (8 * i));
    }
    out_.Put({bytes, sizeof bytes});
    out_.PutTag(field, kFixed64);
  }

  std::mt19937* const random_;
  BackwardBytes out_;
};

}  // namespace

std::string EncodeShuffled(const Message& message, std::mt19937* random) {
  Encoder encoder(random);
  encoder.AddFields(message, 0);
  return encoder.Take();
}

std::string EncodeShuffled(const fn::RunFunctionRequest& request,
                           const fn::RequestMeta& meta, std::mt19937* random) {
  Encoder encoder(random);
  encoder.AddFields(request, fn::RunFunctionRequest::kMetaFieldNumber);
  encoder.AddMessage(fn::RunFunctionRequest::kMetaFieldNumber, meta);
  return encoder.Take();
}

}  // namespace fncache::runner::demo
