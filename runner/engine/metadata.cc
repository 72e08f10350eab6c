// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/metadata.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"

namespace fncache::runner::engine {

using google::protobuf::ListValue;

namespace {

const std::string& NoText() {
  static const std::string* const kNone = new std::string;
  return *kNone;
}

// The map metadata.FIELD if it is one of texts only, else null. A null in it is
// the text "".
const Struct* TextsOf(const Struct& object, absl::string_view field) {
  const Struct* const map = text::FindMap(object, {"metadata", field});
  if (map == nullptr) return nullptr;
  const auto& fields = map->fields();
  const bool texts_only =
      std::all_of(fields.begin(), fields.end(), [](const auto& entry) {
        return entry.second.kind_case() == Value::kStringValue ||
               text::IsNull(entry.second);
      });
  return texts_only ? map : nullptr;
}

const std::string& TextOf(const Struct& object, absl::string_view field,
                          absl::string_view key) {
  const Struct* const texts = TextsOf(object, field);
  return texts == nullptr ? NoText() : text::FindText(*texts, {key});
}

// The reference writes the whole map back when it changes one of its texts.
void WriteNulls(Struct* texts) {
  for (auto& [key, value] : *texts->mutable_fields()) {
    if (text::IsNull(value)) value.set_string_value("");
  }
}

void AddTexts(Struct* object, absl::string_view field, const Texts& texts) {
  if (TextsOf(*object, field) == nullptr) {
    Value empty;
    empty.mutable_struct_value();
    if (!SetNested(object, {"metadata", field}, std::move(empty))) return;
  }
  Struct* const map = text::EnsureMap(object, {"metadata", field});
  WriteNulls(map);
  for (const auto& [key, text] : texts) {
    (*map->mutable_fields())[std::string(key)].set_string_value(text);
  }
}

absl::optional<bool> BoolAt(const Struct& map, absl::string_view field) {
  const Value* const value = text::Find(map, {field});
  if (value == nullptr || value->kind_case() != Value::kBoolValue) {
    return absl::nullopt;
  }
  return value->bool_value();
}

Value Encode(const OwnerReference& owner) {
  Value value;
  Struct* const map = value.mutable_struct_value();
  text::SetText(map, {"apiVersion"}, owner.api_version);
  text::SetText(map, {"kind"}, owner.kind);
  text::SetText(map, {"name"}, owner.name);
  text::SetText(map, {"uid"}, owner.uid);
  if (owner.controller.has_value()) {
    *text::Ensure(map, {"controller"}) = text::BoolValue(*owner.controller);
  }
  if (owner.block_owner_deletion.has_value()) {
    *text::Ensure(map, {"blockOwnerDeletion"}) =
        text::BoolValue(*owner.block_owner_deletion);
  }
  return value;
}

}  // namespace

bool SetNested(Struct* object, text::ObjectPath path, Value value) {
  Struct* at = object;
  const absl::string_view* const last = path.end() - 1;
  for (const absl::string_view* name = path.begin(); name != last; ++name) {
    auto* const fields = at->mutable_fields();
    const auto it = fields->find(std::string(*name));
    if (it == fields->end()) {
      at = (*fields)[std::string(*name)].mutable_struct_value();
    } else if (it->second.has_struct_value()) {
      at = it->second.mutable_struct_value();
    } else {
      return false;
    }
  }
  (*at->mutable_fields())[std::string(*last)] = std::move(value);
  return true;
}

const std::string& NameOf(const Struct& object) {
  return text::FindText(object, {"metadata", "name"});
}

const std::string& NamespaceOf(const Struct& object) {
  return text::FindText(object, {"metadata", "namespace"});
}

const std::string& UidOf(const Struct& object) {
  return text::FindText(object, {"metadata", "uid"});
}

const std::string& LabelOf(const Struct& object, absl::string_view key) {
  return TextOf(object, "labels", key);
}

const std::string& AnnotationOf(const Struct& object, absl::string_view key) {
  return TextOf(object, "annotations", key);
}

void SetMetadataText(Struct* object, absl::string_view field,
                     absl::string_view text) {
  if (text.empty()) {
    text::Remove(object, {"metadata", field});
  } else {
    SetNested(object, {"metadata", field}, text::TextValue(text));
  }
}

void AddLabels(Struct* object, const Texts& labels) {
  AddTexts(object, "labels", labels);
}

void AddAnnotations(Struct* object, const Texts& annotations) {
  AddTexts(object, "annotations", annotations);
}

void RemoveLabels(Struct* object, const std::vector<absl::string_view>& keys) {
  if (TextsOf(*object, "labels") == nullptr) return;
  WriteNulls(text::EnsureMap(object, {"metadata", "labels"}));
  for (const absl::string_view key : keys) {
    text::Remove(object, {"metadata", "labels", key});
  }
}

std::vector<OwnerReference> OwnerReferencesOf(const Struct& object) {
  std::vector<OwnerReference> owners;
  const ListValue* const list =
      text::FindList(object, {"metadata", "ownerReferences"});
  if (list == nullptr) return owners;
  owners.reserve(list->values_size());
  for (const Value& value : list->values()) {
    if (!value.has_struct_value()) return {};
    const Struct& map = value.struct_value();
    OwnerReference owner;
    owner.api_version = text::FindText(map, {"apiVersion"});
    owner.kind = text::FindText(map, {"kind"});
    owner.name = text::FindText(map, {"name"});
    owner.uid = text::FindText(map, {"uid"});
    owner.controller = BoolAt(map, "controller");
    owner.block_owner_deletion = BoolAt(map, "blockOwnerDeletion");
    owners.push_back(std::move(owner));
  }
  return owners;
}

absl::optional<OwnerReference> ControllerOf(const Struct& object) {
  for (OwnerReference& owner : OwnerReferencesOf(object)) {
    if (owner.controller.value_or(false)) return std::move(owner);
  }
  return absl::nullopt;
}

absl::Status SetController(const OwnerReference& owner, Struct* object) {
  const absl::optional<OwnerReference> controller = ControllerOf(*object);
  if (controller.has_value() && controller->uid != owner.uid) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(*object), " is already controlled by ", controller->kind, " ",
        controller->name, " (UID ", controller->uid, ")"));
  }
  std::vector<OwnerReference> owners = OwnerReferencesOf(*object);
  const auto same = std::find_if(
      owners.begin(), owners.end(),
      [&](const OwnerReference& other) { return other.uid == owner.uid; });
  if (same != owners.end()) {
    *same = owner;
  } else {
    owners.push_back(owner);
  }
  Value list;
  ListValue* const values = list.mutable_list_value();
  for (const OwnerReference& each : owners) {
    *values->add_values() = Encode(each);
  }
  SetNested(object, {"metadata", "ownerReferences"}, std::move(list));
  return absl::OkStatus();
}

}  // namespace fncache::runner::engine
