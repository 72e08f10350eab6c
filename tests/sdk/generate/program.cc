// SPDX-License-Identifier: Apache-2.0
#include "tests/sdk/generate/program.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "sdk/generate/writer.h"

namespace fncache::testing {
namespace {

using sdk::Class;
using sdk::Field;
using sdk::Header;
using sdk::Place;
using sdk::Type;
using text::Json;

constexpr char kKeyOne[] = "one";
constexpr char kKeyTwo[] = "two.of \"them\"/";

// A value that follows from the path, so that no two fields have the same.
int64_t Number(const std::string& path) {
  uint32_t sum = 7;
  for (const char c : path) sum = sum * 31 + static_cast<unsigned char>(c);
  return sum % 1000003;
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    absl::StrAppendFormat(&out, "\\%03o", static_cast<unsigned char>(c));
  }
  return out + "\"";
}

class Program {
 public:
  explicit Program(const std::vector<Header>& headers) {
    for (const Header& header : headers) {
      Know(header.root, sdk::FullName(header.place));
    }
  }

  std::string Write(const std::vector<Header>& headers) {
    std::string includes = "#include <fncache/function/value.h>\n";
    std::string body;
    for (const Header& header : headers) {
      if (header.kind.empty()) continue;
      absl::StrAppend(&includes, "#include \"", header.place.file, "\"\n");
      const std::string name = sdk::FullName(header.place);
      absl::StrAppend(&body, "  {\n    const ", name, " set =\n        ",
                      Set(header.root, name, name, "", ""), ";\n    const ",
                      name, " copied =\n        ",
                      Set(header.root, name, name, "", "set"), ";\n    take(\"",
                      header.place.file,
                      "\", fn::Json(set).value().c_str(), "
                      "fn::Json(copied).value().c_str());\n  }\n");
    }
    return absl::StrCat(
        includes,
        "namespace fn = fncache::function;\n"
        "extern \"C\" void SetEverything(void (*take)(const char*, const "
        "char*, const char*)) {\n",
        body, "}\n");
  }

 private:
  void Know(const Class& made, const std::string& name) {
    classes_[name] = &made;
    for (const Class& nested : made.classes) {
      Know(nested, absl::StrCat(name, "::", nested.name));
    }
  }

  // The full name of the class that `type` names in `owner`.
  static std::string Resolve(const Class& owner, const std::string& owner_name,
                             const std::string& name) {
    for (const auto& [alias, place] : owner.aliases) {
      if (alias == name) return sdk::FullName(place);
    }
    for (const auto& [alias, same] : owner.repeated) {
      if (alias == name) return same;
    }
    return absl::StrCat(owner_name, "::", name);
  }

  // `written` is how the program names the class, by aliases where there are
  // some. `from` is what fields are copied from; empty: they are set anew.
  std::string Set(const Class& made, const std::string& name,
                  const std::string& written, const std::string& path,
                  const std::string& from) {
    open_.insert(name);
    std::string out = absl::StrCat(written, "()");
    for (const Field& field : made.fields) {
      const Type* leaf = &field.type;
      while (!leaf->element.empty()) leaf = &leaf->element.front();
      if (leaf->component &&
          open_.count(Resolve(made, name, leaf->name)) != 0) {
        continue;  // within itself
      }
      const std::string getter =
          from.empty() ? "" : absl::StrCat(from, ".", field.name, "()");
      absl::StrAppend(&out, "\n.", field.name, "(",
                      ValueOf(field.type, made, name, written,
                              absl::StrCat(path, "/", field.wire), getter),
                      ")");
    }
    open_.erase(name);
    return out;
  }

  std::string ValueOf(const Type& type, const Class& owner,
                      const std::string& owner_name, const std::string& written,
                      const std::string& path, const std::string& from) {
    const auto element = [&](const std::string& at) {
      return ValueOf(type.element.front(), owner, owner_name, written, at, "");
    };
    switch (type.kind) {
      case Type::Kind::kObject: {
        const std::string name = Resolve(owner, owner_name, type.name);
        return Set(*classes_.at(name), name,
                   absl::StrCat(written, "::", type.name), path, from);
      }
      case Type::Kind::kList:
        if (!from.empty()) return from;
        return absl::StrCat("fn::List<", NameOf(type.element.front(), written),
                            ">({", element(path + "/0"), ", ",
                            element(path + "/1"), "})");
      case Type::Kind::kMap:
        if (!from.empty()) return from;
        return absl::StrCat("fn::Map<", NameOf(type.element.front(), written),
                            ">({{", Quoted(kKeyOne), ", ", element(path + "/1"),
                            "}, {", Quoted(kKeyTwo), ", ", element(path + "/2"),
                            "}})");
      default:
        break;
    }
    if (!from.empty()) return from;
    switch (type.kind) {
      case Type::Kind::kText:
        return Quoted(path);
      case Type::Kind::kBoolean:
        return Number(path) % 2 == 0 ? "true" : "false";
      case Type::Kind::kInteger:
        return absl::StrCat(Number(path));
      case Type::Kind::kNumber:
        return absl::StrCat(Number(path), ".5");
      case Type::Kind::kIntOrString:
        return Number(path) % 2 == 0 ? absl::StrCat(Number(path))
                                     : Quoted(path);
      default:
        return absl::StrCat("fn::Yaml(", Quoted(Json(path).dump()), ")");
    }
  }

  static std::string NameOf(const Type& type, const std::string& written) {
    switch (type.kind) {
      case Type::Kind::kText:
        return "std::string";
      case Type::Kind::kBoolean:
        return "bool";
      case Type::Kind::kInteger:
        return "int64_t";
      case Type::Kind::kNumber:
        return "double";
      case Type::Kind::kIntOrString:
        return "fn::IntOrString";
      case Type::Kind::kValue:
        return "fn::Value";
      case Type::Kind::kObject:
        return absl::StrCat(written, "::", type.name);
      case Type::Kind::kList:
        return absl::StrCat("fn::List<", NameOf(type.element.front(), written),
                            ">");
      case Type::Kind::kMap:
        return absl::StrCat("fn::Map<", NameOf(type.element.front(), written),
                            ">");
    }
    return "";
  }

  std::map<std::string, const Class*> classes_;  // by their full names
  std::set<std::string> open_;
};

// The same from a schema, by the table in SDK.md.
class Expected {
 public:
  Expected(const Json& document, const std::set<std::string>& kinds)
      : document_(document), kinds_(kinds) {}

  Json Of(const Json& schema, const std::string& component, bool without_head) {
    if (!component.empty()) open_.insert(component);
    return Object(schema, "", without_head);
  }

 private:
  static const Json& At(const Json& schema, const char* key) {
    static const auto* const none = new Json;
    const auto found = schema.find(key);
    return found == schema.end() ? *none : *found;
  }

  // The schema that references lead to; `component` is the last one's name.
  const Json& Follow(const Json& schema, std::string* component) {
    const Json* at = &schema;
    while (true) {
      const Json& all = At(*at, "allOf");
      const bool one = all.is_array() && all.size() == 1 &&
                       At(*at, "type").is_null() && all[0].contains("$ref");
      const Json& reference = At(one ? all[0] : *at, "$ref");
      if (!reference.is_string()) return *at;
      *component = std::string(absl::StripPrefix(reference.get<std::string>(),
                                                 "#/components/schemas/"));
      at = &document_["components"]["schemas"][*component];
    }
  }

  Json Object(const Json& schema, const std::string& path, bool without_head) {
    Json out = Json::object();
    const Json& properties = At(schema, "properties");
    if (!properties.is_object()) return out;
    for (const auto& [name, property] : properties.items()) {
      if (without_head &&
          (name == "apiVersion" || name == "kind" || name == "metadata")) {
        continue;
      }
      Json value;
      if (Value(property, absl::StrCat(path, "/", name), &value)) {
        out[name] = std::move(value);
      }
    }
    return out;
  }

  // False for what is within itself.
  bool Value(const Json& property, const std::string& path, Json* out) {
    std::string component;
    const Json& schema = Follow(property, &component);
    const bool embedded =
        At(schema, "x-kubernetes-embedded-resource") == Json(true);
    if (At(schema, "x-kubernetes-int-or-string") == Json(true) ||
        At(schema, "format") == Json("int-or-string")) {
      *out = Number(path) % 2 == 0 ? Json(Number(path)) : Json(path);
      return true;
    }
    const std::string type =
        At(schema, "type").is_string() ? At(schema, "type") : "";
    if ((type == "object" || type.empty()) && !embedded &&
        At(schema, "properties").is_object() &&
        !At(schema, "properties").empty()) {
      if (!component.empty() && !open_.insert(component).second) return false;
      *out = Object(schema, path, kinds_.count(component) != 0);
      open_.erase(component);
      return true;
    }
    if (type == "array") {
      const Json items = At(schema, "items").is_object() ? At(schema, "items")
                                                         : Json::object();
      *out = Json::array({nullptr, nullptr});
      return Value(items, path + "/0", &(*out)[0]) &&
             Value(items, path + "/1", &(*out)[1]);
    }
    const Json& values = At(schema, "additionalProperties");
    if (type == "object" && !embedded && !values.is_null() &&
        values != Json(false)) {
      const Json one = values.is_object() ? values : Json::object();
      return Value(one, path + "/1", &(*out)[kKeyOne]) &&
             Value(one, path + "/2", &(*out)[kKeyTwo]);
    }
    if (type == "boolean") {
      *out = Number(path) % 2 == 0;
    } else if (type == "integer") {
      *out = Number(path);
    } else if (type == "number") {
      *out = static_cast<double>(Number(path)) + 0.5;
    } else {
      *out = path;
    }
    return true;
  }

  const Json& document_;
  const std::set<std::string>& kinds_;
  std::set<std::string> open_;
};

}  // namespace

std::string ProgramOf(const std::vector<Header>& headers) {
  return Program(headers).Write(headers);
}

Json ExpectedOf(const sdk::Definition& kind, bool input,
                const std::set<std::string>& components) {
  return Expected(*kind.document->json, components)
      .Of(*kind.schema, kind.component, !input);
}

}  // namespace fncache::testing
