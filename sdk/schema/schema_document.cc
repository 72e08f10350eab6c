// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/schema_document.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"

namespace fncache::sdk::schema {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr char kReferencePrefix[] = "#/components/schemas/";
constexpr size_t kValueBytes = 64;

// The maps of its x-kubernetes-group-version-kind; `*length` is how many values
// the list has.
std::vector<const text::Json*> KindsOf(const text::Json& component,
                                       size_t* length) {
  std::vector<const text::Json*> kinds;
  const text::Json* const list =
      text::Find(component, {"x-kubernetes-group-version-kind"});
  *length = list != nullptr && list->is_array() ? list->size() : 0;
  for (size_t i = 0; i < *length; ++i) {
    const text::Json& entry = *(list->begin() + static_cast<ptrdiff_t>(i));
    if (entry.is_object()) kinds.push_back(&entry);
  }
  return kinds;
}

const text::Json& ComponentsOf(const text::Json& document) {
  static const text::Json* const none = new text::Json(text::Json::object());
  const text::Json* const schemas =
      text::Find(document, {"components", "schemas"});
  return schemas != nullptr && schemas->is_object() ? *schemas : *none;
}

// The reference of the schema, its own or one in its allOf; null if it has
// none.
const std::string* ReferenceOf(const text::Json& schema) {
  const text::Json* const reference = text::Find(schema, {"$ref"});
  if (reference != nullptr && reference->is_string()) {
    return reference->get_ptr<const std::string*>();
  }
  const text::Json* const all = text::Find(schema, {"allOf"});
  if (all == nullptr || !all->is_array()) return nullptr;
  for (const text::Json& one : *all) {
    const std::string* const found = ReferenceOf(one);
    if (found != nullptr) return found;
  }
  return nullptr;
}

// Copies one schema with what it refers to in place.
class Flattener {
 public:
  explicit Flattener(const text::Json& components) : components_(components) {}

  // The component may be a reference itself.
  absl::Status Component(const std::string& name, Value* out) {
    expanding_.insert(absl::StrCat(kReferencePrefix, name));
    return Schema(*components_.find(name), 0, out);
  }

 private:
  absl::Status Schema(const text::Json& schema, int depth, Value* out) {
    const std::string* const reference = ReferenceOf(schema);
    if (reference == nullptr) return Expanded(schema, depth, out);
    // By its text, as the reference compares it: "T" is another reference than
    // "#/components/schemas/T", though both have the same target.
    if (!expanding_.insert(*reference).second) {
      Struct* const object = out->mutable_struct_value();
      (*object->mutable_fields())["type"].set_string_value("object");
      return Take(2 * kValueBytes);
    }
    absl::string_view name = *reference;
    absl::ConsumePrefix(&name, kReferencePrefix);
    const auto target = components_.find(std::string(name));
    if (target == components_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("internal error: cannot resolve Ref \"", *reference,
                       "\": schema not found"));
    }
    absl::Status status = Expanded(*target, depth, out);
    expanding_.erase(*reference);
    return status;
  }

  // A schema whose own reference is followed already, or stays.
  absl::Status Expanded(const text::Json& schema, int depth, Value* out) {
    if (!schema.is_object()) return Copy(schema, depth, out);
    absl::Status status = Enter(depth);
    auto* const fields = out->mutable_struct_value()->mutable_fields();
    for (auto field = schema.begin(); status.ok() && field != schema.end();
         ++field) {
      const std::string& name = field.key();
      status = Take(name.size());
      if (!status.ok()) break;
      Value* const value = &(*fields)[name];
      if (name == "properties" && field->is_object()) {
        status = Properties(*field, depth + 1, value);
      } else if (name == "items" || name == "additionalProperties") {
        status = Schema(*field, depth + 1, value);
      } else {
        status = Copy(*field, depth + 1, value);
      }
    }
    return status;
  }

  absl::Status Properties(const text::Json& properties, int depth, Value* out) {
    absl::Status status = Enter(depth);
    auto* const fields = out->mutable_struct_value()->mutable_fields();
    for (auto field = properties.begin();
         status.ok() && field != properties.end(); ++field) {
      status = Take(field.key().size());
      if (status.ok()) {
        status = Schema(*field, depth + 1, &(*fields)[field.key()]);
      }
    }
    return status;
  }

  // Copies a value unchanged, references too.
  absl::Status Copy(const text::Json& json, int depth, Value* out) {
    absl::Status status = Enter(depth);
    if (!status.ok()) return status;
    if (json.is_object()) {
      auto* const fields = out->mutable_struct_value()->mutable_fields();
      for (auto field = json.begin(); status.ok() && field != json.end();
           ++field) {
        status = Take(field.key().size());
        if (status.ok()) {
          status = Copy(*field, depth + 1, &(*fields)[field.key()]);
        }
      }
      return status;
    }
    if (json.is_array()) {
      auto* const list = out->mutable_list_value();
      for (const text::Json& element : json) {
        status = Copy(element, depth + 1, list->add_values());
        if (!status.ok()) return status;
      }
      return status;
    }
    const auto* const text = json.get_ptr<const std::string*>();
    status = Take(text == nullptr ? 0 : text->size());
    if (status.ok()) *out = text::ToValue(json);
    return status;
  }

  absl::Status Enter(int depth) {
    if (depth >= text::kMaxJsonDepth) {
      return absl::ResourceExhaustedError(
          absl::StrCat("flattened, the schema is nested more than ",
                       text::kMaxJsonDepth, " levels deep"));
    }
    return Take(kValueBytes);
  }

  absl::Status Take(size_t bytes) {
    taken_ += bytes;
    if (taken_ <= kMaxFlattenedBytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("flattened, the schema is larger than ",
                     kMaxFlattenedBytes >> 20, " MiB"));
  }

  const text::Json& components_;
  absl::flat_hash_set<std::string> expanding_;  // references
  size_t taken_ = 0;
};

}  // namespace

SchemaDocument::SchemaDocument(text::Json document)
    : document_(std::make_unique<const text::Json>(std::move(document))) {
  const text::Json& components = ComponentsOf(*document_);
  for (auto it = components.begin(); it != components.end(); ++it) {
    size_t length = 0;
    for (const text::Json* const entry : KindsOf(*it, &length)) {
      GroupVersion names{text::FindText(*entry, {"group"}),
                         text::FindText(*entry, {"version"})};
      if (length == 1) {
        kinds_.emplace(Kind(absl::AsciiStrToLower(names.group),
                            absl::AsciiStrToLower(names.version),
                            text::FindText(*entry, {"kind"})),
                       it.key());
      }
      group_versions_.insert(std::move(names));
    }
  }
}

SchemaDocument::~SchemaDocument() = default;

FoundSchema SchemaDocument::Find(const GroupVersion& group_version,
                                 const std::string& kind) {
  const auto component =
      kinds_.find(Kind(absl::AsciiStrToLower(group_version.group),
                       absl::AsciiStrToLower(group_version.version), kind));
  if (component == kinds_.end()) return absl::optional<Struct>();
  MutexLock lock(&mutex_);
  const auto known = flattened_.find(component->second);
  if (known != flattened_.end()) return known->second;
  Value value;
  const absl::Status status =
      Flattener(ComponentsOf(*document_)).Component(component->second, &value);
  FoundSchema found =
      status.ok() ? FoundSchema(std::move(*value.mutable_struct_value()))
                  : Prefixed("cannot flatten schema references", status);
  flattened_.emplace(component->second, found);
  return found;
}

}  // namespace fncache::sdk::schema
