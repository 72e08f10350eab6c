// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composed_resources.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/sha256.h"
#include "common/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/metadata.h"
#include "sdk/schema/group_version.h"
#include "text/quoted.h"

namespace fncache::runner::engine {

using google::protobuf::ListValue;

namespace {

using apiextensions::fn::proto::v1::Resource;
using apiextensions::fn::proto::v1::State;
using sdk::schema::ParseGroupVersion;

constexpr size_t kHashLength = 12;
constexpr size_t kMaxGeneratedLength = 63;
constexpr size_t kMaxNameLength = 253;

// The fields of the composite that all its resources get.
struct Parent {
  std::string prefix;
  std::string own_namespace;  // "" = cluster-scoped
  OwnerReference owner;
  Texts labels;
};

Parent ParentOf(const Struct& composite) {
  Parent parent;
  parent.prefix = LabelOf(composite, kCompositeLabel);
  parent.own_namespace = NamespaceOf(composite);
  parent.owner.api_version = text::FindText(composite, {"apiVersion"});
  parent.owner.kind = text::FindText(composite, {"kind"});
  parent.owner.name = NameOf(composite);
  parent.owner.uid = UidOf(composite);
  parent.owner.controller = true;
  parent.owner.block_owner_deletion = true;
  parent.labels.emplace_back(kCompositeLabel, parent.prefix);
  const std::string& claim = LabelOf(composite, kClaimNameLabel);
  const std::string& claim_namespace = LabelOf(composite, kClaimNamespaceLabel);
  if (!claim.empty() && !claim_namespace.empty()) {
    parent.labels.emplace_back(kClaimNameLabel, claim);
    parent.labels.emplace_back(kClaimNamespaceLabel, claim_namespace);
  }
  return parent;
}

// Makes a name as Kubernetes does for an object that has only a generateName,
// of letters that form no words.
std::string RandomName(absl::string_view generate_name,
                       const RandomSource& random) {
  constexpr absl::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  constexpr size_t kRandomLength = 5;
  std::string name(
      generate_name.substr(0, kMaxGeneratedLength - kRandomLength));
  for (size_t i = 0; i < kRandomLength; ++i) {
    name.push_back(kLetters[random() % kLetters.size()]);
  }
  return name;
}

// Keeps the name that an observed resource has.
void KeepName(const Struct& observed, Struct* resource) {
  for (const absl::string_view field : {"namespace", "name", "generateName"}) {
    SetMetadataText(resource, field,
                    text::FindText(observed, {"metadata", field}));
  }
}

absl::Status SetComposedMetadata(const std::string& name, const Parent& parent,
                                 Struct* resource) {
  if (parent.prefix.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot find top-level composite resource name label ",
        text::Quoted(kCompositeLabel), " in composite resource metadata"));
  }
  if (NameOf(*resource).empty() &&
      text::FindText(*resource, {"metadata", "generateName"}).empty()) {
    SetMetadataText(resource, "generateName", absl::StrCat(parent.prefix, "-"));
  }
  if (!parent.own_namespace.empty()) {
    SetMetadataText(resource, "namespace", parent.own_namespace);
  }
  if (!name.empty()) {
    AddAnnotations(resource, {{kResourceNameAnnotation, name}});
  }
  AddLabels(resource, parent.labels);
  return Prefixed("cannot set controller reference",
                  SetController(parent.owner, resource));
}

// Gives a resource that lacks kind or apiVersion an empty one, as the reference
// runner prints it. An apiVersion that it cannot parse leaves neither.
void CompleteType(Struct* resource) {
  const bool parsed =
      ParseGroupVersion(text::FindText(*resource, {"apiVersion"})).ok();
  for (const absl::string_view field : {"apiVersion", "kind"}) {
    const Value* const value = text::Find(*resource, {field});
    if (!parsed || value == nullptr ||
        value->kind_case() != Value::kStringValue) {
      text::SetText(resource, {field}, "");
    }
  }
}

absl::Status ComposeOne(const std::string& name, const Parent& parent,
                        const RandomSource& random, Struct* resource,
                        std::vector<Event>* events) {
  const std::string& wanted = NamespaceOf(*resource);
  if (!parent.own_namespace.empty() && !wanted.empty() &&
      wanted != parent.own_namespace) {
    events->push_back(WarningEvent(
        "NamespaceOverridden",
        absl::StrCat("cannot create composed resource ", text::Quoted(name),
                     " in namespace ", text::Quoted(wanted),
                     ", using XR namespace ",
                     text::Quoted(parent.own_namespace), " instead")));
  }
  const absl::Status status = SetComposedMetadata(name, parent, resource);
  if (!status.ok()) {
    return Prefixed(
        absl::StrCat("cannot render metadata for composed resource ",
                     text::Quoted(name)),
        status);
  }
  if (NameOf(*resource).empty()) {
    const std::string& generate_name =
        text::FindText(*resource, {"metadata", "generateName"});
    SetMetadataText(resource, "name",
                    name.empty()
                        ? RandomName(generate_name, random)
                        : ComposedName(generate_name, parent.owner.uid, name));
  }
  CompleteType(resource);
  const std::string& final_name = NameOf(*resource);
  if (!IsValidName(text::FindText(*resource, {"apiVersion"}),
                   text::FindText(*resource, {"kind"}), final_name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot apply composed resource ", text::Quoted(name),
        " because it has an invalid name ", text::Quoted(final_name),
        ". Must be a valid RFC 1123 subdomain name."));
  }
  return absl::OkStatus();
}

// The references to `resources`, sorted by apiVersion, kind, name and namespace
// put together into one text, as the reference runner sorts them.
Value References(const std::vector<ComposedResource>& resources,
                 bool namespaced) {
  std::vector<std::pair<std::string, Value>> sorted;
  sorted.reserve(resources.size());
  for (const ComposedResource& composed : resources) {
    const Struct& resource = composed.resource;
    const std::string& api_version = text::FindText(resource, {"apiVersion"});
    const std::string& kind = text::FindText(resource, {"kind"});
    const std::string object_namespace =
        namespaced ? std::string() : NamespaceOf(resource);
    Value value;
    Struct* const reference = value.mutable_struct_value();
    const auto set = [reference](absl::string_view field,
                                 const std::string& text) {
      if (!text.empty()) text::SetText(reference, {field}, text);
    };
    set("apiVersion", api_version);
    set("kind", kind);
    set("name", NameOf(resource));
    set("namespace", object_namespace);
    set("uid", UidOf(resource));
    sorted.emplace_back(
        absl::StrCat(api_version, kind, NameOf(resource), object_namespace),
        std::move(value));
  }
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  Value list;
  ListValue* const values = list.mutable_list_value();
  values->mutable_values()->Reserve(static_cast<int>(sorted.size()));
  for (auto& [key, value] : sorted) *values->add_values() = std::move(value);
  return list;
}

}  // namespace

absl::StatusOr<Composed> Compose(const Struct& composite,
                                 const ObservedResources& observed,
                                 State desired, const RandomSource& random) {
  Composed composed;
  const Parent parent = ParentOf(composite);
  // A protobuf map has no order of its own.
  std::vector<std::pair<std::string, Resource*>> sorted;
  sorted.reserve(desired.resources_size());
  for (auto& [name, resource] : *desired.mutable_resources()) {
    sorted.emplace_back(name, &resource);
  }
  std::sort(sorted.begin(), sorted.end());
  composed.resources.reserve(sorted.size());
  for (auto& [name, resource] : sorted) {
    ComposedResource one;
    one.name = name;
    one.resource.Swap(resource->mutable_resource());
    one.ready = resource->ready() == apiextensions::fn::proto::v1::READY_TRUE;
    const auto existing = observed.find(name);
    if (existing != observed.end()) KeepName(*existing->second, &one.resource);
    const absl::Status status =
        ComposeOne(name, parent, random, &one.resource, &composed.events);
    if (!status.ok()) return status;
    composed.resources.push_back(std::move(one));
  }

  for (const auto& [name, object] : observed) {
    if (desired.resources().contains(name)) continue;
    const absl::optional<OwnerReference> controller = ControllerOf(*object);
    if (!controller.has_value() || controller->uid != parent.owner.uid) {
      continue;
    }
    composed.deleted.push_back(*object);
    RemoveLabels(&composed.deleted.back(),
                 {kCompositeLabel, kClaimNameLabel, kClaimNamespaceLabel});
  }
  composed.references =
      References(composed.resources, !parent.own_namespace.empty());
  return composed;
}

std::string ComposedName(absl::string_view generate_name,
                         absl::string_view composite_uid,
                         absl::string_view name) {
  std::string prefix(generate_name);
  if (!absl::EndsWith(prefix, "-")) prefix.push_back('-');
  constexpr size_t kMaxPrefix = kMaxGeneratedLength - kHashLength;
  if (prefix.size() > kMaxPrefix) {
    prefix.resize(prefix[kMaxPrefix - 1] == '-' ? kMaxPrefix : kMaxPrefix - 1);
    if (prefix.size() < kMaxPrefix) prefix.push_back('-');
  }
  return absl::StrCat(
      prefix,
      Sha256Hex(absl::StrCat(composite_uid, name)).substr(0, kHashLength));
}

bool IsValidName(absl::string_view api_version, absl::string_view kind,
                 absl::string_view name) {
  const bool rbac = text::GroupOf(api_version) == "rbac.authorization.k8s.io" &&
                    (kind == "Role" || kind == "ClusterRole" ||
                     kind == "RoleBinding" || kind == "ClusterRoleBinding");
  const std::string without_colons =
      rbac ? absl::StrReplaceAll(name, {{":", ""}}) : std::string();
  if (rbac) name = without_colons;
  if (name.empty() || name.size() > kMaxNameLength) return false;
  const auto word = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c);
  };
  // Its labels are letters and digits, with dashes between those, and dots
  // between the labels.
  char before = '.';
  for (const char c : name) {
    if (c == '.') {
      if (!word(before)) return false;
    } else if (c == '-') {
      if (before == '.') return false;
    } else if (!word(c)) {
      return false;
    }
    before = c;
  }
  return word(before);
}

}  // namespace fncache::runner::engine
