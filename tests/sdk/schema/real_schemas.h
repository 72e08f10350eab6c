// SPDX-License-Identifier: Apache-2.0
// The schemas of real CRDs, XRDs and OpenAPI documents (FNCACHE_TEST_DATA).
#ifndef FNCACHE_TESTS_SDK_SCHEMA_REAL_SCHEMAS_H_
#define FNCACHE_TESTS_SDK_SCHEMA_REAL_SCHEMAS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "text/json.h"

namespace fncache::sdk::schema {

struct NamedSchema {
  std::string name;  // FILE VERSION, or FILE KIND
  std::shared_ptr<const text::Json> schema;
};

// Empty where the folder is not there. `file`: of this one only.
std::vector<NamedSchema> DefinitionSchemas(absl::string_view file = "");
// Those of each kind of each document, flattened.
std::vector<NamedSchema> DocumentSchemas(absl::string_view file = "");
// All documents of a YAML text.
std::vector<text::Json> YamlDocuments(absl::string_view text);
std::string ReadFile(const std::string& path);

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_TESTS_SDK_SCHEMA_REAL_SCHEMAS_H_
