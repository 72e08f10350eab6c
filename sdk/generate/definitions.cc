// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/definitions.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace fncache::sdk {
namespace {

using text::FindText;
using text::Json;

enum class Form { kOther, kCrd, kXrd, kOpenApi };

Form FormOf(const Json& json) {
  const std::string& kind = FindText(json, {"kind"});
  const std::string& api_version = FindText(json, {"apiVersion"});
  if (kind == "CustomResourceDefinition") {
    return api_version == "apiextensions.k8s.io/v1" ? Form::kCrd : Form::kOther;
  }
  if (kind == "CompositeResourceDefinition") {
    return api_version == "apiextensions.crossplane.io/v1" ||
                   api_version == "apiextensions.crossplane.io/v2"
               ? Form::kXrd
               : Form::kOther;
  }
  return absl::StartsWith(FindText(json, {"openapi"}), "3.") ? Form::kOpenApi
                                                             : Form::kOther;
}

absl::Status AddVersions(const std::shared_ptr<const YamlDocument>& document,
                         bool xrd, std::vector<Definition>* definitions) {
  const Json& json = *document->json;
  Definition made;
  made.document = document;
  made.group = FindText(json, {"spec", "group"});
  if (made.group.empty()) {
    return ErrorAt(*document, {"spec", "group"}, "spec.group is missing");
  }
  std::vector<std::string> kinds = {FindText(json, {"spec", "names", "kind"})};
  if (kinds[0].empty()) {
    return ErrorAt(*document, {"spec", "names", "kind"},
                   "spec.names.kind is missing");
  }
  if (xrd && !FindText(json, {"spec", "claimNames", "kind"}).empty()) {
    kinds.push_back(FindText(json, {"spec", "claimNames", "kind"}));
  }
  const Json* const versions = text::Find(json, {"spec", "versions"});
  if (versions == nullptr || !versions->is_array()) {
    return ErrorAt(*document, {"spec", "versions"}, "spec.versions is missing");
  }
  for (size_t i = 0; i < versions->size(); ++i) {
    const Json& version = (*versions)[i];
    const Json* const served = text::Find(version, {"served"});
    if (served == nullptr || *served != Json(true)) continue;
    made.path = {"spec", "versions", absl::StrCat(i)};
    made.version = FindText(version, {"name"});
    if (made.version.empty()) {
      return ErrorAt(*document, made.path, "a version without a name");
    }
    made.schema = text::Find(version, {"schema", "openAPIV3Schema"});
    if (made.schema != nullptr && !made.schema->is_object()) {
      made.schema = nullptr;
    }
    if (made.schema != nullptr) {
      made.path.insert(made.path.end(), {"schema", "openAPIV3Schema"});
    }
    for (const std::string& kind : kinds) {
      made.kind = kind;
      definitions->push_back(made);
    }
  }
  return absl::OkStatus();
}

// Whether a component is a list of a kind, which functions do not compose.
bool IsList(const Json& schema) {
  const Json* metadata = text::Find(schema, {"properties", "metadata"});
  if (metadata == nullptr) return false;
  const Json* const all = text::Find(*metadata, {"allOf"});
  if (all != nullptr && all->is_array() && !all->empty()) {
    metadata = &all->front();
  }
  return absl::EndsWith(FindText(*metadata, {"$ref"}), ".ListMeta");
}

void AddComponents(const std::shared_ptr<const YamlDocument>& document,
                   std::vector<Definition>* definitions) {
  const Json* const components =
      text::Find(*document->json, {"components", "schemas"});
  if (components == nullptr || !components->is_object()) return;
  for (const auto& [name, schema] : components->items()) {
    const Json* const kinds =
        text::Find(schema, {"x-kubernetes-group-version-kind"});
    // DeleteOptions and WatchEvent, which many groups share, are no resources.
    // Neither are the API server's own answers (Status).
    if (kinds == nullptr || !kinds->is_array() || kinds->size() != 1 ||
        absl::StartsWith(name, "io.k8s.apimachinery.") || IsList(schema)) {
      continue;
    }
    Definition made;
    made.group = FindText(kinds->front(), {"group"});
    made.version = FindText(kinds->front(), {"version"});
    made.kind = FindText(kinds->front(), {"kind"});
    if (made.version.empty() || made.kind.empty()) continue;
    made.document = document;
    made.path = {"components", "schemas", name};
    made.schema = &schema;
    made.component = name;
    definitions->push_back(std::move(made));
  }
}

}  // namespace

bool DefinesKinds(const YamlDocument& document) {
  return FormOf(*document.json) != Form::kOther;
}

absl::Status FindDefinitions(
    const std::shared_ptr<const YamlDocument>& document,
    std::vector<Definition>* definitions) {
  const Form form = FormOf(*document->json);
  if (form == Form::kOther) return absl::OkStatus();
  if (form != Form::kOpenApi) {
    return AddVersions(document, form == Form::kXrd, definitions);
  }
  AddComponents(document, definitions);
  return absl::OkStatus();
}

std::string QualifiedName(const Definition& definition) {
  return absl::StrCat(definition.kind, ".", definition.group);
}

}  // namespace fncache::sdk
