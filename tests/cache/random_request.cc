#include "tests/cache/random_request.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache/canonical.h"
#include "cache/plain_walk.h"
#include "cache/schema.h"
#include "cache/wire.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "google/protobuf/util/message_differencer.h"

namespace fncache::cache {
namespace {

namespace pb = google::protobuf;
namespace v1 = apiextensions::fn::proto::v1;
using Reflection = pb::Reflection;
using Field = pb::FieldDescriptor;

// --- Random messages
// ----------------------------------------------------------

std::string RandomText(Random* random) {
  static const std::string* const kTexts =
      new std::string[16]{"",
                          "a",
                          "b",
                          "metadata",
                          "metadatb",
                          "spec",
                          "status",
                          "resourceVersion",
                          "crossplane.io/composition-resource-name",
                          "crossplane.io/composition-resource-names",
                          std::string("a\0", 2),
                          "caf\xc3\xa9",
                          "\xf0\x9f\x98\x80 sixteen and more bytes",
                          "exactly8",
                          "0",
                          std::string(130, 'x')};
  if (random->OneIn(12)) {
    return std::string(random->Below(40), 'k') +
           std::to_string(random->Below(9));
  }
  return kTexts[random->Below(16)];
}

double RandomNumber(Random* random) {
  static constexpr uint64_t kBits[] = {0,
                                       0x8000000000000000u,
                                       0x3ff0000000000000u,
                                       0x7ff8000000000000u,
                                       0x7ff8000000000001u,
                                       0xfff8000000000000u,
                                       0x7ff0000000000001u,
                                       0x7ff0000000000000u,
                                       1};
  const uint64_t bits = kBits[random->Below(9)];
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

int RandomEnum(Random* random) {
  static constexpr int kValues[] = {0, 1, 2, 3, 127, 128, 70000, -1, 1 << 30};
  return random->OneIn(3) ? kValues[random->Below(9)]
                          : static_cast<int>(random->Below(3));
}

void AddUnknown(pb::UnknownFieldSet* fields, Random* random, int depth) {
  static constexpr int kNumbers[] = {10, 11, 12, 15, 16, 2000, (1 << 29) - 1};
  const int number = kNumbers[random->Below(7)];
  switch (random->Below(depth > 0 ? 5 : 4)) {
    case 0:
      fields->AddVarint(number, random->Bits() >> random->Below(64));
      break;
    case 1:
      fields->AddFixed32(number, static_cast<uint32_t>(random->Below(3)));
      break;
    case 2:
      fields->AddFixed64(number, random->Below(3));
      break;
    case 3:
      fields->AddLengthDelimited(number, random->OneIn(3) ? "\xff\xfe" : "u");
      break;
    default: {
      pb::UnknownFieldSet* group = fields->AddGroup(number);
      for (size_t i = random->Below(3); i > 0; --i) {
        AddUnknown(group, random, depth - 1);
      }
    }
  }
}

// A known field of the wrong wire type is an unknown one.
void AddMistyped(pb::Message* message, Random* random) {
  pb::UnknownFieldSet* fields =
      message->GetReflection()->MutableUnknownFields(message);
  const int number =
      1 +
      static_cast<int>(random->Below(message->GetDescriptor()->field_count()));
  fields->AddFixed32(number, static_cast<uint32_t>(random->Below(3)));
}

void MaybeUnknown(pb::Message* message, Random* random) {
  if (!random->OneIn(16)) return;
  for (size_t i = 1 + random->Below(3); i > 0; --i) {
    AddUnknown(message->GetReflection()->MutableUnknownFields(message), random,
               2);
  }
  if (random->OneIn(3)) AddMistyped(message, random);
}

void FillStruct(pb::Struct* message, Random* random, int depth);

void FillValue(pb::Value* value, Random* random, int depth) {
  MaybeUnknown(value, random);
  switch (random->Below(depth > 0 ? 8 : 6)) {
    case 0:
      break;
    case 1:
      value->set_null_value(random->OneIn(4)
                                ? static_cast<pb::NullValue>(RandomEnum(random))
                                : pb::NULL_VALUE);
      break;
    case 2:
      value->set_number_value(RandomNumber(random));
      break;
    case 3:
    case 4:
      value->set_string_value(RandomText(random));
      break;
    case 5:
      value->set_bool_value(random->OneIn(2));
      break;
    case 6:
      FillStruct(value->mutable_struct_value(), random, depth - 1);
      break;
    default:
      MaybeUnknown(value->mutable_list_value(), random);
      for (size_t i = random->Below(3); i > 0; --i) {
        FillValue(value->mutable_list_value()->add_values(), random, depth - 1);
      }
  }
}

void FillStruct(pb::Struct* message, Random* random, int depth) {
  MaybeUnknown(message, random);
  for (size_t i = random->OneIn(40) ? 40 : random->Below(4); i > 0; --i) {
    std::string key = RandomText(random);
    if (random->OneIn(40)) key += std::to_string(i);
    FillValue(&(*message->mutable_fields())[key], random, depth - 1);
  }
}

void FillResource(v1::Resource* resource, Random* random) {
  MaybeUnknown(resource, random);
  if (!random->OneIn(5)) FillStruct(resource->mutable_resource(), random, 3);
  for (size_t i = random->Below(3); i > 0; --i) {
    (*resource->mutable_connection_details())[RandomText(random)] =
        random->OneIn(3) ? "\xff" : RandomText(random);
  }
  if (random->OneIn(2)) {
    resource->set_ready(static_cast<v1::Ready>(RandomEnum(random)));
  }
}

void FillState(v1::State* state, Random* random) {
  MaybeUnknown(state, random);
  if (!random->OneIn(4)) FillResource(state->mutable_composite(), random);
  for (size_t i = random->Below(3); i > 0; --i) {
    FillResource(&(*state->mutable_resources())[RandomText(random)], random);
  }
}

void FillResources(v1::Resources* resources, Random* random) {
  MaybeUnknown(resources, random);
  for (size_t i = random->Below(3); i > 0; --i) {
    FillResource(resources->add_items(), random);
  }
}

// --- Encoding
// -----------------------------------------------------------------

class Encoder {
 public:
  Encoder(Style style, Random* random)
      : wild_(style == Style::kWild), random_(random) {}

  std::string Message(const pb::Message& message) {
    std::string out;
    for (const std::string& part : Parts(message)) out += part;
    return out;
  }

 private:
  bool Rarely() { return wild_ && random_->OneIn(6); }

  // In more bytes than it needs, sometimes.
  std::string Varint(uint64_t value, size_t most) {
    std::string out;
    AppendVarint(&out, value);
    if (wild_ && out.size() < most && random_->OneIn(12)) {
      for (size_t i = 1 + random_->Below(most - out.size()); i > 0; --i) {
        out.back() = static_cast<char>(out.back() | 0x80);
        out += '\0';
      }
    }
    return out;
  }
  std::string Tag(int number, WireType type) {
    return Varint(MakeTag(static_cast<uint32_t>(number), type), 5);
  }
  std::string Bytes(int number, absl::string_view bytes) {
    return absl::StrCat(Tag(number, WireType::kBytes), Varint(bytes.size(), 5),
                        bytes);
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
        return Tag(number, WireType::kVarint) + Varint(field.varint(), 10);
      case pb::UnknownField::TYPE_FIXED32: {
        out = Tag(number, WireType::kFixed32) + std::string(4, '\0');
        absl::little_endian::Store32(&out[out.size() - 4], field.fixed32());
        return out;
      }
      case pb::UnknownField::TYPE_FIXED64: {
        out = Tag(number, WireType::kFixed64) + std::string(8, '\0');
        absl::little_endian::Store64(&out[out.size() - 8], field.fixed64());
        return out;
      }
      case pb::UnknownField::TYPE_LENGTH_DELIMITED:
        return Bytes(number, field.length_delimited());
      default: {
        out = Tag(number, WireType::kStartGroup);
        std::vector<Part> parts;
        AddUnknown(field.group(), &parts);
        for (const std::string& part : Arrange(std::move(parts))) out += part;
        return out + Tag(number, WireType::kEndGroup);
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
        return Tag(number, WireType::kVarint) +
               Int(repeated
                       ? reflection->GetRepeatedEnumValue(message, field, index)
                       : reflection->GetEnumValue(message, field));
      case Field::CPPTYPE_BOOL: {
        uint64_t value = reflection->GetBool(message, field) ? 1 : 0;
        if (value != 0 && Rarely()) value = random_->Bits() | 1;
        return Tag(number, WireType::kVarint) + Varint(value, 10);
      }
      case Field::CPPTYPE_DOUBLE: {
        const double value = reflection->GetDouble(message, field);
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        text = Tag(number, WireType::kFixed64) + std::string(8, '\0');
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
        return Bytes(number, "earlier");
      case Field::CPPTYPE_DOUBLE:
        return Tag(number, WireType::kFixed64) + "8 bytes.";
      default:
        return Tag(number, WireType::kVarint) + Varint(1, 10);
    }
  }

  // A piece of the encoding; those of one group keep their order.
  struct Part {
    int group;
    std::string bytes;
  };

  // The pieces in order of their groups, or in any order that keeps each
  // group's.
  std::vector<std::string> Arrange(std::vector<Part> parts) {
    std::vector<std::string> out;
    if (!wild_ || !random_->OneIn(2)) {
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
      // What comes first merges with what follows.
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
    if (!wild_) return key + value;
    if (random_->OneIn(2) &&
        reflection->GetStringReference(entry, key_field, &text).empty()) {
      key.clear();
    }
    if (empty && random_->OneIn(2)) value.clear();
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
          if (message.GetDescriptor()->name() == "Value" && Rarely()) {
            // The last kind wins.
            parts.push_back({group, Bytes(3, "first")});
          }
          AddMessage(field, reflection->GetMessage(message, field), group, true,
                     &parts);
        }
      } else if (field->is_repeated()) {
        AddEnums(message, field, &parts);
      } else {
        if (in_oneof && Rarely()) parts.push_back({group, Bytes(5, "")});
        if (Rarely()) parts.push_back({group, Earlier(field)});
        parts.push_back({group, Scalar(message, field, 0)});
      }
    }
    if (wild_) AddDefaults(message, &parts);
    AddUnknown(reflection->GetUnknownFields(message), &parts);
    return Arrange(std::move(parts));
  }

  // Scalars that are absent because they have their default.
  void AddDefaults(const pb::Message& message, std::vector<Part>* parts) {
    const pb::Descriptor* descriptor = message.GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const Field* field = descriptor->field(i);
      if (field->is_repeated() || field->has_presence() || !Rarely() ||
          message.GetReflection()->HasField(message, field)) {
        continue;
      }
      parts->push_back({field->number(), Scalar(message, field, 0)});
    }
  }

  const bool wild_;
  Random* const random_;
};

// --- Mutation
// -------------------------------------------------------------------

// Every message in `message`, itself included.
void Collect(pb::Message* message, std::vector<pb::Message*>* all) {
  all->push_back(message);
  const Reflection* reflection = message->GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(*message, &fields);
  for (const Field* field : fields) {
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(reflection->MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      Collect(reflection->MutableRepeatedMessage(message, field, i), all);
    }
  }
}

void MutateScalar(pb::Message* message, const Field* field, Random* random) {
  const Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case Field::CPPTYPE_STRING:
      reflection->SetString(message, field, RandomText(random));
      break;
    case Field::CPPTYPE_ENUM:
      reflection->SetEnumValue(message, field, RandomEnum(random));
      break;
    case Field::CPPTYPE_BOOL:
      reflection->SetBool(message, field, random->OneIn(2));
      break;
    case Field::CPPTYPE_DOUBLE:
      reflection->SetDouble(message, field, RandomNumber(random));
      break;
    default:
      break;
  }
}

void MutateRepeated(pb::Message* message, const Field* field, Random* random) {
  const Reflection* reflection = message->GetReflection();
  const int size = reflection->FieldSize(*message, field);
  const size_t what = random->Below(3);
  if (what == 0 && size > 0) {
    reflection->RemoveLast(message, field);
  } else if (what == 1 && size > 1) {
    reflection->SwapElements(message, field, 0, size - 1);
  } else if (field->cpp_type() == Field::CPPTYPE_ENUM) {
    reflection->AddEnumValue(message, field, RandomEnum(random));
  } else if (!field->is_map()) {
    reflection->AddMessage(message, field);
  }
}

// --- The oracle
// -------------------------------------------------------------------

std::string Ordered(const pb::UnknownFieldSet& fields) {
  std::vector<std::pair<int, std::string>> parts;
  for (int i = 0; i < fields.field_count(); ++i) {
    const pb::UnknownField& field = fields.field(i);
    std::string bytes;
    if (field.type() == pb::UnknownField::TYPE_GROUP) {
      bytes = absl::StrCat("group(", Ordered(field.group()), ")");
    } else {
      pb::UnknownFieldSet one;
      one.AddField(field);
      one.SerializeToString(&bytes);
    }
    parts.emplace_back(field.number(), absl::StrCat(field.number(), ":",
                                                    bytes.size(), ":", bytes));
  }
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (const auto& part : parts) out += part.second;
  return out;
}

// Takes the unknown fields out of every message into `unknown`, by where they
// were, and makes numbers into strings of their bits.
void Flatten(const std::string& path, pb::Message* message,
             std::map<std::string, std::string>* unknown) {
  const Reflection* reflection = message->GetReflection();
  if (!reflection->GetUnknownFields(*message).empty()) {
    (*unknown)[path] = Ordered(reflection->GetUnknownFields(*message));
    reflection->MutableUnknownFields(message)->Clear();
  }
  if (message->GetDescriptor() == pb::Value::descriptor()) {
    auto* value = static_cast<pb::Value*>(message);
    if (value->kind_case() == pb::Value::kStringValue) {
      value->set_string_value("text " + value->string_value());
    } else if (value->kind_case() == pb::Value::kNumberValue) {
      const double number = value->number_value();
      uint64_t bits;
      std::memcpy(&bits, &number, sizeof(bits));
      value->set_string_value(absl::StrCat("number ", absl::Hex(bits)));
    }
  }
  std::vector<const Field*> fields;
  reflection->ListFields(*message, &fields);
  for (const Field* field : fields) {
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
    const std::string below = absl::StrCat(path, "/", field->number());
    if (!field->is_repeated()) {
      Flatten(below, reflection->MutableMessage(message, field), unknown);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      pb::Message* element =
          reflection->MutableRepeatedMessage(message, field, i);
      std::string name = std::to_string(i);
      if (field->is_map()) {
        name = element->GetReflection()->GetString(
            *element, element->GetDescriptor()->map_key());
        name = absl::StrCat(name.size(), " ", name);
      }
      Flatten(absl::StrCat(below, "[", name, "]"), element, unknown);
    }
  }
}

}  // namespace

v1::RunFunctionRequest RandomRequest(Random* random) {
  v1::RunFunctionRequest request;
  MaybeUnknown(&request, random);
  if (!random->OneIn(4)) {
    v1::RequestMeta* meta = request.mutable_meta();
    MaybeUnknown(meta, random);
    if (!random->OneIn(3)) meta->set_tag(RandomText(random));
    for (size_t i = random->Below(4); i > 0; --i) {
      meta->add_capabilities(static_cast<v1::Capability>(RandomEnum(random)));
    }
  }
  if (!random->OneIn(3)) FillState(request.mutable_observed(), random);
  if (random->OneIn(3)) FillState(request.mutable_desired(), random);
  if (random->OneIn(3)) FillStruct(request.mutable_input(), random, 3);
  if (random->OneIn(2)) FillStruct(request.mutable_context(), random, 4);
  for (size_t i = random->Below(3); i > 0; --i) {
    FillResources(&(*request.mutable_required_resources())[RandomText(random)],
                  random);
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  if (random->OneIn(4)) {
    FillResources(&(*request.mutable_extra_resources())[RandomText(random)],
                  random);
  }
#pragma GCC diagnostic pop
  if (random->OneIn(3)) {
    v1::Credentials& credentials =
        (*request.mutable_credentials())[RandomText(random)];
    MaybeUnknown(&credentials, random);
    if (!random->OneIn(3)) {
      MaybeUnknown(credentials.mutable_credential_data(), random);
      (*credentials.mutable_credential_data()
            ->mutable_data())[RandomText(random)] = RandomText(random);
    }
  }
  if (random->OneIn(4)) {
    v1::Schema& schema = (*request.mutable_required_schemas())["s"];
    if (random->OneIn(2)) FillStruct(schema.mutable_openapi_v3(), random, 3);
  }
  return request;
}

void Mutate(pb::Message* root, Random* random) {
  std::vector<pb::Message*> all;
  Collect(root, &all);
  pb::Message* message = all[random->Below(all.size())];
  const pb::Descriptor* descriptor = message->GetDescriptor();
  const Reflection* reflection = message->GetReflection();
  if (random->OneIn(6) && !descriptor->options().map_entry()) {
    pb::UnknownFieldSet* unknown = reflection->MutableUnknownFields(message);
    if (!unknown->empty() && random->OneIn(2)) {
      unknown->DeleteSubrange(unknown->field_count() - 1, 1);
    } else {
      AddUnknown(unknown, random, 2);
    }
    return;
  }
  const Field* field = descriptor->field(
      static_cast<int>(random->Below(descriptor->field_count())));
  if (field->is_repeated()) {
    MutateRepeated(message, field, random);
  } else if (field->cpp_type() != Field::CPPTYPE_MESSAGE) {
    if (reflection->HasField(*message, field) && random->OneIn(3) &&
        !descriptor->options().map_entry()) {
      reflection->ClearField(message, field);
    } else {
      MutateScalar(message, field, random);
    }
  } else if (reflection->HasField(*message, field) &&
             !descriptor->options().map_entry()) {
    reflection->ClearField(message, field);
  } else {
    reflection->MutableMessage(message, field);
  }
}

std::string Encode(const pb::Message& message, Style style, Random* random) {
  return Encoder(style, random).Message(message);
}

const std::vector<MaskSet>& MaskSets() {
  static const auto* const kSets = [] {
    auto* sets = new std::vector<MaskSet>();
    const std::vector<std::vector<std::string>> paths = {
        {},
        {"context.a"},
        {"observed.composite.resource.metadata",
         "observed.resources.*.resource.metadata.resourceVersion"},
        {"observed.composite.resource.*.a", "observed.composite.resource.spec",
         "observed.composite.resource.status.*", "context.*.*"},
        {"observed.resources.a.resource.*.*.*", "input.*.metadata",
         "input.spec.*", "context.\"\""},
        {"required_resources.*.items.*.resource.*", "meta.capabilities.*",
         "observed.resources.*.connection_details.a"},
        {"required_resources.a.items.*", "desired.composite", "credentials",
         "required_schemas.*.openapi_v3.a", "observed.composite.ready"},
        {"meta", "observed.composite.connection_details", "desired.resources.*",
         "credentials.*.credential_data.data.*", "context"},
        {"meta.tag", "meta.capabilities", "required_resources.*.items",
         "credentials.a.credential_data", "input.*.*.*.*", "input.a.b",
         "input.*.b.*"},
    };
    for (const auto& list : paths) {
      sets->push_back(*MaskSet::Parse(list, MaskRules::kAnyPath));
    }
    return sets;
  }();
  return *kSets;
}

bool SameRequest(const MaskSet& masks, v1::RunFunctionRequest a,
                 v1::RunFunctionRequest b) {
  ClearMasked(masks, &a);
  ClearMasked(masks, &b);
  std::map<std::string, std::string> unknown_a;
  std::map<std::string, std::string> unknown_b;
  Flatten("", &a, &unknown_a);
  Flatten("", &b, &unknown_b);
  return unknown_a == unknown_b && pb::util::MessageDifferencer::Equals(a, b);
}

bool ProtobufParses(absl::string_view bytes, v1::RunFunctionRequest* request) {
  pb::LogSilencer silence;
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                              static_cast<int>(bytes.size()));
  in.SetRecursionLimit(kMaxDepth);
  return request->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

KeyChecker::KeyChecker(const MaskSet& masks)
    : masks_(masks), digester_(Seed{}, {"f", "m", "g"}, masks) {}

Digest KeyChecker::Compute(absl::string_view bytes) {
  return digester_.Compute({bytes}, &scratch_);
}

std::string KeyChecker::CheckOne(absl::string_view bytes, bool* fast) {
  v1::RunFunctionRequest request;
  const bool parses = ProtobufParses(bytes, &request);
  // On the heap and of exactly this size, so that a sanitizer sees what is read
  // beyond it.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  bytes = absl::string_view(exact.data(), exact.size());
  const Digest digest = Compute(bytes);
  if (digest.keyed != parses) {
    return absl::StrCat("keyed ", digest.keyed, ", protobuf parses ", parses);
  }
  if (digest.tag != request.meta().tag() && parses) return "another tag";
  const Key key = digest.key;
  PlainWalk walk;
  absl::string_view tag;
  std::string out(bytes.size() + PlainWalk::kSlack, '\0');
  const char* end = walk.Run(bytes, masks_.root(), kMaxDepth, &out[0], &tag);
  if (fast != nullptr) *fast = end != nullptr;
  if (end != nullptr && !parses) return "plain, and protobuf does not parse it";
  if (!parses) return "";
  std::string plain;
  if (!MakePlain(bytes, &plain)) return "the slow path refuses it";
  std::string slow(plain.size() + PlainWalk::kSlack, '\0');
  const char* slow_end =
      walk.Run(plain, masks_.root(), kMaxPlainDepth, &slow[0], &tag);
  if (slow_end == nullptr) return "the slow path's form is not plain";
  slow.resize(slow_end - slow.data());
  if (end != nullptr) {
    out.resize(end - out.data());
    if (out != slow) return "fast and slow path differ";
  }
  // What the canonical form says is the message without what is masked.
  v1::RunFunctionRequest rest;
  if (masks_.empty() && !ProtobufParses(slow, &rest) && slow.size() < 2000) {
    return "the canonical form does not parse";
  }
  std::string again;
  if (slow.size() < 2000 && (!MakePlain(slow, &again) || again != slow)) {
    return "the canonical form is not its own";
  }
  if (slow.size() < 2000 && rest.ParseFromString(slow) &&
      !SameRequest(masks_, request, rest)) {
    return "the canonical form is another message";
  }
  if (Compute(plain).keyed && Compute(plain).key != key) {
    return "another key by the slow path";
  }
  return "";
}

std::string KeyChecker::CheckPair(absl::string_view a, absl::string_view b,
                                  bool* equal) {
  v1::RunFunctionRequest request_a;
  v1::RunFunctionRequest request_b;
  if (!ProtobufParses(a, &request_a) || !ProtobufParses(b, &request_b)) {
    return "";
  }
  const Digest digest_a = Compute(a);
  const Digest digest_b = Compute(b);
  if (!digest_a.keyed || !digest_b.keyed) return "not keyed";
  const bool same = SameRequest(masks_, request_a, request_b);
  if (equal != nullptr) *equal = same;
  if (same == (digest_a.key == digest_b.key)) return "";
  return absl::StrCat(
      same ? "equal messages, two keys: " : "two messages, one key: ",
      request_a.ShortDebugString(), " and ", request_b.ShortDebugString());
}

}  // namespace fncache::cache
