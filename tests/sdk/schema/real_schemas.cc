// SPDX-License-Identifier: Apache-2.0
#include "tests/sdk/schema/real_schemas.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sdk/schema/schema_document.h"
#include "tests/common/test_data.h"
#include "text/kubernetes_yaml.h"

namespace fncache::sdk::schema {
namespace {

namespace fs = std::filesystem;

// The files of the folder with this extension, sorted; `only` one, if that is
// not empty.
std::vector<fs::path> Files(const char* folder, const char* extension,
                            absl::string_view only) {
  std::vector<fs::path> files;
  for (const fs::path& found : ::fncache::testing::DataFolders({folder})) {
    for (const auto& file : fs::directory_iterator(found)) {
      if (file.path().extension() == extension &&
          (only.empty() || file.path().filename() == std::string(only))) {
        files.push_back(file.path());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::vector<text::Json> YamlDocuments(absl::string_view text) {
  std::vector<text::Json> documents;
  const auto texts = text::SplitYamlDocuments(text);
  EXPECT_TRUE(texts.ok()) << texts.status();
  if (!texts.ok()) return documents;
  for (const std::string& one : *texts) {
    auto document = text::ParseKubernetesYaml(one);
    EXPECT_TRUE(document.ok()) << document.status();
    if (document.ok() && !document->is_null()) {
      documents.push_back(*std::move(document));
    }
  }
  return documents;
}

std::vector<NamedSchema> DefinitionSchemas(absl::string_view file) {
  std::vector<NamedSchema> schemas;
  for (const fs::path& path : Files("crds", ".yaml", file)) {
    for (const text::Json& document : YamlDocuments(ReadFile(path))) {
      const text::Json* const versions =
          text::Find(document, {"spec", "versions"});
      EXPECT_NE(versions, nullptr) << path;
      if (versions == nullptr) continue;
      for (const text::Json& version : *versions) {
        const text::Json* const schema =
            text::Find(version, {"schema", "openAPIV3Schema"});
        EXPECT_NE(schema, nullptr) << path;
        if (schema == nullptr) continue;
        schemas.push_back({absl::StrCat(path.filename().string(), " ",
                                        text::FindText(version, {"name"})),
                           std::make_shared<const text::Json>(*schema)});
      }
    }
  }
  return schemas;
}

std::vector<NamedSchema> DocumentSchemas(absl::string_view file) {
  std::vector<fs::path> paths = Files("openapi", ".json", file);
  for (fs::path& path : Files("crds", ".json", file)) {
    paths.push_back(std::move(path));
  }
  std::vector<NamedSchema> schemas;
  for (const fs::path& path : paths) {
    auto document = text::ParseJson(ReadFile(path));
    EXPECT_TRUE(document.ok()) << path << document.status();
    if (!document.ok()) continue;
    const text::Json components = (*document)["components"]["schemas"];
    SchemaDocument flattener(*std::move(document));
    for (const text::Json& component : components) {
      const text::Json* const kinds =
          text::Find(component, {"x-kubernetes-group-version-kind"});
      if (kinds == nullptr || kinds->size() != 1) continue;
      const std::string& kind = text::FindText((*kinds)[0], {"kind"});
      const auto found =
          flattener.Find({text::FindText((*kinds)[0], {"group"}),
                          text::FindText((*kinds)[0], {"version"})},
                         kind);
      EXPECT_TRUE(found.ok() && found->has_value()) << path << kind;
      if (!found.ok() || !found->has_value()) continue;
      schemas.push_back(
          {absl::StrCat(path.filename().string(), " ", kind),
           std::make_shared<const text::Json>(text::FromStruct(**found))});
    }
  }
  return schemas;
}

}  // namespace fncache::sdk::schema
