// SPDX-License-Identifier: Apache-2.0
#include "bench/request_encoding.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/random.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"

// extra_resources is deprecated, and still sent by runners.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::bench {
namespace {

namespace v1 = ::apiextensions::fn::proto::v1;
using ::google::protobuf::ListValue;
using ::google::protobuf::Map;
using ::google::protobuf::RepeatedPtrField;
using ::google::protobuf::Struct;
using ::google::protobuf::Value;

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

  void Request(const v1::RunFunctionRequest& m) {
    Fields({
        [&] { MapField(9, m.required_schemas(), &Writer::Schema); },
        [&] { MapField(8, m.required_resources(), &Writer::Resources); },
        [&] { MapField(7, m.credentials(), &Writer::Credentials); },
        [&] { MapField(6, m.extra_resources(), &Writer::Resources); },
        [&] {
          if (m.has_context()) Sub(5, m.context(), &Writer::StructBody);
        },
        [&] {
          if (m.has_input()) Sub(4, m.input(), &Writer::StructBody);
        },
        [&] {
          if (m.has_desired()) Sub(3, m.desired(), &Writer::State);
        },
        [&] {
          if (m.has_observed()) Sub(2, m.observed(), &Writer::State);
        },
        [&] {
          if (m.has_meta()) Sub(1, m.meta(), &Writer::RequestMeta);
        },
    });
  }

  void Answer(const v1::RunFunctionResponse& m) {
    if (m.has_output()) Sub(7, m.output(), &Writer::StructBody);
    List(6, m.conditions(), &Writer::Mapless<v1::Condition>);
    if (m.has_requirements()) Sub(5, m.requirements(), &Writer::Requirements);
    if (m.has_context()) Sub(4, m.context(), &Writer::StructBody);
    List(3, m.results(), &Writer::Mapless<v1::Result>);
    if (m.has_desired()) Sub(2, m.desired(), &Writer::State);
    if (m.has_meta()) Sub(1, m.meta(), &Writer::Mapless<v1::ResponseMeta>);
  }

 private:
  void Raw(absl::string_view bytes) {
    if (bytes.size() > at_) std::abort();
    at_ -= bytes.size();
    if (!bytes.empty()) std::memcpy(&bytes_[at_], bytes.data(), bytes.size());
  }

  void Varint(uint64_t value) {
    char bytes[10];
    size_t n = 0;
    for (; value > 0x7f; value >>= 7) {
      bytes[n++] = static_cast<char>(value | 0x80);
    }
    bytes[n++] = static_cast<char>(value);
    Raw({bytes, n});
  }

  void VarintField(int number, uint64_t value) {
    Varint(value);
    Varint(static_cast<uint64_t>(number) << 3);
  }

  void Bytes(int number, absl::string_view bytes) {
    Raw(bytes);
    Varint(bytes.size());
    Varint(static_cast<uint64_t>(number) << 3 | 2);
  }

  // A message's fields, from the last number to the first one. (No encoder
  // writes a map's entry in another order.)
  void Fields(std::initializer_list<std::function<void()>> fields) {
    if (encoder_ != Encoder::kReversed) {
      for (const auto& write : fields) write();
    } else {
      for (const auto* write = fields.end(); write != fields.begin();) {
        (*--write)();
      }
    }
  }

  // A field of proto3 that is left out when empty.
  void Text(int number, absl::string_view text) {
    if (!text.empty()) Bytes(number, text);
  }

  template <typename M>
  void Sub(int number, const M& message, void (Writer::*body)(const M&)) {
    const size_t end = at_;
    (this->*body)(message);
    Varint(end - at_);
    Varint(static_cast<uint64_t>(number) << 3 | 2);
  }

  template <typename M>
  void List(int number, const RepeatedPtrField<M>& messages,
            void (Writer::*body)(const M&)) {
    for (int i = messages.size(); i > 0; --i) {
      Sub(number, messages.Get(i - 1), body);
    }
  }

  template <typename T, typename WriteValue>
  void Entries(int number, const Map<std::string, T>& map,
               const WriteValue& write_value) {
    std::vector<const typename Map<std::string, T>::value_type*> entries;
    entries.reserve(map.size());
    for (const auto& entry : map) entries.push_back(&entry);
    // A Map's own order is another in every process.
    std::sort(entries.begin(), entries.end(),
              [](const auto* a, const auto* b) { return a->first < b->first; });
    random_.Shuffle(&entries);
    for (const auto* entry : entries) {
      const size_t end = at_;
      write_value(entry->second);
      if (!entry->first.empty() || !omits_empty_keys()) Bytes(1, entry->first);
      Varint(end - at_);
      Varint(static_cast<uint64_t>(number) << 3 | 2);
    }
  }

  template <typename M>
  void MapField(int number, const Map<std::string, M>& map,
                void (Writer::*body)(const M&)) {
    Entries(number, map, [&](const M& value) {
      if (encoder_ == Encoder::kProst && value.ByteSizeLong() == 0) return;
      Sub(2, value, body);
    });
  }

  void BytesMap(int number, const Map<std::string, std::string>& map) {
    Entries(number, map, [&](const std::string& value) {
      if (!value.empty() || !omits_empty_keys()) Bytes(2, value);
    });
  }

  // A message without maps has one encoding.
  template <typename M>
  void Mapless(const M& message) {
    Raw(message.SerializeAsString());
  }

  void Capabilities(const v1::RequestMeta& m) {
    if (m.capabilities_size() == 0) return;
    const size_t end = at_;
    for (int i = m.capabilities_size(); i > 0; --i) {
      Varint(static_cast<uint64_t>(m.capabilities(i - 1)));
    }
    Varint(end - at_);
    Varint(2 << 3 | 2);
  }

  void RequestMeta(const v1::RequestMeta& m) {
    Fields({[&] { Capabilities(m); }, [&] { Text(1, m.tag()); }});
  }

  void State(const v1::State& m) {
    Fields({[&] { MapField(2, m.resources(), &Writer::Resource); },
            [&] {
              if (m.has_composite()) Sub(1, m.composite(), &Writer::Resource);
            }});
  }

  void Resource(const v1::Resource& m) {
    Fields({[&] {
              if (m.ready() != 0 || encoder_ == Encoder::kProtobufjsDefaults) {
                VarintField(3, static_cast<uint64_t>(m.ready()));
              }
            },
            [&] { BytesMap(2, m.connection_details()); },
            [&] {
              if (m.has_resource()) Sub(1, m.resource(), &Writer::StructBody);
            }});
  }

  void Resources(const v1::Resources& m) {
    List(1, m.items(), &Writer::Resource);
  }

  void Credentials(const v1::Credentials& m) {
    if (m.has_credential_data()) {
      Sub(1, m.credential_data(), &Writer::CredentialData);
    }
  }

  void CredentialData(const v1::CredentialData& m) { BytesMap(1, m.data()); }

  void Schema(const v1::Schema& m) {
    if (m.has_openapi_v3()) Sub(1, m.openapi_v3(), &Writer::StructBody);
  }

  void Requirements(const v1::Requirements& m) {
    MapField(3, m.schemas(), &Writer::Mapless<v1::SchemaSelector>);
    MapField(2, m.resources(), &Writer::ResourceSelector);
    MapField(1, m.extra_resources(), &Writer::ResourceSelector);
  }

  void ResourceSelector(const v1::ResourceSelector& m) {
    if (m.has_namespace_()) Bytes(5, m.namespace_());
    if (m.has_match_labels()) Sub(4, m.match_labels(), &Writer::MatchLabels);
    if (m.match_case() == v1::ResourceSelector::kMatchName) {
      Bytes(3, m.match_name());
    }
    Text(2, m.kind());
    Text(1, m.api_version());
  }

  void MatchLabels(const v1::MatchLabels& m) { BytesMap(1, m.labels()); }

  // Struct, Value and ListValue nest; requests here are shallow.
  // NOLINTBEGIN(misc-no-recursion)
  void StructBody(const Struct& m) {
    MapField(1, m.fields(), &Writer::ValueBody);
  }

  void ValueBody(const Value& m) {
    switch (m.kind_case()) {
      case Value::kNullValue:
        return VarintField(1, static_cast<uint64_t>(m.null_value()));
      case Value::kNumberValue: {
        char bytes[8];
        uint64_t bits = 0;
        const double number = m.number_value();
        std::memcpy(&bits, &number, sizeof(bits));
        for (int i = 0; i < 8; ++i) {
          bytes[i] = static_cast<char>(bits >> (8 * i));
        }
        Raw({bytes, sizeof(bytes)});
        return Varint(2 << 3 | 1);
      }
      case Value::kStringValue:
        return Bytes(3, m.string_value());
      case Value::kBoolValue:
        return VarintField(4, m.bool_value() ? 1 : 0);
      case Value::kStructValue:
        return Sub(5, m.struct_value(), &Writer::StructBody);
      case Value::kListValue:
        return Sub(6, m.list_value(), &Writer::ListBody);
      case Value::KIND_NOT_SET:
        return;
    }
  }

  void ListBody(const ListValue& m) { List(1, m.values(), &Writer::ValueBody); }
  // NOLINTEND(misc-no-recursion)

  // Those that omit empty keys omit empty bytes as values too.
  bool omits_empty_keys() const {
    return encoder_ == Encoder::kProst || encoder_ == Encoder::kTsProto;
  }

  std::string bytes_;
  size_t at_;  // where the written part begins
  Random random_;
  const Encoder encoder_;
};

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

Request WithEmptyParts(Request request) {
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
      ->insert({"", Value()});
  return request;
}

std::string EncodeAs(Encoder encoder, const Request& request,
                     uint64_t order_seed) {
  // No encoder writes more than twice Go's bytes.
  const size_t size = request.ByteSizeLong();
  Writer writer(encoder == Encoder::kGo ? size : 2 * size, order_seed, encoder);
  writer.Request(request);
  return writer.Take();
}

std::string EncodeShuffled(const Request& request, uint64_t order_seed) {
  Writer writer(request.ByteSizeLong(), order_seed);
  writer.Request(request);
  return writer.Take();
}

std::string EncodeShuffled(const Answer& answer, uint64_t order_seed) {
  Writer writer(answer.ByteSizeLong(), order_seed);
  writer.Answer(answer);
  return writer.Take();
}

EncodedRequest Encode(const Request& request, uint64_t order_seed) {
  EncodedRequest encoded;
  encoded.bytes = EncodeShuffled(request, order_seed);
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
