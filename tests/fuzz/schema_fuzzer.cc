// SPDX-License-Identifier: Apache-2.0
// Flattening over any document: bytes are an OpenAPI document as JSON. For any
// document, every kind that it names is found, not found, or an error. A kind
// that is found is within its bounds, and the same in a second search.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "sdk/schema/schema_document.h"
#include "text/json.h"
#include "text/object.h"

namespace {

using fncache::text::FindMap;
using google::protobuf::Struct;

void Check(bool holds) {
  if (!holds) std::abort();
}

// How many schemas a schema consists of.
size_t Size(const Struct& schema) {
  size_t size = 1;
  const Struct* const properties = FindMap(schema, {"properties"});
  if (properties != nullptr) {
    for (const auto& property : properties->fields()) {
      size += property.second.has_struct_value()
                  ? Size(property.second.struct_value())
                  : 1;
    }
  }
  for (const char* name : {"items", "additionalProperties"}) {
    const Struct* const inner = FindMap(schema, {name});
    if (inner != nullptr) size += Size(*inner);
  }
  return size;
}

std::string Text(const fncache::text::Json& entry, const char* name) {
  const auto field = entry.find(name);
  if (field == entry.end()) return "";
  const auto* const text = field->get_ptr<const std::string*>();
  return text == nullptr ? "" : *text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  const auto document = fncache::text::ParseJson(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!document.ok()) return 0;
  fncache::sdk::schema::SchemaDocument schemas(*document);
  for (const auto& group_version : schemas.group_versions()) {
    Check(schemas.Find(group_version, "no such kind").ok());
    Check(!schemas.Find(group_version, "no such kind")->has_value());
  }
  if (schemas.group_versions().empty()) return 0;
  // It has components then, or there would be none.
  for (const auto& component : (*document)["components"]["schemas"]) {
    if (!component.is_object()) continue;
    const auto list = component.find("x-kubernetes-group-version-kind");
    if (list == component.end() || !list->is_array()) continue;
    for (const auto& entry : *list) {
      if (!entry.is_object()) continue;
      const auto found = schemas.Find(
          {Text(entry, "group"), Text(entry, "version")}, Text(entry, "kind"));
      if (!found.ok()) {
        Check(!found.status().message().empty());
        continue;
      }
      Check(found->has_value() || list->size() != 1);
      if (!found->has_value()) continue;
      Check(Size(**found) * 64 <= fncache::sdk::schema::kMaxFlattenedBytes);
      const auto again = schemas.Find(
          {Text(entry, "group"), Text(entry, "version")}, Text(entry, "kind"));
      Check(again.ok() && again->has_value());
      Check(fncache::text::Equal(**found, **again));
    }
  }
  return 0;
}
