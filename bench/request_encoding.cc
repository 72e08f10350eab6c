// SPDX-License-Identifier: Apache-2.0
#include "bench/request_encoding.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/base/internal/endian.h"
#include "absl/strings/string_view.h"
#include "bench/random.h"
#include "cache/wire/wire.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

namespace pb = ::google::protobuf;
namespace v1 = ::apiextensions::fn::proto::v1;
using Field = pb::FieldDescriptor;

// Writes a message from its end to its start, since a field's length is known
// only after its contents. The caller writes fields from the last to the first.
class Writer {
 public:
  Writer(size_t size, uint64_t order_seed, Encoder encoder = Encoder::kGo)
      : bytes_(size, '\0'), at_(size), random_(order_seed), encoder_(encoder) {}

  // The message; Go's size must have been foreseen exactly, that of others not
  // too small.
  std::string Take() {
    if (at_ != 0 && encoder_ == Encoder::kGo) std::abort();
    return bytes_.substr(at_);
  }

  // A message's fields, from the last number to the first one.
  void Message(const pb::Message& message) {
    const pb::Descriptor& type = *message.GetDescriptor();
    std::vector<const Field*> fields;
    for (int i = 0; i < type.field_count(); ++i) {
      fields.push_back(type.field(i));
    }
    std::sort(
        fields.begin(), fields.end(), [this](const Field* a, const Field* b) {
          return encoder_ == Encoder::kReversed ? a->number() < b->number()
                                                : a->number() > b->number();
        });
    for (const Field* const field : fields) Write(message, *field);
  }

 private:
  void Raw(absl::string_view bytes) {
    if (bytes.size() > at_) std::abort();
    at_ -= bytes.size();
    if (!bytes.empty()) std::memcpy(&bytes_[at_], bytes.data(), bytes.size());
  }

  void Varint(uint64_t value) {
    std::string bytes;
    cache::wire::AppendVarint(&bytes, value);
    Raw(bytes);
  }

  // Writes length and tag of what was written since `end` was the start.
  void Close(int number, size_t end) {
    Varint(end - at_);
    Varint(static_cast<uint64_t>(number) << 3 | 2);
  }

  void Write(const pb::Message& message, const Field& field) {
    const pb::Reflection& reflection = *message.GetReflection();
    if (field.is_map()) return Map(message, field);
    if (field.is_packed()) {
      const int count = reflection.FieldSize(message, &field);
      const size_t end = at_;
      for (int i = count; i > 0; --i) {
        Varint(static_cast<uint64_t>(static_cast<int64_t>(
            reflection.GetRepeatedEnumValue(message, &field, i - 1))));
      }
      if (count > 0) Close(field.number(), end);
    } else if (field.is_repeated()) {
      for (int i = reflection.FieldSize(message, &field); i > 0; --i) {
        const size_t end = at_;
        Message(reflection.GetRepeatedMessage(message, &field, i - 1));
        Close(field.number(), end);
      }
    } else if (reflection.HasField(message, &field) ||
               (encoder_ == Encoder::kProtobufjsDefaults &&
                field.enum_type() != nullptr && !field.has_presence())) {
      Single(message, field);
    }
  }

  void Single(const pb::Message& message, const Field& field) {
    const pb::Reflection& reflection = *message.GetReflection();
    const size_t end = at_;
    uint64_t number = 0;
    switch (field.cpp_type()) {
      case Field::CPPTYPE_MESSAGE:
        Message(reflection.GetMessage(message, &field));
        return Close(field.number(), end);
      case Field::CPPTYPE_STRING:
        Raw(reflection.GetString(message, &field));
        return Close(field.number(), end);
      case Field::CPPTYPE_DOUBLE: {
        char bytes[8];
        absl::little_endian::Store64(
            bytes,
            absl::bit_cast<uint64_t>(reflection.GetDouble(message, &field)));
        Raw({bytes, sizeof bytes});
        return Varint(static_cast<uint64_t>(field.number()) << 3 | 1);
      }
      case Field::CPPTYPE_BOOL:
        number = reflection.GetBool(message, &field) ? 1 : 0;
        break;
      case Field::CPPTYPE_ENUM:
        number = static_cast<uint64_t>(
            static_cast<int64_t>(reflection.GetEnumValue(message, &field)));
        break;
      case Field::CPPTYPE_INT32:
        number = static_cast<uint64_t>(
            static_cast<int64_t>(reflection.GetInt32(message, &field)));
        break;
      case Field::CPPTYPE_INT64:
        number = static_cast<uint64_t>(reflection.GetInt64(message, &field));
        break;
      default:
        std::abort();  // the protocol has no such field
    }
    Varint(number);
    Varint(static_cast<uint64_t>(field.number()) << 3);
  }

  void Map(const pb::Message& message, const Field& field) {
    const pb::Reflection& reflection = *message.GetReflection();
    const Field& key = *field.message_type()->map_key();
    const Field& value = *field.message_type()->map_value();
    std::vector<std::pair<std::string, const pb::Message*>> entries;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const pb::Message& entry =
          reflection.GetRepeatedMessage(message, &field, i);
      entries.emplace_back(entry.GetReflection()->GetString(entry, &key),
                           &entry);
    }
    // A Map's own order is another in every process.
    std::sort(entries.begin(), entries.end());
    random_.Shuffle(&entries);
    for (const auto& [name, entry] : entries) {
      const size_t end = at_;
      if (!Omits(*entry, value)) Single(*entry, value);
      if (!name.empty() || !omits_empty_keys()) Single(*entry, key);
      Close(field.number(), end);
    }
  }

  // Whether the encoder leaves out the value of this map entry.
  bool Omits(const pb::Message& entry, const Field& value) const {
    const pb::Reflection& reflection = *entry.GetReflection();
    if (value.message_type() == nullptr) {
      return omits_empty_keys() && reflection.GetString(entry, &value).empty();
    }
    return encoder_ == Encoder::kProst &&
           reflection.GetMessage(entry, &value).ByteSizeLong() == 0;
  }

  // Those that omit empty keys omit empty bytes as values too.
  bool omits_empty_keys() const {
    return encoder_ == Encoder::kProst || encoder_ == Encoder::kTsProto;
  }

  std::string bytes_;
  size_t at_;  // where the written part begins
  Random random_;
  const Encoder encoder_;
};

// They stand in the drift slots while a request is encoded, because a version
// of four digits may occur elsewhere, too. No request has these texts.
constexpr char kVersionMark[] = "@ver";
constexpr char kTimeMark[] = "@time of the request";
static_assert(sizeof kVersionMark == kVersionDigits + 1, "");
static_assert(sizeof kTimeMark == kTimeBytes + 1, "");

// The texts in the drift slots: of the observed resource whose name is the
// first one. Null: there is no such resource.
struct DriftFields {
  std::string* version = nullptr;
  std::string* time = nullptr;
};

DriftFields DriftOf(Request* request) {
  std::string first;
  v1::Resource* resource = nullptr;
  for (auto& [name, one] : *request->mutable_observed()->mutable_resources()) {
    if (resource != nullptr && first < name) continue;
    first = name;
    resource = &one;
  }
  if (resource == nullptr) return {};
  auto& fields = *resource->mutable_resource()->mutable_fields();
  const auto member = [](pb::Value* object, const char* key) {
    return &(*object->mutable_struct_value()->mutable_fields())[key];
  };
  pb::Value* const condition = member(&fields["status"], "conditions")
                                   ->mutable_list_value()
                                   ->mutable_values(0);
  return {
      member(&fields["metadata"], "resourceVersion")->mutable_string_value(),
      member(condition, "lastTransitionTime")->mutable_string_value()};
}

// Replaces the only `mark` by `text`, which is as long. Where it was.
size_t Overwrite(std::string* bytes, absl::string_view mark,
                 const std::string& text) {
  const size_t at = bytes->find(mark.data(), 0, mark.size());
  if (at == std::string::npos || text.size() != mark.size()) std::abort();
  bytes->replace(at, mark.size(), text);
  return at;
}

}  // namespace

const char* EncoderName(Encoder encoder) {
  switch (encoder) {
    case Encoder::kGo:
      return "go";
    case Encoder::kProst:
      return "prost";
    case Encoder::kTsProto:
      return "ts-proto";
    case Encoder::kProtobufjsDefaults:
      return "protobufjs-defaults";
    case Encoder::kReversed:
      return "reversed";
  }
  std::abort();
}

Request WithEmptyFields(Request request) {
  const auto add = [](v1::Resource* resource) {
    (*resource->mutable_connection_details())["password"] = "";
  };
  add(request.mutable_observed()->mutable_composite());
  for (auto& [name, resource] :
       *request.mutable_observed()->mutable_resources()) {
    add(&resource);
  }
  (*request.mutable_required_resources())["nothing"];
  (*request.mutable_observed()
        ->mutable_composite()
        ->mutable_resource()
        ->mutable_fields())["spec"]
      .mutable_struct_value()
      ->mutable_fields()
      ->insert({"", pb::Value()});
  return request;
}

std::string EncodeAs(Encoder encoder, const Request& request,
                     uint64_t order_seed) {
  // No encoder writes more than twice Go's bytes.
  const size_t size = request.ByteSizeLong();
  Writer writer(encoder == Encoder::kGo ? size : 2 * size, order_seed, encoder);
  writer.Message(request);
  return writer.Take();
}

std::string EncodeShuffled(const Request& request, uint64_t order_seed) {
  Writer writer(request.ByteSizeLong(), order_seed);
  writer.Message(request);
  return writer.Take();
}

std::string EncodeShuffled(const Answer& answer, uint64_t order_seed) {
  Writer writer(answer.ByteSizeLong(), order_seed);
  writer.Message(answer);
  return writer.Take();
}

EncodedRequest Encode(const Request& request, uint64_t order_seed) {
  EncodedRequest encoded;
  Request marked = request;
  const DriftFields drift = DriftOf(&marked);
  if (drift.version == nullptr) {
    encoded.bytes = EncodeShuffled(request, order_seed);
  } else {
    const auto version = std::exchange(*drift.version, kVersionMark);
    const auto time = std::exchange(*drift.time, kTimeMark);
    encoded.bytes = EncodeShuffled(marked, order_seed);
    encoded.version_slot = Overwrite(&encoded.bytes, kVersionMark, version);
    encoded.time_slot = Overwrite(&encoded.bytes, kTimeMark, time);
  }
  const std::string& tag = request.meta().tag();
  const std::string& uid = request.observed()
                               .composite()
                               .resource()
                               .fields()
                               .at("metadata")
                               .struct_value()
                               .fields()
                               .at("uid")
                               .string_value();
  // Both are random and occur once.
  encoded.tag_slot = encoded.bytes.find(tag) + tag.size() - kSlotDigits;
  encoded.content_slot = encoded.bytes.find(uid) + uid.size() - kSlotDigits;
  return encoded;
}

void WriteDrift(uint64_t drift, char* version, char* time) {
  // Versions have no leading zero. Times are those of the first 28 days of each
  // month of a year.
  constexpr uint64_t kVersions = 9000;
  constexpr uint64_t kDay = 86400;
  constexpr uint64_t kTimes = 12 * 28 * kDay;
  // Shifts by one each time that all times are used up, so that pairs do not
  // repeat.
  const uint64_t number = 1000 + (drift + drift / kTimes) % kVersions;
  const uint64_t second = drift % kDay;
  const uint64_t day = drift % kTimes / kDay;
  const auto write = [](uint64_t value, size_t digits, char* at) {
    for (size_t i = digits; i > 0; --i, value /= 10) {
      at[i - 1] = static_cast<char>('0' + value % 10);
    }
  };
  write(number, kVersionDigits, version);
  std::memcpy(time, "2026-00-00T00:00:00Z", kTimeBytes);
  write(1 + day / 28, 2, time + 5);
  write(1 + day % 28, 2, time + 8);
  write(second / 3600, 2, time + 11);
  write(second / 60 % 60, 2, time + 14);
  write(second % 60, 2, time + 17);
}

void WriteSlot(uint64_t counter, char* digits) {
  for (size_t i = kSlotDigits; i > 0; --i) {
    digits[i - 1] = "0123456789abcdef"[counter & 15];
    counter >>= 4;
  }
}

std::string GrpcFrame(const std::string& message) {
  std::string frame(5, '\0');
  for (int i = 0; i < 4; ++i) {
    frame[1 + i] = static_cast<char>(message.size() >> (8 * (3 - i)));
  }
  return frame + message;
}

}  // namespace fncache::bench
