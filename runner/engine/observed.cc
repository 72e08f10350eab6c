// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/observed.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/metadata.h"
#include "text/quoted.h"

namespace fncache::runner::engine {

using google::protobuf::ListValue;

namespace {

using apiextensions::fn::proto::v1::Resource;

// The Secret that spec.writeConnectionSecretToRef of `object` names, in the
// object's own namespace if it has one. No data if there is none.
absl::Status AddConnectionDetails(const Struct& object,
                                  const ObjectStore& objects,
                                  Resource* resource) {
  const Struct* const reference =
      text::FindMap(object, {"spec", "writeConnectionSecretToRef"});
  if (reference == nullptr) return absl::OkStatus();
  const std::string& own_namespace = NamespaceOf(object);
  const Struct* const secret = objects.Get(
      "v1", "Secret",
      own_namespace.empty() ? text::FindText(*reference, {"namespace"})
                            : own_namespace,
      text::FindText(*reference, {"name"}));
  if (secret == nullptr) return absl::OkStatus();
  absl::StatusOr<std::map<std::string, std::string>> data = SecretData(*secret);
  if (!data.ok()) return data.status();
  for (auto& [key, value] : *data) {
    (*resource->mutable_connection_details())[key] = std::move(value);
  }
  return absl::OkStatus();
}

// The object that `reference` names, if it exists and no other object than the
// composite controls it; else null.
const Struct* Resolve(const Value& reference, const Struct& composite,
                      const ObjectStore& objects) {
  if (!reference.has_struct_value()) return nullptr;
  const Struct& map = reference.struct_value();
  const std::string& name = text::FindText(map, {"name"});
  if (name.empty()) return nullptr;
  const std::string& own_namespace = NamespaceOf(composite);
  const Struct* const object = objects.Get(
      text::FindText(map, {"apiVersion"}), text::FindText(map, {"kind"}),
      own_namespace.empty() ? text::FindText(map, {"namespace"})
                            : own_namespace,
      name);
  if (object == nullptr) return nullptr;
  const absl::optional<OwnerReference> controller = ControllerOf(*object);
  const bool others =
      controller.has_value() && controller->uid != UidOf(composite);
  return others ? nullptr : object;
}

absl::Status AddResource(const Struct& object, const ObjectStore& objects,
                         Observation* observation) {
  const std::string& name = AnnotationOf(object, kResourceNameAnnotation);
  if (name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot get existing composed resources: encountered composed resource "
        "without required ",
        text::Quoted(kResourceNameAnnotation), " annotation"));
  }
  Resource& resource = (*observation->state.mutable_resources())[name];
  resource.Clear();  // the last of two with one name counts
  *resource.mutable_resource() = object;
  observation->resources[name] = &object;
  return Prefixed(
      absl::StrCat("cannot get existing composed resources: cannot fetch "
                   "connection details for composed resource ",
                   text::Quoted(name), " (a ", text::FindText(object, {"kind"}),
                   " named ", NameOf(object), ")"),
      AddConnectionDetails(object, objects, &resource));
}

}  // namespace

absl::Status CheckObserved(const Struct& composite,
                           const std::vector<Struct>& observed) {
  std::vector<std::string> errors;
  std::set<std::string> known;  // equal ones are reported once
  const auto add = [&](std::string error) {
    if (known.insert(error).second) errors.push_back(std::move(error));
  };
  const std::string& own_namespace = NamespaceOf(composite);
  for (const Struct& object : observed) {
    const absl::optional<OwnerReference> controller = ControllerOf(object);
    if (controller.has_value() && controller->uid != UidOf(composite)) {
      add(absl::StrCat(
          "observed resource ", NameOf(object),
          " has a controller ref but is not controlled by the XR"));
    }
    if (!own_namespace.empty() && NamespaceOf(object) != own_namespace) {
      add(absl::StrCat("observed resource ", NameOf(object),
                       " is not in the same namespace as the XR"));
    }
  }
  if (errors.empty()) return absl::OkStatus();
  const std::string joined = absl::StrJoin(errors, ", ");
  return absl::InvalidArgumentError(
      errors.size() == 1
          ? absl::StrCat("invalid observed resources: ", joined)
          : absl::StrCat("invalid observed resources: [", joined, "]"));
}

void ReferToObserved(const std::vector<Struct>& observed,
                     CompositeSchema schema, Struct* composite) {
  if (observed.empty()) return;
  const bool namespaced = !NamespaceOf(*composite).empty();
  Value list;
  ListValue* const references = list.mutable_list_value();
  for (const Struct& object : observed) {
    Value value;
    Struct* const reference = value.mutable_struct_value();
    const auto set = [reference](absl::string_view field,
                                 const std::string& text) {
      if (!text.empty()) text::SetText(reference, {field}, text);
    };
    set("apiVersion", text::FindText(object, {"apiVersion"}));
    set("kind", text::FindText(object, {"kind"}));
    set("name", NameOf(object));
    if (!namespaced) set("namespace", NamespaceOf(object));
    if (reference->fields().empty()) continue;
    *references->add_values() = std::move(value);
  }
  SetOwnField(schema, "resourceRefs", std::move(list), composite);
}

absl::StatusOr<Observation> Observe(const Struct& composite,
                                    CompositeSchema schema,
                                    const ObjectStore& objects) {
  Observation observation;
  const Value* const references =
      FindOwnField(composite, schema, "resourceRefs");
  if (references != nullptr && references->has_list_value()) {
    for (const Value& reference : references->list_value().values()) {
      const Struct* const object = Resolve(reference, composite, objects);
      if (object == nullptr) continue;
      const absl::Status status = AddResource(*object, objects, &observation);
      if (!status.ok()) return status;
    }
  }
  Resource* const observed = observation.state.mutable_composite();
  *observed->mutable_resource() = composite;
  if (schema == CompositeSchema::kLegacy) {
    const absl::Status status =
        AddConnectionDetails(composite, objects, observed);
    if (!status.ok()) {
      return Prefixed("cannot fetch composite resource connection details",
                      status);
    }
  }
  return observation;
}

}  // namespace fncache::runner::engine
