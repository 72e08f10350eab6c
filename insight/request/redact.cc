// SPDX-License-Identifier: Apache-2.0
#include "insight/request/redact.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/map.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"

namespace fncache::insight::request {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using google::protobuf::Struct;
using google::protobuf::Value;

constexpr char kRedacted[] = "redacted";
constexpr char kLastApplied[] =
    "kubectl.kubernetes.io/last-applied-configuration";

void RedactBytes(google::protobuf::Map<std::string, std::string>* map) {
  const size_t count = map->size();
  map->clear();
  for (size_t i = 1; i <= count; ++i) {
    (*map)[absl::StrCat(kRedacted, "-", i)] = kRedacted;
  }
}

void RedactField(const std::string& name, Struct* object) {
  const auto found = object->mutable_fields()->find(name);
  if (found == object->mutable_fields()->end()) return;
  Value& value = found->second;
  if (!value.has_struct_value()) {
    value.set_string_value(kRedacted);
    return;
  }
  const int count = value.struct_value().fields_size();
  value.mutable_struct_value()->Clear();
  for (int i = 1; i <= count; ++i) {
    (*value.mutable_struct_value()
          ->mutable_fields())[absl::StrCat(kRedacted, "-", i)]
        .set_string_value(kRedacted);
  }
}

bool HasText(const Struct& object, const char* name, const char* text) {
  const auto found = object.fields().find(name);
  return found != object.fields().end() && found->second.string_value() == text;
}

bool IsSecret(const Struct& object) {
  return HasText(object, "kind", "Secret") &&
         HasText(object, "apiVersion", "v1");
}

Struct* FieldOf(Struct* object, const char* name) {
  const auto found = object->mutable_fields()->find(name);
  return found != object->mutable_fields()->end() &&
                 found->second.has_struct_value()
             ? found->second.mutable_struct_value()
             : nullptr;
}

// Redacts copies of the object in its metadata.
void RedactMetadata(Struct* object) {
  Struct* const metadata = FieldOf(object, "metadata");
  if (metadata == nullptr) return;
  // They name the keys of the data.
  metadata->mutable_fields()->erase("managedFields");
  Struct* const annotations = FieldOf(metadata, "annotations");
  if (annotations == nullptr) return;
  const auto applied = annotations->mutable_fields()->find(kLastApplied);
  if (applied != annotations->mutable_fields()->end()) {
    applied->second.set_string_value(kRedacted);
  }
}

bool RedactObject(Struct* object);

bool RedactValue(Value* value) {
  if (value->has_struct_value()) {
    return RedactObject(value->mutable_struct_value());
  }
  bool any = false;
  if (value->has_list_value()) {
    for (Value& one : *value->mutable_list_value()->mutable_values()) {
      any |= RedactValue(&one);
    }
  }
  return any;
}

// Whether `object` is a Secret or contains one at any depth that protobuf
// parses. Some Secrets are in the manifest of another object, or in the
// context.
bool RedactObject(Struct* object) {
  bool any = IsSecret(*object);
  if (any) {
    for (const char* const data : {"data", "stringData", "binaryData"}) {
      RedactField(data, object);
    }
  }
  for (auto& field : *object->mutable_fields()) {
    any |= RedactValue(&field.second);
  }
  if (any) RedactMetadata(object);
  return any;
}

void RedactResource(fn::Resource* resource) {
  if (resource->has_resource()) RedactObject(resource->mutable_resource());
  RedactBytes(resource->mutable_connection_details());
}

void RedactState(fn::State* state) {
  if (state->has_composite()) RedactResource(state->mutable_composite());
  for (auto& one : *state->mutable_resources()) RedactResource(&one.second);
}

void RedactAll(google::protobuf::Map<std::string, fn::Resources>* map) {
  for (auto& one : *map) {
    for (fn::Resource& item : *one.second.mutable_items()) {
      RedactResource(&item);
    }
  }
}

}  // namespace

void Redact(fn::RunFunctionRequest* request) {
  if (request->has_observed()) RedactState(request->mutable_observed());
  if (request->has_desired()) RedactState(request->mutable_desired());
  for (auto& one : *request->mutable_credentials()) {
    // A source that this version does not know.
    one.second.DiscardUnknownFields();
    if (one.second.has_credential_data()) {
      RedactBytes(one.second.mutable_credential_data()->mutable_data());
    }
  }
  RedactAll(request->mutable_required_resources());
  // Deprecated, but runners still send them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  RedactAll(request->mutable_extra_resources());
#pragma GCC diagnostic pop
  if (request->has_input()) RedactObject(request->mutable_input());
  if (request->has_context()) RedactObject(request->mutable_context());
}

void Redact(fn::RunFunctionResponse* response) {
  if (response->has_desired()) RedactState(response->mutable_desired());
  if (response->has_context()) RedactObject(response->mutable_context());
  if (response->has_output()) RedactObject(response->mutable_output());
}

}  // namespace fncache::insight::request
