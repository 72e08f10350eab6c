// SPDX-License-Identifier: Apache-2.0
#include "cache/key/reencode.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "cache/wire/schema.h"
#include "cache/wire/validate.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
namespace v1 = apiextensions::fn::proto::v1;

// Deprecated in the protocol, and spoken all the same.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
pb::Map<std::string, v1::Resources>* ExtraResources(
    v1::RunFunctionRequest* request) {
  return request->mutable_extra_resources();
}
pb::Map<std::string, v1::ResourceSelector>* ExtraResources(
    v1::Requirements* requirements) {
  return requirements->mutable_extra_resources();
}
#pragma GCC diagnostic pop

// --- Unknown fields ---------------------------------------------------------

void Order(pb::UnknownFieldSet* fields) {
  bool in_order = true;
  for (int i = 0; i < fields->field_count(); ++i) {
    pb::UnknownField* field = fields->mutable_field(i);
    if (field->type() == pb::UnknownField::TYPE_GROUP) {
      Order(field->mutable_group());
    }
    if (i > 0 && fields->field(i - 1).number() > field->number()) {
      in_order = false;
    }
  }
  if (in_order) return;
  std::vector<int> order(fields->field_count());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [fields](int a, int b) {
    return fields->field(a).number() < fields->field(b).number();
  });
  pb::UnknownFieldSet ordered;
  for (const int i : order) ordered.AddField(fields->field(i));
  fields->Swap(&ordered);
}

// Orders those of this message alone.
void OrderOwn(pb::Message* message) {
  const pb::Reflection* reflection = message->GetReflection();
  if (reflection->GetUnknownFields(*message).empty()) return;
  Order(reflection->MutableUnknownFields(message));
}

void OrderAll(pb::Struct* message);

void OrderAll(pb::Value* message) {
  OrderOwn(message);
  if (message->has_struct_value()) OrderAll(message->mutable_struct_value());
  if (message->has_list_value()) {
    OrderOwn(message->mutable_list_value());
    for (pb::Value& value : *message->mutable_list_value()->mutable_values()) {
      OrderAll(&value);
    }
  }
}

void OrderAll(pb::Struct* message) {
  OrderOwn(message);
  for (auto& [key, value] : *message->mutable_fields()) OrderAll(&value);
}

void OrderAll(v1::Resource* message) {
  OrderOwn(message);
  if (message->has_resource()) OrderAll(message->mutable_resource());
}

void OrderAll(v1::Resources* message) {
  OrderOwn(message);
  for (v1::Resource& item : *message->mutable_items()) OrderAll(&item);
}

void OrderAll(v1::State* message) {
  OrderOwn(message);
  if (message->has_composite()) OrderAll(message->mutable_composite());
  for (auto& [name, resource] : *message->mutable_resources()) {
    OrderAll(&resource);
  }
}

void OrderAll(v1::Credentials* message) {
  OrderOwn(message);
  if (message->has_credential_data()) {
    OrderOwn(message->mutable_credential_data());
  }
}

void OrderAll(v1::Schema* message) {
  OrderOwn(message);
  if (message->has_openapi_v3()) OrderAll(message->mutable_openapi_v3());
}

void OrderAll(v1::ResponseMeta* message) {
  OrderOwn(message);
  if (message->has_ttl()) OrderOwn(message->mutable_ttl());
}

void OrderAll(v1::ResourceSelector* message) {
  OrderOwn(message);
  if (message->has_match_labels()) OrderOwn(message->mutable_match_labels());
}

void OrderAll(v1::Requirements* message) {
  OrderOwn(message);
  for (auto& [name, selector] : *ExtraResources(message)) OrderAll(&selector);
  for (auto& [name, selector] : *message->mutable_resources()) {
    OrderAll(&selector);
  }
  for (auto& [name, selector] : *message->mutable_schemas()) {
    OrderOwn(&selector);
  }
}

// --- Masks ------------------------------------------------------------------

// The rest of a mask: elements from `at` on.
struct Rest {
  const MaskPath& path;
  size_t at;

  const MaskElement& first() const { return path[at]; }
  const std::string& name() const { return path[at].name; }
  bool last() const { return at + 1 == path.size(); }
  Rest next() const { return {path, at + 1}; }
};

void Clear(pb::Struct* message, const Rest& rest);

// A scalar has nothing below it.
void Clear(std::string*, const Rest&) {}

void Clear(pb::Value* message, const Rest& rest) {
  if (message->has_struct_value()) {
    Clear(message->mutable_struct_value(), rest);
  } else if (message->has_list_value() && rest.first().any) {
    for (pb::Value& value : *message->mutable_list_value()->mutable_values()) {
      if (rest.last()) {
        value.Clear();
      } else {
        Clear(&value, rest.next());
      }
    }
  }
}

// `rest` starts with a key.
template <typename Map>
void ClearInMap(Map* map, const Rest& rest) {
  if (rest.first().any && rest.last()) {
    map->clear();
    return;
  }
  for (auto it = map->begin(); it != map->end();) {
    if (!rest.first().any && it->first != rest.name()) {
      ++it;
    } else if (rest.last()) {
      it = map->erase(it);
    } else {
      Clear(&it->second, rest.next());
      ++it;
    }
  }
}

void Clear(pb::Struct* message, const Rest& rest) {
  ClearInMap(message->mutable_fields(), rest);
}

void Clear(v1::Resource* message, const Rest& rest) {
  if (rest.name() == "resource") {
    if (rest.last()) {
      message->clear_resource();
    } else if (message->has_resource()) {
      Clear(message->mutable_resource(), rest.next());
    }
  } else if (rest.name() == "connection_details") {
    if (rest.last()) {
      message->clear_connection_details();
    } else {
      ClearInMap(message->mutable_connection_details(), rest.next());
    }
  } else if (rest.name() == "ready") {
    message->clear_ready();
  }
}

void Clear(v1::Resources* message, const Rest& rest) {
  if (rest.last()) {
    message->clear_items();
    return;
  }
  const Rest element = rest.next();
  for (v1::Resource& item : *message->mutable_items()) {
    if (element.last()) {
      item.Clear();
    } else {
      Clear(&item, element.next());
    }
  }
}

void Clear(v1::State* message, const Rest& rest) {
  if (rest.name() == "composite") {
    if (rest.last()) {
      message->clear_composite();
    } else if (message->has_composite()) {
      Clear(message->mutable_composite(), rest.next());
    }
  } else if (rest.name() == "resources") {
    if (rest.last()) {
      message->clear_resources();
    } else {
      ClearInMap(message->mutable_resources(), rest.next());
    }
  }
}

void Clear(v1::Credentials* message, const Rest& rest) {
  if (rest.last()) {
    message->clear_credential_data();
    return;
  }
  if (!message->has_credential_data()) return;
  const Rest data = rest.next();
  if (data.last()) {
    message->mutable_credential_data()->clear_data();
  } else {
    ClearInMap(message->mutable_credential_data()->mutable_data(), data.next());
  }
}

void Clear(v1::Schema* message, const Rest& rest) {
  if (rest.last()) {
    message->clear_openapi_v3();
  } else if (message->has_openapi_v3()) {
    Clear(message->mutable_openapi_v3(), rest.next());
  }
}

void Clear(v1::RequestMeta* message, const Rest& rest) {
  if (rest.name() == "tag") {
    message->clear_tag();
  } else if (rest.last()) {
    message->clear_capabilities();
  } else {
    for (int i = 0; i < message->capabilities_size(); ++i) {
      message->set_capabilities(i, v1::CAPABILITY_UNSPECIFIED);
    }
  }
}

void Clear(v1::RunFunctionRequest* request, const Rest& rest) {
  const std::string& name = rest.name();
  if (rest.last()) {
    const pb::FieldDescriptor* field =
        request->GetDescriptor()->FindFieldByName(name);
    if (field != nullptr) {
      request->GetReflection()->ClearField(request, field);
    }
    return;
  }
  const Rest next = rest.next();
  if (name == "meta") {
    if (request->has_meta()) Clear(request->mutable_meta(), next);
  } else if (name == "observed") {
    if (request->has_observed()) Clear(request->mutable_observed(), next);
  } else if (name == "desired") {
    if (request->has_desired()) Clear(request->mutable_desired(), next);
  } else if (name == "input") {
    if (request->has_input()) Clear(request->mutable_input(), next);
  } else if (name == "context") {
    if (request->has_context()) Clear(request->mutable_context(), next);
  } else if (name == "extra_resources") {
    ClearInMap(ExtraResources(request), next);
  } else if (name == "credentials") {
    ClearInMap(request->mutable_credentials(), next);
  } else if (name == "required_resources") {
    ClearInMap(request->mutable_required_resources(), next);
  } else if (name == "required_schemas") {
    ClearInMap(request->mutable_required_schemas(), next);
  }
}

}  // namespace

void OrderUnknownFields(v1::RunFunctionRequest* request) {
  OrderOwn(request);
  if (request->has_meta()) OrderOwn(request->mutable_meta());
  if (request->has_observed()) OrderAll(request->mutable_observed());
  if (request->has_desired()) OrderAll(request->mutable_desired());
  if (request->has_input()) OrderAll(request->mutable_input());
  if (request->has_context()) OrderAll(request->mutable_context());
  for (auto& [name, resources] : *ExtraResources(request)) {
    OrderAll(&resources);
  }
  for (auto& [name, credentials] : *request->mutable_credentials()) {
    OrderAll(&credentials);
  }
  for (auto& [name, resources] : *request->mutable_required_resources()) {
    OrderAll(&resources);
  }
  for (auto& [name, schema] : *request->mutable_required_schemas()) {
    OrderAll(&schema);
  }
}

void ClearMasked(const MaskSet& masks, v1::RunFunctionRequest* request) {
  if (request->has_meta()) request->mutable_meta()->clear_tag();
  for (const MaskPath& path : masks.paths()) Clear(request, {path, 0});
}

void OrderUnknownFields(v1::RunFunctionResponse* response) {
  OrderOwn(response);
  if (response->has_meta()) OrderAll(response->mutable_meta());
  if (response->has_desired()) OrderAll(response->mutable_desired());
  for (v1::Result& result : *response->mutable_results()) OrderOwn(&result);
  if (response->has_context()) OrderAll(response->mutable_context());
  if (response->has_requirements()) {
    OrderAll(response->mutable_requirements());
  }
  for (v1::Condition& condition : *response->mutable_conditions()) {
    OrderOwn(&condition);
  }
  if (response->has_output()) OrderAll(response->mutable_output());
}

namespace {

bool Parse(const wire::MessageType& type, absl::string_view bytes,
           pb::Message* message) {
  // protobuf logs what it refuses; so it is not given that.
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !wire::Validate(type, bytes)) {
    return false;
  }
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                              static_cast<int>(bytes.size()));
  in.SetRecursionLimit(wire::kMaxDepth);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

// `message` is what was parsed, its unknown fields in order.
bool WritePlain(const pb::Message& message, std::string* plain) {
  // Serializing checks the size, and logs if it is too large.
  const size_t size = message.ByteSizeLong();
  if (size > wire::kMaxWireLength) return false;
  plain->reserve(size);
  pb::io::StringOutputStream stream(plain);
  pb::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  return message.SerializeToCodedStream(&out);
}

template <typename Message>
bool ReencodeAs(const wire::MessageType& type, absl::string_view bytes,
                std::string* plain) {
  plain->clear();
  Message message;
  if (!Parse(type, bytes, &message)) return false;
  OrderUnknownFields(&message);
  return WritePlain(message, plain);
}

}  // namespace

bool ParseRequest(absl::string_view bytes, v1::RunFunctionRequest* request) {
  return Parse(wire::kRunFunctionRequestType, bytes, request);
}

bool Reencode(absl::string_view bytes, std::string* plain) {
  return ReencodeAs<v1::RunFunctionRequest>(wire::kRunFunctionRequestType,
                                            bytes, plain);
}

bool ReencodeResponse(absl::string_view bytes, std::string* plain) {
  return ReencodeAs<v1::RunFunctionResponse>(wire::kRunFunctionResponseType,
                                             bytes, plain);
}

}  // namespace fncache::cache::key
