// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composite_defaults.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "text/type_name.h"

namespace fncache::runner::engine {
namespace {

constexpr absl::string_view kLegacyScope = "LegacyCluster";

// The fields that the runner itself puts under `spec` of a legacy composite,
// and under `spec.crossplane` of a modern one. A definition's own properties of
// these names are replaced.
constexpr absl::string_view kSpecFields[] = {
    "compositionRef",
    "compositionSelector",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionUpdatePolicy",
    "resourceRefs",
    "claimRef",
    "writeConnectionSecretToRef",
};
constexpr absl::string_view kLegacyStatusFields[] = {"connectionDetails",
                                                     "claimConditionTypes"};

bool IsNull(const text::Json* value) {
  return value == nullptr || value->is_null();
}

// The default that a schema gives, null if none: null itself gives none.
const text::Json* DefaultOf(const text::Json* schema) {
  const text::Json* const value = text::Find(*schema, {"default"});
  return IsNull(value) ? nullptr : value;
}

// Whether `value`, being null, is to be replaced by the schema's default.
bool TakesDefault(const text::Json& value, const text::Json* schema) {
  if (!value.is_null() || schema == nullptr) return false;
  const text::Json* const nullable = text::Find(*schema, {"nullable"});
  const auto* flag =
      nullable == nullptr ? nullptr : nullable->get_ptr<const bool*>();
  return flag == nullptr || !*flag;
}

// The most values that defaults may come to. A default may hold nulls that take
// defaults of their own, so that a small schema could ask for any number.
constexpr size_t kMaxDefaultValues = 1'000'000;

size_t CountValues(const text::Json& value) {
  size_t count = 1;
  if (!value.is_structured()) return count;
  for (const text::Json& element : value) count += CountValues(element);
  return count;
}

// Structural defaulting, as an API server does it.
class Defaulting {
 public:
  // Gives a property with a default that default where it is absent, or null
  // and not nullable; then does the same within whatever is there now.
  void Default(text::Json* value, const text::Json* schema) {
    if (exhausted_ || schema == nullptr || !schema->is_object()) return;
    if (value->is_array()) {
      const text::Json* const items = text::Find(*schema, {"items"});
      if (items == nullptr || !items->is_object()) return;
      for (text::Json& element : *value) DefaultElement(&element, items);
    } else if (value->is_object()) {
      DefaultMap(value, schema);
    }
  }

  absl::Status status() const {
    if (!exhausted_) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the XRD's defaults come to over ", kMaxDefaultValues, " values"));
  }

 private:
  void DefaultMap(text::Json* value, const text::Json* schema) {
    const text::Json* const properties = text::Find(*schema, {"properties"});
    if (properties != nullptr && properties->is_object()) {
      for (const auto& property : properties->items()) {
        const text::Json* const wanted = DefaultOf(&property.value());
        if (wanted == nullptr) continue;
        const auto field = value->find(property.key());
        if (field == value->end()) {
          Fill(&(*value)[property.key()], *wanted);
        } else if (TakesDefault(*field, &property.value())) {
          Fill(&*field, *wanted);
        }
      }
    }
    // A boolean has no schema, and so no defaults.
    const text::Json* additional =
        text::Find(*schema, {"additionalProperties"});
    if (additional != nullptr && !additional->is_object()) additional = nullptr;
    for (const auto& field : value->items()) {
      const text::Json* const property =
          properties == nullptr ? nullptr
                                : text::Find(*properties, {field.key()});
      if (property != nullptr) {
        Default(&field.value(), property);
      } else if (additional != nullptr) {
        DefaultElement(&field.value(), additional);
      }
    }
  }

  // An element of a list, or of a map by additionalProperties.
  void DefaultElement(text::Json* value, const text::Json* schema) {
    const text::Json* const wanted = DefaultOf(schema);
    if (wanted != nullptr && TakesDefault(*value, schema)) {
      Fill(value, *wanted);
    }
    Default(value, schema);
  }

  void Fill(text::Json* value, const text::Json& wanted) {
    const size_t count = CountValues(wanted);
    if (count > left_) {
      exhausted_ = true;
      left_ = 0;
      return;
    }
    left_ -= count;
    *value = wanted;
  }

  size_t left_ = kMaxDefaultValues;
  bool exhausted_ = false;
};

// The properties of `spec` or `status` in a version's schema, as a schema of
// their own: whatever else that one says of it is lost when the reference
// command line derives the schema that an API server would be given.
text::Json PropertiesOf(const text::Json& schema, absl::string_view part) {
  const text::Json* const properties =
      text::Find(schema, {"properties", part, "properties"});
  text::Json derived = text::Json::object();
  derived["properties"] = properties != nullptr && properties->is_object()
                              ? *properties
                              : text::Json::object();
  return derived;
}

text::Json SpecSchema(const text::Json& schema, const text::Json& definition,
                      bool legacy) {
  text::Json spec = PropertiesOf(schema, "spec");
  text::Json own = text::Json::object();
  const std::string policy =
      text::FindText(definition, {"spec", "defaultCompositionUpdatePolicy"});
  const bool has_policy = !IsNull(
      text::Find(definition, {"spec", "defaultCompositionUpdatePolicy"}));
  if (has_policy) own["compositionUpdatePolicy"]["default"] = policy;
  if (!legacy) {
    spec["properties"]["crossplane"] = {{"properties", std::move(own)}};
    return spec;
  }
  for (const absl::string_view name : kSpecFields) {
    spec["properties"].erase(std::string(name));
  }
  spec["properties"].update(own);
  return spec;
}

text::Json StatusSchema(const text::Json& schema, bool legacy) {
  text::Json status = PropertiesOf(schema, "status");
  status["properties"].erase("conditions");
  if (!legacy) return status;
  for (const absl::string_view name : kLegacyStatusFields) {
    status["properties"].erase(std::string(name));
  }
  return status;
}

// The schema of the version that the composite's apiVersion names. Every
// version must have one.
absl::StatusOr<const text::Json*> FindSchema(const text::Json& definition,
                                             absl::string_view api_version) {
  const std::string group = text::FindText(definition, {"spec", "group"});
  const text::Json* const versions =
      text::Find(definition, {"spec", "versions"});
  const text::Json* found = nullptr;
  if (!IsNull(versions) && !versions->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.versions: must be a list, is ", text::TypeName(*versions)));
  }
  for (size_t i = 0; !IsNull(versions) && i < versions->size(); ++i) {
    const text::Json& version = (*versions)[i];
    const text::Json* const schema =
        text::Find(version, {"schema", "openAPIV3Schema"});
    if (schema == nullptr || !schema->is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat("spec.versions[", i,
                       "].schema.openAPIV3Schema: custom resource validation "
                       "cannot be nil"));
    }
    if (found == nullptr &&
        absl::StrCat(group, "/", text::FindText(version, {"name"})) ==
            api_version) {
      found = schema;
    }
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the specified API version '", api_version,
                     "' does not exist in the XRD"));
  }
  return found;
}

}  // namespace

absl::Status ApplyDefaults(const text::Json& definition,
                           text::Json* composite) {
  absl::StatusOr<const text::Json*> schema =
      FindSchema(definition, text::FindText(*composite, {"apiVersion"}));
  if (!schema.ok()) return schema.status();
  // Without a scope it is legacy here, though of v2 an API server would make
  // that Namespaced: the reference command line reads every definition as v1.
  const text::Json* const scope = text::Find(definition, {"spec", "scope"});
  const bool legacy =
      IsNull(scope) ||
      text::FindText(definition, {"spec", "scope"}) == kLegacyScope;
  text::Json derived = text::Json::object();
  derived["properties"]["spec"] = SpecSchema(**schema, definition, legacy);
  derived["properties"]["status"] = StatusSchema(**schema, legacy);
  Defaulting defaulting;
  defaulting.Default(composite, &derived);
  return defaulting.status();
}

}  // namespace fncache::runner::engine
