// SPDX-License-Identifier: Apache-2.0
// YAML from files: any bytes are read or refused without harm, and what was
// read is printed to text that reads as the same again.
#include <cstdint>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/fuzz/merge_key.h"
#include "text/kubernetes_yaml.h"
#include "text/yaml_writer.h"

namespace {

using fncache::testing::Check;
using fncache::testing::HasMergeKey;

void CheckDocument(const std::string& text) {
  const auto json = fncache::text::ParseKubernetesYaml(text);
  if (!json.ok()) {
    Check(json.status().code() == absl::StatusCode::kInvalidArgument);
    return;
  }
  if (HasMergeKey(*json)) return;
  const std::string printed = fncache::text::ToYaml(*json);
  const auto again = fncache::text::ParseKubernetesYaml(printed);
  Check(again.ok());
  Check(*again == *json);
  Check(fncache::text::ToYaml(*again) == printed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 8192) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  CheckDocument(text);
  const auto documents = fncache::text::SplitYamlDocuments(text);
  if (!documents.ok()) return 0;
  for (const std::string& document : *documents) CheckDocument(document);
  return 0;
}
