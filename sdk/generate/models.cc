// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/models.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "sdk/generate/names.h"

namespace fncache::sdk {
namespace {

using text::FindText;
using text::Json;

// clang does not nest brackets deeper than 256.
constexpr size_t kMaxLevels = 200;
constexpr size_t kMaxFields = 20000;

// Names of the base classes that a class of a header may not declare.
std::set<std::string> ObjectMembers() {
  return {"has_value", "is_null", "keys", "clear", "merge",
          "ref",       "At",      "Put",  "PutAll"};
}
std::set<std::string> KindMembers() {
  return {"kApiVersion", "kKind", "kSchema"};
}
std::set<std::string> ModelMembers() {
  return {"name",
          "metadata",
          "external_name",
          "observed",
          "exists",
          "condition",
          "ready",
          "depends_on",
          "on_lost",
          "composed",
          "connection_details",
          "connection_detail"};
}

bool IsTrue(const Json& schema, const char* key) {
  const Json* const value = text::Find(schema, {key});
  return value != nullptr && *value == Json(true);
}

bool HasFields(const Json& schema, const char* key) {
  const Json* const value = text::Find(schema, {key});
  return value != nullptr && value->is_object() && !value->empty();
}

// Whether values have a class of their own.
bool IsClass(const Json& schema) {
  const std::string& type = FindText(schema, {"type"});
  return (type == "object" || type.empty()) &&
         HasFields(schema, "properties") &&
         !IsTrue(schema, "x-kubernetes-embedded-resource") &&
         !IsTrue(schema, "x-kubernetes-int-or-string");
}

bool IsIntOrString(const Json& schema) {
  return IsTrue(schema, "x-kubernetes-int-or-string") ||
         FindText(schema, {"format"}) == "int-or-string";
}

// The reference that a schema consists of, alone or as its only `allOf`;
// `path` gets what leads to it.
const std::string* Reference(const Json& schema, DocumentPath* path) {
  const Json* own = &schema;
  const Json* const all = text::Find(schema, {"allOf"});
  if (all != nullptr && all->is_array() && all->size() == 1 &&
      !schema.contains("type") && !schema.contains("properties")) {
    own = &all->front();
    path->insert(path->end(), {"allOf", "0"});
  }
  const Json* const reference = text::Find(*own, {"$ref"});
  if (reference == nullptr) return nullptr;
  path->push_back("$ref");
  static const auto* const none = new std::string;
  const auto* const text = reference->get_ptr<const std::string*>();
  return text == nullptr ? none : text;
}

std::vector<std::string> Namespaces(const std::vector<std::string>& parts) {
  std::vector<std::string> names;
  for (const std::string& part : parts) names.push_back(CppName(part));
  return names;
}

// The schema as an input is checked against, without its prose.
void DropProse(Json* schema) {
  if (schema->is_array()) {
    for (Json& element : *schema) DropProse(&element);
  }
  if (!schema->is_object()) return;
  for (const char* const key :
       {"description", "title", "example", "externalDocs"}) {
    schema->erase(key);
  }
  for (const auto& [key, value] : schema->items()) {
    if (key == "default" || key == "enum") continue;
    if (key == "properties" && value.is_object()) {
      // Here names are no keywords.
      for (auto& property : value.items()) DropProse(&property.value());
    } else {
      DropProse(&value);
    }
  }
}

// Where classes are, so that each name and each file is given once.
class Places {
 public:
  const Place& OfKind(const Definition& of) {
    std::vector<std::string> parts = absl::StrSplit(of.group, '.');
    std::reverse(parts.begin(), parts.end());
    if (of.group.empty()) parts = {"core"};
    parts.push_back(of.version);
    return Of(absl::StrCat(of.group, "/", of.version, "/", of.kind), parts,
              of.kind);
  }

  // `io.k8s.api.apps.v1.DeploymentSpec` is where the kinds of its package are.
  const Place& OfComponent(const std::string& name) {
    const auto known = components_.find(name);
    if (known != components_.end()) return known->second;
    std::vector<std::string> parts = absl::StrSplit(name, '.');
    const std::string last = parts.back();
    parts.pop_back();
    const std::string package = absl::StrJoin(parts, ".");
    const auto of_package = packages_.find(package);
    if (of_package != packages_.end()) {
      parts = of_package->second;
    } else if (absl::StartsWith(package, "io.k8s.api.")) {
      parts.erase(parts.begin(), parts.begin() + 3);
    }
    const Place& place = Of(absl::StrCat("#", name), parts, last);
    return components_[name] = place;
  }

  // A kind of an OpenAPI document, whose component is its class.
  void Connect(const std::string& component, const Place& place) {
    components_[component] = place;
    const size_t end = component.rfind('.');
    packages_[component.substr(0, end == std::string::npos ? 0 : end)] =
        place.namespaces;
  }

 private:
  const Place& Of(const std::string& identity,
                  const std::vector<std::string>& parts,
                  const std::string& wire) {
    const auto [known, added] = places_.try_emplace(identity);
    Place& place = known->second;
    if (!added) return place;
    place.namespaces = Namespaces(parts);
    const std::string folder = absl::StrJoin(place.namespaces, "/");
    place.name = classes_[folder].Add(CppName(wire));
    // Folders that differ in case only are one in some file systems.
    place.file = absl::StrCat(
        "model/", folder, folder.empty() ? "" : "/",
        files_[folder].Add(absl::AsciiStrToLower(CppName(wire))), ".h");
    return place;
  }

  std::map<std::string, Place> places_;
  std::map<std::string, Place> components_;
  std::map<std::string, std::vector<std::string>> packages_;
  std::map<std::string, Names> classes_;
  std::map<std::string, Names> files_;
};

// Makes one header.
class Builder {
 public:
  // Adds to `reached` the components that the header needs.
  Builder(Places* places, Header* header, std::set<std::string>* reached)
      : places_(*places),
        header_(*header),
        document_(*header->document),
        reached_(*reached) {}

  absl::Status Build(const Json& schema) {
    const Json* root = &schema;
    DocumentPath path = header_.path;
    std::string component;
    absl::Status resolved = Resolve(&root, &path, &component);
    if (!resolved.ok()) return resolved;
    header_.root.name = header_.place.name;
    header_.root.comment = FindText(*root, {"description"});
    scope_ = FullName(header_.place);
    open_.clear();
    std::set<std::string> members;
    if (!header_.kind.empty()) members = KindMembers();
    const bool model = !header_.kind.empty() && !header_.input;
    if (model) members.merge(ModelMembers());
    return BuildClass(*root, path, model, std::move(members), &header_.root);
  }

 private:
  absl::Status Error(const DocumentPath& path, absl::string_view why) const {
    return ErrorAt(document_, path, why);
  }

  // Follows references to the schema that they mean. `component` gets the last
  // one's name. Components that are no classes stay open, so that those within
  // themselves are found.
  absl::Status Resolve(const Json** schema, DocumentPath* path,
                       std::string* component) {
    while (true) {
      DocumentPath at = *path;
      const std::string* const reference = Reference(**schema, &at);
      if (reference == nullptr) return absl::OkStatus();
      absl::string_view name = *reference;
      const Json* target = nullptr;
      std::string key;
      if (absl::ConsumePrefix(&name, "#/components/schemas/")) {
        key = absl::StrReplaceAll(name, {{"~1", "/"}, {"~0", "~"}});
        target = text::Find(*document_.json, {"components", "schemas", key});
      }
      if (target == nullptr) {
        return Error(at, absl::StrCat("$ref ", *reference, " leads nowhere"));
      }
      if (std::find(open_.begin(), open_.end(), key) != open_.end()) {
        return Error(at,
                     absl::StrCat("$ref ", *reference, " nests without end"));
      }
      open_.push_back(key);
      *schema = target;
      *path = {"components", "schemas", key};
      *component = key;
    }
  }

  absl::Status BuildClass(const Json& schema, const DocumentPath& path,
                          bool model, std::set<std::string> members,
                          Class* made) {
    if (++levels_ > kMaxLevels) {
      return Error(path,
                   absl::StrCat("nested more than ", kMaxLevels, " deep"));
    }
    members.merge(ObjectMembers());
    members.insert(made->name);
    Names names(members);
    std::vector<const Json*> properties;
    // Those that keep their names come first, so that no other field has one.
    for (const bool keeps : {true, false}) {
      if (!HasFields(schema, "properties")) break;
      for (const auto& [wire, property] : schema["properties"].items()) {
        if (keeps != (CppName(wire) == wire && members.count(wire) == 0)) {
          continue;
        }
        // The base knows these.
        if (model &&
            (wire == "apiVersion" || wire == "kind" || wire == "metadata")) {
          continue;
        }
        if (wire.find('\0') != std::string::npos) {
          return Error(path, "a field's name has a zero byte");
        }
        if (++fields_ > kMaxFields) {
          return Error(path, absl::StrCat("more than ", kMaxFields, " fields"));
        }
        Field field;
        field.wire = wire;
        field.name = names.Add(CppName(wire));
        made->fields.push_back(std::move(field));
        properties.push_back(&property);
      }
    }
    for (size_t i = 0; i < properties.size(); ++i) {
      Field& field = made->fields[i];
      const Json& property = *properties[i];
      field.comment = FindText(property, {"description"});
      if (property.is_object() && property.contains("default")) {
        field.default_value = property["default"].dump(
            -1, ' ', false, Json::error_handler_t::replace);
      }
      DocumentPath at = path;
      at.insert(at.end(), {"properties", field.wire});
      const size_t open = open_.size();
      absl::Status built =
          BuildType(property, at, field.wire, "", made, &names, &field.type);
      if (!built.ok()) return built;
      open_.resize(open);
    }
    --levels_;
    return absl::OkStatus();
  }

  // `suffix` is what the name of the element's class has behind the field's.
  absl::Status BuildType(const Json& property, DocumentPath path,
                         const std::string& wire, const std::string& suffix,
                         Class* owner, Names* names, Type* type) {
    const Json* found = &property;
    std::string component;
    absl::Status resolved = Resolve(&found, &path, &component);
    if (!resolved.ok()) return resolved;
    const Json& schema = *found;
    const std::string& word = FindText(schema, {"type"});
    if (IsIntOrString(schema)) {
      type->kind = Type::Kind::kIntOrString;
    } else if (IsClass(schema)) {
      type->kind = Type::Kind::kObject;
      type->name = names->Add(CppClassName(wire, suffix));
      if (component.empty()) {
        // The field has its own comment.
        return BuildNested(
            schema, path, owner, type->name,
            suffix.empty() ? "" : FindText(schema, {"description"}));
      }
      type->component = true;
      const Place& place = places_.OfComponent(component);
      owner->aliases.emplace_back(type->name, place);
      if (place.file != header_.place.file) header_.includes.insert(place.file);
      reached_.insert(component);
    } else if (word == "boolean") {
      type->kind = Type::Kind::kBoolean;
    } else if (word == "integer") {
      type->kind = Type::Kind::kInteger;
    } else if (word == "number") {
      type->kind = Type::Kind::kNumber;
    } else if (word == "string") {
      type->kind = Type::Kind::kText;
      AddConstants(schema, wire, suffix, owner, names);
    } else if (word == "array") {
      type->kind = Type::Kind::kList;
      return BuildElement(schema, "items", "Item", path, wire, suffix, owner,
                          names, type);
    } else if (word == "object" && MapsNames(schema)) {
      type->kind = Type::Kind::kMap;
      return BuildElement(schema, "additionalProperties", "Value", path, wire,
                          suffix, owner, names, type);
    }
    return absl::OkStatus();
  }

  absl::Status BuildNested(const Json& schema, const DocumentPath& path,
                           Class* owner, const std::string& name,
                           std::string comment) {
    Class made;
    made.name = name;
    made.comment = std::move(comment);
    const std::string outer = scope_;
    absl::StrAppend(&scope_, "::", name);
    absl::Status built = BuildClass(schema, path, /*model=*/false, {}, &made);
    if (!built.ok()) return built;
    const auto [known, added] = known_.emplace(ContentOf(made), scope_);
    if (added) {
      owner->classes.push_back(std::move(made));
    } else {
      owner->repeated.emplace_back(name, known->second);
    }
    scope_ = outer;
    return absl::OkStatus();
  }

  // All of a class but its name and comment: equal for equal ones.
  std::string ContentOf(const Class& made) const {
    std::map<std::string, std::string> classes;
    for (const Class& nested : made.classes) {
      classes[nested.name] = absl::StrCat(scope_, "::", nested.name);
    }
    for (const auto& [name, full_name] : made.repeated) {
      classes[name] = full_name;
    }
    for (const auto& [name, place] : made.aliases) classes[name] = place.file;
    Json content = {{"classes", classes}};
    for (const Constants& constants : made.constants) {
      content["constants"][constants.name] = constants.values;
    }
    for (const Field& field : made.fields) {
      Json type;
      for (const Type* at = &field.type;; at = &at->element.front()) {
        type.push_back({static_cast<int>(at->kind), at->name});
        if (at->element.empty()) break;
      }
      content["fields"].push_back(
          {field.wire, field.name, type, field.comment, field.default_value});
    }
    return content.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static bool MapsNames(const Json& schema) {
    const Json* const values = text::Find(schema, {"additionalProperties"});
    return values != nullptr && *values != Json(false) &&
           !IsTrue(schema, "x-kubernetes-embedded-resource");
  }

  absl::Status BuildElement(const Json& schema, const char* key,
                            const char* addition, DocumentPath path,
                            const std::string& wire, const std::string& suffix,
                            Class* owner, Names* names, Type* type) {
    type->element.emplace_back();
    const Json* const element = text::Find(schema, {key});
    if (element == nullptr || !element->is_object()) return absl::OkStatus();
    path.emplace_back(key);
    if (++levels_ > kMaxLevels) {
      return Error(path,
                   absl::StrCat("nested more than ", kMaxLevels, " deep"));
    }
    absl::Status built = BuildType(*element, std::move(path), wire,
                                   absl::StrCat(suffix, addition), owner, names,
                                   &type->element.front());
    --levels_;
    return built;
  }

  static void AddConstants(const Json& schema, const std::string& wire,
                           const std::string& suffix, Class* owner,
                           Names* names) {
    const Json* const values = text::Find(schema, {"enum"});
    if (values == nullptr || !values->is_array()) return;
    Constants made;
    std::set<std::string> seen;
    Names constants;
    for (const Json& value : *values) {
      const auto* const text = value.get_ptr<const std::string*>();
      if (text == nullptr || text->find('\0') != std::string::npos ||
          !seen.insert(*text).second) {
        continue;
      }
      made.values.emplace_back(constants.Add(CppConstantName(*text)), *text);
    }
    if (made.values.empty()) return;
    made.name = names->Add(CppClassName(wire, suffix));
    owner->constants.push_back(std::move(made));
  }

  Places& places_;
  Header& header_;
  const YamlDocument& document_;
  std::set<std::string>& reached_;
  size_t fields_ = 0;
  size_t levels_ = 0;
  std::string scope_;  // the full name of the class that is made
  // The full names of the nested classes, by their content.
  std::map<std::string, std::string> known_;
  // Components between here and the class around it, or around that.
  std::vector<std::string> open_;
};

// Makes all headers that the kinds of one document need, once each.
class DocumentBuilder {
 public:
  DocumentBuilder(Places* places, std::vector<Header>* headers)
      : places_(*places), headers_(*headers) {}

  // `kinds` are all those of the document.
  absl::Status Build(const std::vector<const Definition*>& kinds) {
    std::map<std::string, const Definition*> by_component;
    for (const Definition* const kind : kinds) {
      if (!kind->component.empty()) by_component[kind->component] = kind;
      if (!kind->wanted) continue;
      done_.insert(kind->component);
      if (absl::Status made = AddKind(*kind); !made.ok()) return made;
    }
    while (!reached_.empty()) {
      const std::string name = *reached_.begin();
      reached_.erase(reached_.begin());
      if (!done_.insert(name).second) continue;
      const auto kind = by_component.find(name);
      absl::Status made = kind != by_component.end()
                              ? AddKind(*kind->second)
                              : AddComponent(name, kinds.front()->document);
      if (!made.ok()) return made;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddKind(const Definition& kind) {
    if (kind.schema == nullptr) {
      return ErrorAt(*kind.document, kind.path,
                     absl::StrCat("version ", kind.version, " of ", kind.kind,
                                  " has no schema"));
    }
    Header header;
    header.place = places_.OfKind(kind);
    header.api_version =
        absl::StrCat(kind.group, kind.group.empty() ? "" : "/", kind.version);
    header.kind = kind.kind;
    header.document = kind.document;
    header.path = kind.path;
    header.component = kind.component;
    header.input = kind.wanted && kind.input;
    if (header.input) {
      Json schema = *kind.schema;
      DropProse(&schema);
      header.schema =
          schema.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    return Add(std::move(header), *kind.schema);
  }

  absl::Status AddComponent(
      const std::string& name,
      const std::shared_ptr<const YamlDocument>& document) {
    Header header;
    header.place = places_.OfComponent(name);
    header.document = document;
    header.path = {"components", "schemas", name};
    header.component = name;
    return Add(std::move(header),
               *text::Find(*document->json, {"components", "schemas", name}));
  }

  absl::Status Add(Header header, const Json& schema) {
    absl::Status built = Builder(&places_, &header, &reached_).Build(schema);
    if (built.ok()) headers_.push_back(std::move(header));
    return built;
  }

  Places& places_;
  std::vector<Header>& headers_;
  std::set<std::string> reached_;  // components
  std::set<std::string> done_;
};

}  // namespace

std::string FullName(const Place& place) {
  return absl::StrCat("::model::", absl::StrJoin(place.namespaces, "::"),
                      place.namespaces.empty() ? "" : "::", place.name);
}

absl::StatusOr<std::vector<Header>> MakeHeaders(
    std::vector<Definition> definitions) {
  // Names must not depend on the order of files.
  std::stable_sort(definitions.begin(), definitions.end(),
                   [](const Definition& a, const Definition& b) {
                     return std::tie(a.group, a.version, a.kind) <
                            std::tie(b.group, b.version, b.kind);
                   });
  Places places;
  std::map<const YamlDocument*, std::vector<const Definition*>> kinds;
  std::vector<const YamlDocument*>
      documents;  // in the order of their first kind
  for (const Definition& definition : definitions) {
    const Place& place = places.OfKind(definition);
    if (!definition.component.empty()) {
      places.Connect(definition.component, place);
    }
    std::vector<const Definition*>& of_document =
        kinds[definition.document.get()];
    if (of_document.empty()) documents.push_back(definition.document.get());
    of_document.push_back(&definition);
  }
  std::vector<Header> headers;
  for (const YamlDocument* const document : documents) {
    absl::Status made =
        DocumentBuilder(&places, &headers).Build(kinds[document]);
    if (!made.ok()) return made;
  }
  return headers;
}

}  // namespace fncache::sdk
