// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/field_owners.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/struct.pb.h"
#include "text/object.h"
#include "text/rfc3339.h"

namespace fncache::runner::load::model {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

constexpr char kApply[] = "Apply";
constexpr char kUpdate[] = "Update";

// Where in an object a value is, as far as its fields' owners depend on it.
enum class Location {
  kRoot,
  kMetadata,
  kStatus,
  kOther,
  kFinalizers,
  kOwners,
  kConditions,
};

Location Below(Location location, absl::string_view name, bool keyed) {
  if (location == Location::kRoot && name == "metadata") {
    return Location::kMetadata;
  }
  if (location == Location::kRoot && name == "status") return Location::kStatus;
  if (location == Location::kMetadata && name == "finalizers") {
    return Location::kFinalizers;
  }
  if (location == Location::kMetadata && name == "ownerReferences") {
    return Location::kOwners;
  }
  if (location == Location::kStatus && name == "conditions" && keyed) {
    return Location::kConditions;
  }
  return Location::kOther;
}

bool HasOwner(Location location, absl::string_view name) {
  if (location == Location::kRoot) {
    return name != "apiVersion" && name != "kind";
  }
  if (location != Location::kMetadata) return true;
  return name == "generateName" || name == "labels" || name == "annotations" ||
         name == "finalizers" || name == "ownerReferences";
}

bool IsKeyed(Location location) {
  return location == Location::kFinalizers || location == Location::kOwners ||
         location == Location::kConditions;
}

std::string InQuotes(const std::string& text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

std::string KeyOf(Location location, const Value& item) {
  switch (location) {
    case Location::kFinalizers:
      return absl::StrCat("v:", InQuotes(item.string_value()));
    case Location::kOwners:
      return absl::StrCat(
          "k:{\"uid\":", InQuotes(text::FindText(item.struct_value(), {"uid"})),
          "}");
    default:
      return absl::StrCat(
          "k:{\"type\":",
          InQuotes(text::FindText(item.struct_value(), {"type"})), "}");
  }
}

Value* Field(Struct* set, const std::string& key) {
  Value* const value = &(*set->mutable_fields())[key];
  if (!value->has_struct_value()) value->mutable_struct_value();
  return value;
}

Struct* Child(Struct* set, const std::string& key) {
  return Field(set, key)->mutable_struct_value();
}

// Adds the fields below `value` to `set`. `with_own`: maps and lists themselves
// are included, as for a writer that made them by an update.
void AddFields(const Value& value, Location location, bool keyed, bool with_own,
               Struct* set) {
  if (value.has_struct_value() && !value.struct_value().fields().empty()) {
    if (with_own && location != Location::kRoot &&
        location != Location::kMetadata) {
      Child(set, ".");
    }
    for (const auto& [name, child] : value.struct_value().fields()) {
      if (!HasOwner(location, name)) continue;
      const std::string key = absl::StrCat("f:", name);
      const Location below = Below(location, name, keyed);
      AddFields(child, below, keyed, with_own, Child(set, key));
      // A name or a uid has no owner.
      if (below == Location::kMetadata && Child(set, key)->fields().empty()) {
        set->mutable_fields()->erase(key);
      }
    }
  } else if (value.has_list_value() && IsKeyed(location)) {
    if (with_own) Child(set, ".");
    for (const Value& item : value.list_value().values()) {
      Struct* const of_item = Child(set, KeyOf(location, item));
      if (location == Location::kConditions) {
        AddFields(item, Location::kOther, keyed, /*with_own=*/true, of_item);
      }
    }
  }
}

const Value* ItemOf(const Value& list, Location location,
                    const std::string& key) {
  for (const Value& item : list.list_value().values()) {
    if (KeyOf(location, item) == key) return &item;
  }
  return nullptr;
}

void DiffChild(const std::string& key, const Value* before, const Value* after,
               Location location, bool keyed, Struct* changed, Struct* removed);

// The fields whose values are others, or new, in `after`, and those that are
// only in `before`. Both are maps, or both keyed lists.
void Diff(const Value& before, const Value& after, Location location,
          bool keyed, Struct* changed, Struct* removed) {
  if (IsKeyed(location)) {
    for (const Value& item : after.list_value().values()) {
      const std::string key = KeyOf(location, item);
      DiffChild(key, ItemOf(before, location, key), &item, Location::kOther,
                keyed, changed, removed);
    }
    for (const Value& item : before.list_value().values()) {
      const std::string key = KeyOf(location, item);
      if (ItemOf(after, location, key) == nullptr) {
        DiffChild(key, &item, nullptr, Location::kOther, keyed, changed,
                  removed);
      }
    }
    return;
  }
  const auto& old_fields = before.struct_value().fields();
  const auto& new_fields = after.struct_value().fields();
  for (const auto& [name, value] : new_fields) {
    if (!HasOwner(location, name)) continue;
    const auto old = old_fields.find(name);
    DiffChild(absl::StrCat("f:", name),
              old == old_fields.end() ? nullptr : &old->second, &value,
              Below(location, name, keyed), keyed, changed, removed);
  }
  for (const auto& [name, value] : old_fields) {
    if (!HasOwner(location, name) || new_fields.contains(name)) continue;
    DiffChild(absl::StrCat("f:", name), &value, nullptr,
              Below(location, name, keyed), keyed, changed, removed);
  }
}

void DiffChild(const std::string& key, const Value* before, const Value* after,
               Location location, bool keyed, Struct* changed,
               Struct* removed) {
  if (after == nullptr) {
    AddFields(*before, location, keyed, /*with_own=*/true, Child(removed, key));
    return;
  }
  const bool both_divisible =
      before != nullptr &&
      ((before->has_struct_value() && after->has_struct_value() &&
        !before->struct_value().fields().empty() &&
        !after->struct_value().fields().empty()) ||
       (IsKeyed(location) && before->has_list_value() &&
        after->has_list_value()));
  if (both_divisible) {
    Struct below_changed;
    Struct below_removed;
    Diff(*before, *after, location, keyed, &below_changed, &below_removed);
    if (!below_changed.fields().empty()) {
      Child(changed, key)->Swap(&below_changed);
    }
    if (!below_removed.fields().empty()) {
      Child(removed, key)->Swap(&below_removed);
    }
  } else if (before == nullptr || !text::Equal(*before, *after)) {
    AddFields(*after, location, keyed, /*with_own=*/true, Child(changed, key));
  }
}

void Subtract(const Struct& minus, Struct* set) {
  for (const auto& [key, below] : minus.fields()) {
    const auto it = set->mutable_fields()->find(key);
    if (it == set->mutable_fields()->end()) continue;
    Struct* const own = it->second.mutable_struct_value();
    if (!below.struct_value().fields().empty()) {
      if (own->fields().empty()) continue;
      Subtract(below.struct_value(), own);
      if (!own->fields().empty()) continue;
    }
    set->mutable_fields()->erase(key);
  }
}

void Unite(const Struct& plus, Struct* set) {
  for (const auto& [key, below] : plus.fields()) {
    Unite(below.struct_value(), Child(set, key));
  }
}

void RemoveFields(const Struct& dropped, Location location, bool keyed,
                  Value* value) {
  if (IsKeyed(location) && value->has_list_value()) {
    ListValue* const list = value->mutable_list_value();
    for (int i = list->values_size() - 1; i >= 0; --i) {
      const auto it = dropped.fields().find(KeyOf(location, list->values(i)));
      if (it == dropped.fields().end()) continue;
      const Struct& below = it->second.struct_value();
      if (below.fields().empty() || below.fields().contains(".")) {
        list->mutable_values()->DeleteSubrange(i, 1);
      } else {
        RemoveFields(below, Location::kOther, keyed, list->mutable_values(i));
      }
    }
    return;
  }
  if (!value->has_struct_value()) return;
  auto* const fields = value->mutable_struct_value()->mutable_fields();
  for (const auto& [key, below] : dropped.fields()) {
    if (!absl::StartsWith(key, "f:")) continue;
    const std::string name = key.substr(2);
    const auto it = fields->find(name);
    if (it == fields->end()) continue;
    if (!below.struct_value().fields().empty()) {
      RemoveFields(below.struct_value(), Below(location, name, keyed), keyed,
                   &it->second);
      const Value& left = it->second;
      const bool empty =
          (left.has_struct_value() && left.struct_value().fields().empty()) ||
          (left.has_list_value() && left.list_value().values().empty());
      if (!empty) continue;
    }
    fields->erase(name);
  }
}

// Puts `wanted` into `value`. Fields that are null are as if they were not
// there, as an API server prunes them.
void Merge(const Value& wanted, Location location, bool keyed, Value* value) {
  if (wanted.has_struct_value() && value->has_struct_value()) {
    for (const auto& [name, child] : wanted.struct_value().fields()) {
      if (!HasOwner(location, name) || text::IsNull(child)) continue;
      Value* const below =
          &(*value->mutable_struct_value()->mutable_fields())[name];
      if (child.has_struct_value() && !below->has_struct_value()) {
        below->mutable_struct_value();
      }
      Merge(child, Below(location, name, keyed), keyed, below);
    }
    return;
  }
  if (IsKeyed(location) && wanted.has_list_value() && value->has_list_value()) {
    for (const Value& item : wanted.list_value().values()) {
      const std::string key = KeyOf(location, item);
      Value* found = nullptr;
      for (Value& own : *value->mutable_list_value()->mutable_values()) {
        if (KeyOf(location, own) == key) found = &own;
      }
      if (found == nullptr) {
        found = value->mutable_list_value()->add_values();
        *found = item;
      } else {
        Merge(item, Location::kOther, keyed, found);
      }
    }
    return;
  }
  *value = wanted;
}

void PruneNulls(Struct* object) {
  std::vector<std::string> nulls;
  for (auto& [name, value] : *object->mutable_fields()) {
    if (text::IsNull(value)) {
      nulls.push_back(name);
    } else if (value.has_struct_value()) {
      PruneNulls(value.mutable_struct_value());
    }
  }
  for (const std::string& name : nulls) object->mutable_fields()->erase(name);
}

Value AsValue(Struct object) {
  Value value;
  value.mutable_struct_value()->Swap(&object);
  return value;
}

// metadata.managedFields, taken out of an object and put back.
class Owners {
 public:
  explicit Owners(const Struct& object) {
    const ListValue* const list =
        text::FindList(object, {"metadata", "managedFields"});
    if (list == nullptr) return;
    for (const Value& entry : list->values()) {
      entries_.push_back(entry.struct_value());
    }
  }

  // The entry's location; made if it is not there.
  size_t Of(const Writer& writer, const char* operation,
            const std::string& api_version) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (text::FindText(entries_[i], {"manager"}) == writer.manager &&
          text::FindText(entries_[i], {"operation"}) == operation &&
          text::FindText(entries_[i], {"subresource"}) == writer.subresource) {
        return i;
      }
    }
    Struct entry;
    text::SetText(&entry, {"apiVersion"}, api_version);
    text::SetText(&entry, {"fieldsType"}, "FieldsV1");
    text::SetText(&entry, {"manager"}, writer.manager);
    text::SetText(&entry, {"operation"}, operation);
    if (!writer.subresource.empty()) {
      text::SetText(&entry, {"subresource"}, writer.subresource);
    }
    text::EnsureMap(&entry, {"fieldsV1"});
    entries_.push_back(std::move(entry));
    return entries_.size() - 1;
  }

  size_t size() const { return entries_.size(); }
  Struct* Fields(size_t i) {
    return text::EnsureMap(&entries_[i], {"fieldsV1"});
  }
  void SetTime(size_t i, absl::Time now) {
    text::SetText(&entries_[i], {"time"}, text::FormatRfc3339(now));
  }

  void PutInto(Struct* object) {
    std::stable_sort(entries_.begin(), entries_.end(), Before);
    Value value;
    ListValue* const list = value.mutable_list_value();
    for (Struct& entry : entries_) {
      const Struct* const fields = text::FindMap(entry, {"fieldsV1"});
      if (fields == nullptr || fields->fields().empty()) continue;
      list->add_values()->mutable_struct_value()->Swap(&entry);
    }
    if (list->values().empty()) {
      text::Remove(object, {"metadata", "managedFields"});
    } else {
      *text::Ensure(object, {"metadata", "managedFields"}) = std::move(value);
    }
  }

 private:
  static bool Before(const Struct& a, const Struct& b) {
    for (const char* const field :
         {"operation", "time", "manager", "subresource"}) {
      const std::string& of_a = text::FindText(a, {field});
      const std::string& of_b = text::FindText(b, {field});
      if (of_a != of_b) return of_a < of_b;
    }
    return false;
  }

  std::vector<Struct> entries_;
};

}  // namespace

bool ApplyTo(const Struct& asked, const Writer& writer, absl::Time now,
             bool keyed, Struct* object) {
  Struct pruned = asked;
  PruneNulls(&pruned);
  const Value wanted = AsValue(std::move(pruned));
  Struct fields;
  AddFields(wanted, Location::kRoot, keyed, /*with_own=*/false, &fields);

  Owners owners(*object);
  const size_t own =
      owners.Of(writer, kApply, text::FindText(*object, {"apiVersion"}));
  Struct dropped = *owners.Fields(own);
  Subtract(fields, &dropped);
  for (size_t i = 0; i < owners.size(); ++i) {
    if (i != own) Subtract(*owners.Fields(i), &dropped);
  }

  const Value before = AsValue(*object);
  Value after = before;
  Merge(wanted, Location::kRoot, keyed, &after);
  RemoveFields(dropped, Location::kRoot, keyed, &after);
  Struct changed;
  Struct removed;
  Diff(before, after, Location::kRoot, keyed, &changed, &removed);
  if (changed.fields().empty() && removed.fields().empty() &&
      text::Equal(fields, *owners.Fields(own))) {
    return false;
  }
  for (size_t i = 0; i < owners.size(); ++i) {
    if (i == own) continue;
    Subtract(changed, owners.Fields(i));
    Subtract(removed, owners.Fields(i));
  }
  owners.Fields(own)->Swap(&fields);
  owners.SetTime(own, now);
  object->Swap(after.mutable_struct_value());
  owners.PutInto(object);
  return true;
}

bool UpdateTo(Struct updated, const Writer& writer, absl::Time now, bool keyed,
              Struct* object) {
  PruneNulls(&updated);
  Value before = AsValue(*object);
  Value after = AsValue(std::move(updated));
  Struct changed;
  Struct removed;
  Diff(before, after, Location::kRoot, keyed, &changed, &removed);
  if (changed.fields().empty() && removed.fields().empty()) return false;
  Owners owners(*object);
  const size_t own =
      owners.Of(writer, kUpdate, text::FindText(*object, {"apiVersion"}));
  for (size_t i = 0; i < owners.size(); ++i) {
    Subtract(removed, owners.Fields(i));
    if (i != own) Subtract(changed, owners.Fields(i));
  }
  Unite(changed, owners.Fields(own));
  owners.SetTime(own, now);
  object->Swap(after.mutable_struct_value());
  owners.PutInto(object);
  return true;
}

}  // namespace fncache::runner::load::model
