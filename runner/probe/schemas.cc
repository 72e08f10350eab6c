// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/schemas.h"

#include <utility>

#include "nlohmann/json.hpp"
#include "runner/render/loader.h"
#include "text/json.h"

namespace fncache::runner::probe {
namespace {

using google::protobuf::Struct;
using text::Json;

// The versions' schemas of a definition.
void AddVersions(const Json& definition, std::vector<Struct>* schemas) {
  const Json* const versions = text::Find(definition, {"spec", "versions"});
  if (versions == nullptr || !versions->is_array()) return;
  for (const Json& version : *versions) {
    const Json* const schema =
        text::Find(version, {"schema", "openAPIV3Schema"});
    if (schema == nullptr || !schema->is_object()) continue;
    Json named = *schema;
    named["x-kubernetes-group-version-kind"] = Json::array(
        {{{"group", text::FindText(definition, {"spec", "group"})},
          {"version", text::FindText(version, {"name"})},
          {"kind", text::FindText(definition, {"spec", "names", "kind"})}}});
    schemas->push_back(text::ToStruct(named));
  }
}

}  // namespace

absl::StatusOr<std::vector<Struct>> ReadSchemas(
    const std::vector<std::string>& folders,
    const std::vector<std::string>& files) {
  std::vector<Struct> schemas;
  for (const std::string& folder : folders) {
    const auto documents = render::LoadSchemas(folder);
    if (!documents.ok()) return documents.status();
    for (const Json& document : *documents) {
      const Json* const all = text::Find(document, {"components", "schemas"});
      if (all == nullptr || !all->is_object()) continue;
      for (const auto& [name, schema] : all->items()) {
        if (schema.contains("x-kubernetes-group-version-kind")) {
          schemas.push_back(text::ToStruct(schema));
        }
      }
    }
  }
  for (const std::string& file : files) {
    const auto loaded = render::LoadObject(file);
    if (!loaded.ok()) return loaded.status();
    AddVersions(*loaded->object, &schemas);
  }
  return schemas;
}

}  // namespace fncache::runner::probe
