#include "runner/definition.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "runner/object.h"
#include "runner/quoted.h"
#include "runner/typed_text.h"

namespace fncache::runner {
namespace {

constexpr absl::string_view kV1 = "apiextensions.crossplane.io/v1";
constexpr absl::string_view kV2 = "apiextensions.crossplane.io/v2";
constexpr absl::string_view kLegacyScope = "LegacyCluster";

// What the runner itself puts under `spec` of a legacy composite, and under
// `spec.crossplane` of a modern one. A definition's own properties of these
// names are replaced.
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

// The value of a map's field, null where there is none.
const Json* Field(const Json* map, absl::string_view name) {
  if (map == nullptr || !map->is_object()) return nullptr;
  const auto it = map->find(std::string(name));
  return it == map->end() ? nullptr : &*it;
}

bool IsNull(const Json* value) { return value == nullptr || value->is_null(); }

std::string TextAt(const Json* map, absl::string_view name) {
  const Json* const value = Field(map, name);
  return value == nullptr ? "" : TypedText(*value).value_or("");
}

// Of an object that has no fixed form: only text is text.
std::string NameOf(const Json& object) {
  const Json* const name = Field(Field(&object, "metadata"), "name");
  const auto* text =
      name == nullptr ? nullptr : name->get_ptr<const std::string*>();
  return text == nullptr ? "" : *text;
}

// The default that a schema gives, null if none: null itself gives none.
const Json* DefaultOf(const Json* schema) {
  const Json* const value = Field(schema, "default");
  return IsNull(value) ? nullptr : value;
}

// Whether `value`, being null, is to be replaced by the schema's default.
bool TakesDefault(const Json& value, const Json* schema) {
  if (!value.is_null() || schema == nullptr) return false;
  const Json* const nullable = Field(schema, "nullable");
  const auto* flag =
      nullable == nullptr ? nullptr : nullable->get_ptr<const bool*>();
  return flag == nullptr || !*flag;
}

// Structural defaulting, as an API server does it: where a property with a
// default is absent, or null and not nullable, it gets the default; then the
// same within whatever is there now.
void Default(Json* value, const Json* schema);

// An element of a list, or of a map by additionalProperties.
void DefaultElement(Json* value, const Json* schema) {
  if (TakesDefault(*value, schema)) {
    const Json* const element = DefaultOf(schema);
    if (element != nullptr) *value = *element;
  }
  Default(value, schema);
}

void Default(Json* value, const Json* schema) {
  if (schema == nullptr || !schema->is_object()) return;
  if (value->is_array()) {
    const Json* const items = Field(schema, "items");
    if (items == nullptr || !items->is_object()) return;
    for (Json& element : *value) DefaultElement(&element, items);
    return;
  }
  if (!value->is_object()) return;
  const Json* const properties = Field(schema, "properties");
  if (properties != nullptr && properties->is_object()) {
    for (const auto& property : properties->items()) {
      const Json* const wanted = DefaultOf(&property.value());
      if (wanted == nullptr) continue;
      const auto field = value->find(property.key());
      if (field == value->end()) {
        (*value)[property.key()] = *wanted;
      } else if (TakesDefault(*field, &property.value())) {
        *field = *wanted;
      }
    }
  }
  // A boolean has no schema, and so no defaults.
  const Json* additional = Field(schema, "additionalProperties");
  if (additional != nullptr && !additional->is_object()) additional = nullptr;
  for (const auto& field : value->items()) {
    const Json* const property = Field(properties, field.key());
    if (property != nullptr) {
      Default(&field.value(), property);
    } else if (additional != nullptr) {
      DefaultElement(&field.value(), additional);
    }
  }
}

// The properties of `spec` or `status` in a version's schema, as a schema of
// their own: whatever else that one says of it is lost when the reference
// command line derives the schema that an API server would be given.
Json PropertiesOf(const Json& schema, absl::string_view part) {
  const Json* const properties =
      Field(Field(Field(&schema, "properties"), part), "properties");
  Json derived = Json::object();
  derived["properties"] = properties != nullptr && properties->is_object()
                              ? *properties
                              : Json::object();
  return derived;
}

Json SpecSchema(const Json& schema, const Json& definition, bool legacy) {
  Json spec = PropertiesOf(schema, "spec");
  Json own = Json::object();
  const std::string policy =
      TextAt(Field(&definition, "spec"), "defaultCompositionUpdatePolicy");
  const bool has_policy = !IsNull(
      Field(Field(&definition, "spec"), "defaultCompositionUpdatePolicy"));
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

Json StatusSchema(const Json& schema, bool legacy) {
  Json status = PropertiesOf(schema, "status");
  status["properties"].erase("conditions");
  if (!legacy) return status;
  for (const absl::string_view name : kLegacyStatusFields) {
    status["properties"].erase(std::string(name));
  }
  return status;
}

// The schema of the version that the composite's apiVersion names. Every
// version must have one.
absl::StatusOr<const Json*> FindSchema(const Json& definition,
                                       absl::string_view api_version) {
  const Json* const spec = Field(&definition, "spec");
  const std::string group = TextAt(spec, "group");
  const Json* const versions = Field(spec, "versions");
  const Json* found = nullptr;
  if (!IsNull(versions) && !versions->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.versions: must be a list, is ", TypeName(*versions)));
  }
  for (size_t i = 0; !IsNull(versions) && i < versions->size(); ++i) {
    const Json& version = (*versions)[i];
    const Json* const schema =
        Field(Field(&version, "schema"), "openAPIV3Schema");
    if (schema == nullptr || !schema->is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat("spec.versions[", i,
                       "].schema.openAPIV3Schema: custom resource validation "
                       "cannot be nil"));
    }
    if (found == nullptr &&
        absl::StrCat(group, "/", TextAt(&version, "name")) == api_version) {
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

absl::StatusOr<CompositeSchema> SchemaOf(const Struct* definition,
                                         const Struct& composite) {
  if (definition == nullptr) return CompositeSchema::kModern;
  const auto error = [definition](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot select composite resource schema: "
        "CompositeResourceDefinition ",
        Quoted(FindText(*definition, {"metadata", "name"})), parts...));
  };
  const std::string& api_version = FindText(*definition, {"apiVersion"});
  if (api_version != kV1 && api_version != kV2) {
    return error(" has unrecognized apiVersion ", Quoted(api_version),
                 " (expected one of [", kV1, " ", kV2, "])");
  }
  const std::string& group = FindText(*definition, {"spec", "group"});
  const std::string& kind = FindText(*definition, {"spec", "names", "kind"});
  const absl::string_view wanted_group =
      GroupOf(FindText(composite, {"apiVersion"}));
  const std::string& wanted_kind = FindText(composite, {"kind"});
  if (group != wanted_group || kind != wanted_kind) {
    return error(" (composite Group=", group, " Kind=", kind,
                 ") does not match the input XR's Group=", wanted_group,
                 " Kind=", wanted_kind);
  }
  const Value* const scope = Find(*definition, {"spec", "scope"});
  const bool absent =
      scope == nullptr || scope->kind_case() == Value::kNullValue;
  const bool legacy = (absent && api_version == kV1) ||
                      FindText(*definition, {"spec", "scope"}) == kLegacyScope;
  return legacy ? CompositeSchema::kLegacy : CompositeSchema::kModern;
}

absl::Status ApplyDefaults(const Json& definition, Json* composite) {
  const Json* const version = Field(composite, "apiVersion");
  const auto* text =
      version == nullptr ? nullptr : version->get_ptr<const std::string*>();
  absl::StatusOr<const Json*> schema =
      FindSchema(definition, text == nullptr ? "" : *text);
  if (!schema.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot apply XRD defaults to XR ", Quoted(NameOf(*composite)), ": ",
        schema.status().message()));
  }
  // Without a scope it is legacy here, though of v2 an API server would make
  // that Namespaced: the reference command line reads every definition as v1.
  const Json* const scope = Field(Field(&definition, "spec"), "scope");
  const bool legacy =
      IsNull(scope) || TypedText(*scope).value_or("") == kLegacyScope;
  Json derived = Json::object();
  derived["properties"]["spec"] = SpecSchema(**schema, definition, legacy);
  derived["properties"]["status"] = StatusSchema(**schema, legacy);
  Default(composite, &derived);
  return absl::OkStatus();
}

}  // namespace fncache::runner
