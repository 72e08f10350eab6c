// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/object_store.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.pb.h"
#include "text/base64.h"
#include "text/object.h"
#include "text/typed_object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
using google::protobuf::Value;

namespace fn = apiextensions::fn::proto::v1;

namespace {

struct GroupVersionKind {
  absl::string_view group;
  absl::string_view version;
  absl::string_view kind;
};

// Kubernetes reads no group, version or kind out of an apiVersion that it
// cannot parse.
GroupVersionKind Parse(absl::string_view api_version, absl::string_view kind) {
  if (std::count(api_version.begin(), api_version.end(), '/') > 1) return {};
  return {text::GroupOf(api_version), text::VersionOf(api_version), kind};
}

// The kind of the items in a list of `kind`.
absl::string_view ItemKind(absl::string_view kind) {
  constexpr absl::string_view kSuffix = "List";
  if (kind.size() > kSuffix.size() && absl::EndsWith(kind, kSuffix)) {
    kind.remove_suffix(kSuffix.size());
  }
  return kind;
}

// Whether `object` has all of `wanted`. One label that is no text makes all of
// an object's labels unreadable, and a null is "".
bool HasLabels(const Struct& object,
               const google::protobuf::Map<std::string, std::string>& wanted) {
  if (wanted.empty()) return true;
  const Struct* const labels = text::FindMap(object, {"metadata", "labels"});
  if (labels == nullptr) return false;
  for (const auto& [name, value] : labels->fields()) {
    if (value.kind_case() != Value::kStringValue && !text::IsNull(value)) {
      return false;
    }
  }
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto it = labels->fields().find(label.first);
    return it != labels->fields().end() &&
           it->second.string_value() == label.second;
  });
}

// One byte of a Secret that is a list of numbers, of which the reference's
// converter keeps the lowest eight bits.
char OctetOf(const Value& value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  const double number = value.number_value();
  if (number < -kLimit || number >= kLimit) return '\0';
  return static_cast<char>(static_cast<int64_t>(number));
}

absl::StatusOr<std::string> BytesOf(const Value& value) {
  if (!value.has_list_value()) return text::DecodeBase64(value.string_value());
  std::string bytes;
  for (const Value& octet : value.list_value().values()) {
    bytes.push_back(OctetOf(octet));
  }
  return bytes;
}

}  // namespace

ObjectStore::Id ObjectStore::MakeId(absl::string_view api_version,
                                    absl::string_view kind,
                                    absl::string_view object_namespace,
                                    absl::string_view name) {
  const GroupVersionKind parsed = Parse(api_version, kind);
  return {std::string(parsed.group), std::string(parsed.kind),
          std::string(parsed.version), std::string(object_namespace),
          std::string(name)};
}

void ObjectStore::Add(Struct object) {
  own_.push_back(std::move(object));
  Index(own_.back());
}

void ObjectStore::Add(std::shared_ptr<const std::vector<Struct>> objects) {
  for (const Struct& object : *objects) Index(object);
  shared_.push_back(std::move(objects));
}

void ObjectStore::Index(const Struct& object) {
  Id id = MakeId(text::FindText(object, {"apiVersion"}),
                 text::FindText(object, {"kind"}),
                 text::FindText(object, {"metadata", "namespace"}),
                 text::FindText(object, {"metadata", "name"}));
  objects_[std::move(id)] = &object;
}

const Struct* ObjectStore::Get(absl::string_view api_version,
                               absl::string_view kind,
                               absl::string_view object_namespace,
                               absl::string_view name) const {
  const auto it =
      objects_.find(MakeId(api_version, kind, object_namespace, name));
  return it == objects_.end() ? nullptr : it->second;
}

fn::Resources ObjectStore::Select(const fn::ResourceSelector& selector) const {
  fn::Resources found;
  if (selector.has_match_name()) {
    const Struct* const object =
        Get(selector.api_version(), selector.kind(), selector.namespace_(),
            selector.match_name());
    if (object != nullptr) *found.add_items()->mutable_resource() = *object;
    return found;
  }
  const GroupVersionKind wanted =
      Parse(selector.api_version(), ItemKind(selector.kind()));
  std::vector<std::pair<std::string, const Struct*>> objects;
  const Id first(std::string(wanted.group), std::string(wanted.kind), "", "",
                 "");
  for (auto it = objects_.lower_bound(first); it != objects_.end(); ++it) {
    const auto& [group, kind, version, object_namespace, name] = it->first;
    if (group != wanted.group || kind != wanted.kind) break;
    // The reference runner's store lets an object without a version pass, too.
    if (!wanted.version.empty() && !version.empty() &&
        version != wanted.version) {
      continue;
    }
    if (!selector.namespace_().empty() &&
        object_namespace != selector.namespace_()) {
      continue;
    }
    if (!HasLabels(*it->second, selector.match_labels().labels())) continue;
    objects.emplace_back(absl::StrCat(object_namespace, "/", name), it->second);
  }
  std::stable_sort(
      objects.begin(), objects.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  found.mutable_items()->Reserve(static_cast<int>(objects.size()));
  for (const auto& [name, object] : objects) {
    *found.add_items()->mutable_resource() = *object;
  }
  return found;
}

absl::StatusOr<std::map<std::string, std::string>> SecretData(
    const Struct& secret) {
  const absl::Status form = text::CheckUnstructured(text::ObjectType::kSecret,
                                                    text::FromStruct(secret));
  if (!form.ok()) return form;
  std::map<std::string, std::string> decoded;
  const Struct* const data = text::FindMap(secret, {"data"});
  if (data == nullptr) return decoded;
  for (const auto& [name, value] : data->fields()) {
    const absl::StatusOr<std::string> bytes = BytesOf(value);
    if (!bytes.ok()) return bytes.status();
    decoded[name] = *bytes;
  }
  return decoded;
}

}  // namespace fncache::runner::engine
