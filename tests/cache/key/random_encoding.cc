// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/key/random_encoding.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/internal/endian.h"
#include "absl/strings/str_cat.h"
#include "cache/wire/wire.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
using Reflection = pb::Reflection;
using Field = pb::FieldDescriptor;

class Encoder {
 public:
  Encoder(Style style, Random* random)
      : style_(style), wild_(style == Style::kWild), random_(random) {}

  std::string Message(const pb::Message& message) {
    std::string out;
    for (const std::string& part : Parts(message)) out += part;
    return out;
  }

 private:
  bool plain() const { return style_ == Style::kPlain; }
  bool Rarely() { return wild_ && random_->OneIn(6); }

  // In more bytes than it needs, sometimes.
  std::string Varint(uint64_t value, size_t most) {
    std::string out;
    wire::AppendVarint(&out, value);
    if (wild_ && out.size() < most && random_->OneIn(12)) {
      for (size_t i = 1 + random_->Below(most - out.size()); i > 0; --i) {
        out.back() = static_cast<char>(out.back() | 0x80);
        out += '\0';
      }
    }
    return out;
  }
  std::string Tag(int number, wire::WireType type) {
    return Varint(wire::MakeTag(static_cast<uint32_t>(number), type), 5);
  }
  std::string Bytes(int number, absl::string_view bytes) {
    return absl::StrCat(Tag(number, wire::WireType::kBytes),
                        Varint(bytes.size(), 5), bytes);
  }
  std::string Int(int32_t value) {
    // Negative ones in ten bytes; what is above 32 bits does not count.
    auto wide = static_cast<uint64_t>(static_cast<int64_t>(value));
    if (Rarely()) wide ^= random_->Bits() << 32;
    return Varint(wide, 10);
  }

  std::string Unknown(const pb::UnknownField& field) {
    const int number = field.number();
    std::string out;
    switch (field.type()) {
      case pb::UnknownField::TYPE_VARINT:
        return Tag(number, wire::WireType::kVarint) +
               Varint(field.varint(), 10);
      case pb::UnknownField::TYPE_FIXED32: {
        out = Tag(number, wire::WireType::kFixed32) + std::string(4, '\0');
        absl::little_endian::Store32(&out[out.size() - 4], field.fixed32());
        return out;
      }
      case pb::UnknownField::TYPE_FIXED64: {
        out = Tag(number, wire::WireType::kFixed64) + std::string(8, '\0');
        absl::little_endian::Store64(&out[out.size() - 8], field.fixed64());
        return out;
      }
      case pb::UnknownField::TYPE_LENGTH_DELIMITED:
        return Bytes(number, field.length_delimited());
      default: {
        out = Tag(number, wire::WireType::kStartGroup);
        std::vector<Part> parts;
        AddUnknown(field.group(), &parts);
        for (const std::string& part : Arrange(std::move(parts), wild_)) {
          out += part;
        }
        return out + Tag(number, wire::WireType::kEndGroup);
      }
    }
  }

  // An element of `field`, with its tag.
  std::string Scalar(const pb::Message& message, const Field* field,
                     int index) {
    const Reflection* reflection = message.GetReflection();
    const bool repeated = field->is_repeated();
    const int number = field->number();
    std::string text;
    switch (field->cpp_type()) {
      case Field::CPPTYPE_STRING:
        return Bytes(number,
                     reflection->GetStringReference(message, field, &text));
      case Field::CPPTYPE_ENUM:
        return Tag(number, wire::WireType::kVarint) +
               Int(repeated
                       ? reflection->GetRepeatedEnumValue(message, field, index)
                       : reflection->GetEnumValue(message, field));
      case Field::CPPTYPE_BOOL: {
        uint64_t value = reflection->GetBool(message, field) ? 1 : 0;
        if (value != 0 && Rarely()) value = random_->Bits() | 1;
        return Tag(number, wire::WireType::kVarint) + Varint(value, 10);
      }
      case Field::CPPTYPE_DOUBLE: {
        const double value = reflection->GetDouble(message, field);
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        text = Tag(number, wire::WireType::kFixed64) + std::string(8, '\0');
        absl::little_endian::Store64(&text[text.size() - 8], bits);
        return text;
      }
      default:
        return "";  // no request has others
    }
  }

  // A scalar that a later one replaces.
  std::string Earlier(const Field* field) {
    const int number = field->number();
    switch (field->cpp_type()) {
      case Field::CPPTYPE_STRING:
        return Bytes(number, random_->OneIn(2) ? std::string("earlier")
                                               : std::string(64, 'e'));
      case Field::CPPTYPE_DOUBLE:
        return Tag(number, wire::WireType::kFixed64) + "8 bytes.";
      default:
        return Tag(number, wire::WireType::kVarint) + Varint(1, 10);
    }
  }

  // A piece of the encoding; those of one group keep their order.
  struct Part {
    int group;
    std::string bytes;
  };

  // The pieces in order of their groups, or in any order that keeps each
  // group's.
  std::vector<std::string> Arrange(std::vector<Part> parts, bool any_order) {
    std::vector<std::string> out;
    if (!any_order || !random_->OneIn(2)) {
      std::stable_sort(
          parts.begin(), parts.end(),
          [](const Part& a, const Part& b) { return a.group < b.group; });
      for (Part& part : parts) out.push_back(std::move(part.bytes));
      return out;
    }
    std::map<int, std::vector<std::string>> groups;
    std::vector<int> order;
    for (Part& part : parts) {
      groups[part.group].push_back(std::move(part.bytes));
      order.push_back(part.group);
    }
    Shuffle(&order);
    std::map<int, size_t> next;
    for (const int group : order) {
      out.push_back(std::move(groups[group][next[group]++]));
    }
    return out;
  }

  template <typename T>
  void Shuffle(std::vector<T>* items) {
    for (size_t i = items->size(); i > 1; --i) {
      std::swap((*items)[i - 1], (*items)[random_->Below(i)]);
    }
  }

  void AddUnknown(const pb::UnknownFieldSet& fields, std::vector<Part>* parts) {
    for (int i = 0; i < fields.field_count(); ++i) {
      // A group per number, behind those of known fields.
      parts->push_back(
          {(1 << 29) + fields.field(i).number(), Unknown(fields.field(i))});
    }
  }

  void AddMessage(const Field* field, const pb::Message& message, int group,
                  bool may_split, std::vector<Part>* parts) {
    const int number = field->number();
    std::vector<std::string> inner = Parts(message);
    size_t at = 0;
    if (may_split && wild_) {
      // An earlier part merges with what follows.
      while (random_->OneIn(6)) {
        std::string first;
        for (size_t n = random_->Below(inner.size() - at + 1); n > 0; --n) {
          first += inner[at++];
        }
        parts->push_back({group, Bytes(number, first)});
      }
    }
    std::string rest;
    for (; at < inner.size(); ++at) rest += inner[at];
    parts->push_back({group, Bytes(number, rest)});
  }

  std::string MapEntry(const pb::Message& entry) {
    const pb::Descriptor* descriptor = entry.GetDescriptor();
    const Reflection* reflection = entry.GetReflection();
    const Field* key_field = descriptor->map_key();
    const Field* value_field = descriptor->map_value();
    std::string key = Scalar(entry, key_field, 0);
    std::string value;
    std::string text;
    bool empty;
    if (value_field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      std::vector<Part> parts;
      AddMessage(value_field, reflection->GetMessage(entry, value_field), 0,
                 true, &parts);
      for (const Part& part : parts) value += part.bytes;
      empty = reflection->GetMessage(entry, value_field).ByteSizeLong() == 0;
    } else {
      value = Scalar(entry, value_field, 0);
      empty = reflection->GetStringReference(entry, value_field, &text).empty();
    }
    if (plain()) return key + value;
    if (random_->OneIn(2) &&
        reflection->GetStringReference(entry, key_field, &text).empty()) {
      key.clear();
    }
    if (empty && random_->OneIn(2)) value.clear();
    if (!wild_) {
      return random_->OneIn(4) ? value + key : key + value;
    }
    if (!key.empty() && Rarely()) key = Bytes(1, "other") + key;
    if (Rarely()) std::swap(key, value);
    if (Rarely()) key = Bytes(3, "junk") + key;
    if (Rarely()) value += std::string("\x08\x01", 2);
    return key + value;
  }

  void AddMap(const pb::Message& message, const Field* field,
              std::vector<Part>* parts) {
    const Reflection* reflection = message.GetReflection();
    std::vector<int> order(reflection->FieldSize(message, field));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    Shuffle(&order);
    for (const int i : order) {
      const pb::Message& entry =
          reflection->GetRepeatedMessage(message, field, i);
      if (Rarely()) {
        // An entry of the same key, of which nothing is left.
        parts->push_back(
            {field->number(),
             Bytes(field->number(),
                   Scalar(entry, entry.GetDescriptor()->map_key(), 0))});
      }
      parts->push_back(
          {field->number(), Bytes(field->number(), MapEntry(entry))});
    }
  }

  void AddEnums(const pb::Message& message, const Field* field,
                std::vector<Part>* parts) {
    const Reflection* reflection = message.GetReflection();
    const int number = field->number();
    std::string packed;
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      if (Rarely()) {
        parts->push_back({number, Bytes(number, packed)});
        parts->push_back({number, Scalar(message, field, i)});
        packed.clear();
      } else {
        packed += Int(reflection->GetRepeatedEnumValue(message, field, i));
      }
    }
    if (!packed.empty()) parts->push_back({number, Bytes(number, packed)});
  }

  std::vector<std::string> Parts(const pb::Message& message) {
    const Reflection* reflection = message.GetReflection();
    std::vector<Part> parts;
    std::vector<const Field*> fields;
    reflection->ListFields(message, &fields);
    for (const Field* field : fields) {
      const bool in_oneof = field->real_containing_oneof() != nullptr;
      const int group = in_oneof ? 1 : field->number();
      if (field->is_map()) {
        AddMap(message, field, &parts);
      } else if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
        if (field->is_repeated()) {
          for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
            AddMessage(field, reflection->GetRepeatedMessage(message, field, i),
                       group, false, &parts);
          }
        } else {
          if (field->real_containing_oneof() != nullptr &&
              message.GetDescriptor()->name() != "Credentials" && Rarely()) {
            // The last member wins: of a Value's kinds, or match_name.
            parts.push_back({group, Bytes(3, "first")});
          }
          AddMessage(field, reflection->GetMessage(message, field), group, true,
                     &parts);
        }
      } else if (field->is_repeated()) {
        AddEnums(message, field, &parts);
      } else {
        if (in_oneof && Rarely()) {
          // Another kind, or match_labels.
          const bool value = message.GetDescriptor()->name() == "Value";
          parts.push_back({group, Bytes(value ? 5 : 4, "")});
        }
        if (Rarely()) parts.push_back({group, Earlier(field)});
        parts.push_back({group, Scalar(message, field, 0)});
      }
    }
    if (!plain()) AddDefaults(message, &parts);
    AddUnknown(reflection->GetUnknownFields(message), &parts);
    const std::string& package = message.GetDescriptor()->file()->package();
    return Arrange(std::move(parts),
                   wild_ || (!plain() && package != "google.protobuf"));
  }

  // Scalars that are absent because they have their default.
  void AddDefaults(const pb::Message& message, std::vector<Part>* parts) {
    const pb::Descriptor* descriptor = message.GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const Field* field = descriptor->field(i);
      if (field->is_repeated() || field->has_presence() ||
          !random_->OneIn(wild_ ? 6 : 2) ||
          message.GetReflection()->HasField(message, field)) {
        continue;
      }
      parts->push_back({field->number(), Scalar(message, field, 0)});
    }
  }

  const Style style_;
  const bool wild_;
  Random* const random_;
};

}  // namespace

std::string Encode(const pb::Message& message, Style style, Random* random) {
  return Encoder(style, random).Message(message);
}

std::string SkippedByTag(Random* random) {
  static constexpr uint32_t kNumbers[] = {2, 3, 4, 7};
  std::string bytes;
  switch (random->Below(3)) {
    case 0:
      break;
    case 1:
      bytes = std::string(random->Below(300), '\xff');
      break;
    default:
      wire::AppendBytesField(&bytes, 1, "f");
  }
  std::string out;
  wire::AppendBytesField(&out, kNumbers[random->Below(4)], bytes);
  return out;
}

}  // namespace fncache::cache::key
