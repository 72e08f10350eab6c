// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/schema.h"

namespace fncache::cache::wire {
namespace {

using K = FieldKind;
using L = FieldLabel;

constexpr FieldType kRunFunctionRequestFields[] = {
    {1, "meta", K::kMessage, L::kExplicit, &kRequestMetaType},
    {2, "observed", K::kMessage, L::kExplicit, &kStateType},
    {3, "desired", K::kMessage, L::kExplicit, &kStateType},
    {4, "input", K::kMessage, L::kExplicit, &kStructType},
    {5, "context", K::kMessage, L::kExplicit, &kStructType},
    {6, "extra_resources", K::kMessage, L::kMap, &kResourcesType},
    {7, "credentials", K::kMessage, L::kMap, &kCredentialsType},
    {8, "required_resources", K::kMessage, L::kMap, &kResourcesType},
    {9, "required_schemas", K::kMessage, L::kMap, &kSchemaType},
};
constexpr FieldType kRequestMetaFields[] = {
    {1, "tag", K::kString, L::kImplicit},
    {2, "capabilities", K::kEnum, L::kRepeated},
};
constexpr FieldType kStateFields[] = {
    {1, "composite", K::kMessage, L::kExplicit, &kResourceType},
    {2, "resources", K::kMessage, L::kMap, &kResourceType},
};
constexpr FieldType kResourceFields[] = {
    {1, "resource", K::kMessage, L::kExplicit, &kStructType},
    {2, "connection_details", K::kBytes, L::kMap},
    {3, "ready", K::kEnum, L::kImplicit},
};
constexpr FieldType kResourcesFields[] = {
    {1, "items", K::kMessage, L::kRepeated, &kResourceType},
};
constexpr FieldType kCredentialsFields[] = {
    {1, "credential_data", K::kMessage, L::kExplicit, &kCredentialDataType},
};
constexpr FieldType kCredentialDataFields[] = {
    {1, "data", K::kBytes, L::kMap},
};
constexpr FieldType kSchemaFields[] = {
    {1, "openapi_v3", K::kMessage, L::kExplicit, &kStructType},
};

constexpr FieldType kRunFunctionResponseFields[] = {
    {1, "meta", K::kMessage, L::kExplicit, &kResponseMetaType},
    {2, "desired", K::kMessage, L::kExplicit, &kStateType},
    {3, "results", K::kMessage, L::kRepeated, &kResultType},
    {4, "context", K::kMessage, L::kExplicit, &kStructType},
    {5, "requirements", K::kMessage, L::kExplicit, &kRequirementsType},
    {6, "conditions", K::kMessage, L::kRepeated, &kConditionType},
    {7, "output", K::kMessage, L::kExplicit, &kStructType},
};
constexpr FieldType kResponseMetaFields[] = {
    {1, "tag", K::kString, L::kImplicit},
    {2, "ttl", K::kMessage, L::kExplicit, &kDurationType},
};
constexpr FieldType kResultFields[] = {
    {1, "severity", K::kEnum, L::kImplicit},
    {2, "message", K::kString, L::kImplicit},
    {3, "reason", K::kString, L::kExplicit},
    {4, "target", K::kEnum, L::kExplicit},
};
constexpr FieldType kConditionFields[] = {
    {1, "type", K::kString, L::kImplicit},
    {2, "status", K::kEnum, L::kImplicit},
    {3, "reason", K::kString, L::kImplicit},
    {4, "message", K::kString, L::kExplicit},
    {5, "target", K::kEnum, L::kExplicit},
};
constexpr FieldType kRequirementsFields[] = {
    {1, "extra_resources", K::kMessage, L::kMap, &kResourceSelectorType},
    {2, "resources", K::kMessage, L::kMap, &kResourceSelectorType},
    {3, "schemas", K::kMessage, L::kMap, &kSchemaSelectorType},
};
constexpr FieldType kResourceSelectorFields[] = {
    {1, "api_version", K::kString, L::kImplicit},
    {2, "kind", K::kString, L::kImplicit},
    {3, "match_name", K::kString, L::kExplicit, nullptr, true},
    {4, "match_labels", K::kMessage, L::kExplicit, &kMatchLabelsType, true},
    {5, "namespace", K::kString, L::kExplicit},
};
constexpr FieldType kMatchLabelsFields[] = {
    {1, "labels", K::kString, L::kMap},
};
constexpr FieldType kSchemaSelectorFields[] = {
    {1, "api_version", K::kString, L::kImplicit},
    {2, "kind", K::kString, L::kImplicit},
};

constexpr FieldType kStructFields[] = {
    {1, "fields", K::kMessage, L::kMap, &kValueType},
};
constexpr FieldType kValueFields[] = {
    {1, "null_value", K::kEnum, L::kExplicit, nullptr, true},
    {2, "number_value", K::kDouble, L::kExplicit, nullptr, true},
    {3, "string_value", K::kString, L::kExplicit, nullptr, true},
    {4, "bool_value", K::kBool, L::kExplicit, nullptr, true},
    {5, "struct_value", K::kMessage, L::kExplicit, &kStructType, true},
    {6, "list_value", K::kMessage, L::kExplicit, &kListValueType, true},
};
constexpr FieldType kListValueFields[] = {
    {1, "values", K::kMessage, L::kRepeated, &kValueType},
};
constexpr FieldType kDurationFields[] = {
    {1, "seconds", K::kInt64, L::kImplicit},
    {2, "nanos", K::kInt32, L::kImplicit},
};

template <size_t n>
constexpr MessageType Type(absl::string_view name,
                           const FieldType (&fields)[n]) {
  return {name, fields, n};
}

}  // namespace

const MessageType kRunFunctionRequestType =
    Type("RunFunctionRequest", kRunFunctionRequestFields);
const MessageType kRequestMetaType = Type("RequestMeta", kRequestMetaFields);
const MessageType kStateType = Type("State", kStateFields);
const MessageType kResourceType = Type("Resource", kResourceFields);
const MessageType kResourcesType = Type("Resources", kResourcesFields);
const MessageType kCredentialsType = Type("Credentials", kCredentialsFields);
const MessageType kCredentialDataType =
    Type("CredentialData", kCredentialDataFields);
const MessageType kSchemaType = Type("Schema", kSchemaFields);
const MessageType kRunFunctionResponseType =
    Type("RunFunctionResponse", kRunFunctionResponseFields);
const MessageType kResponseMetaType = Type("ResponseMeta", kResponseMetaFields);
const MessageType kResultType = Type("Result", kResultFields);
const MessageType kConditionType = Type("Condition", kConditionFields);
const MessageType kRequirementsType = Type("Requirements", kRequirementsFields);
const MessageType kResourceSelectorType =
    Type("ResourceSelector", kResourceSelectorFields);
const MessageType kMatchLabelsType = Type("MatchLabels", kMatchLabelsFields);
const MessageType kSchemaSelectorType =
    Type("SchemaSelector", kSchemaSelectorFields);
const MessageType kStructType = Type("Struct", kStructFields);
const MessageType kValueType = Type("Value", kValueFields);
const MessageType kListValueType = Type("ListValue", kListValueFields);
const MessageType kDurationType = Type("Duration", kDurationFields);

const FieldType* MessageType::Find(absl::string_view field_name) const {
  for (size_t i = 0; i < field_count; ++i) {
    if (fields[i].name == field_name) return &fields[i];
  }
  return nullptr;
}

}  // namespace fncache::cache::wire
