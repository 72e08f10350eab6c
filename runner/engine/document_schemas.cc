// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/document_schemas.h"

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "sdk/schema/group_version.h"
#include "sdk/schema/schema_document.h"

namespace fncache::runner::engine {
namespace {

using sdk::schema::GroupVersion;
using sdk::schema::ParseGroupVersion;
using sdk::schema::SchemaDocument;

class DocumentSchemas : public SchemaSource {
 public:
  explicit DocumentSchemas(std::vector<text::Json> documents) {
    for (text::Json& json : documents) {
      const auto document = std::make_shared<SchemaDocument>(std::move(json));
      for (const GroupVersion& served : document->group_versions()) {
        documents_.emplace(served, document);  // the first keeps it
      }
    }
  }

  void Find(const std::string& api_version, const std::string& kind, absl::Time,
            std::function<void(FoundSchema)> done) override {
    const auto group_version = ParseGroupVersion(api_version);
    if (!group_version.ok()) return done(group_version.status());
    const auto document = documents_.find(*group_version);
    if (document == documents_.end()) {
      return done(absl::optional<google::protobuf::Struct>());
    }
    done(document->second->Find(*group_version, kind));
  }

 private:
  std::map<GroupVersion, std::shared_ptr<SchemaDocument>> documents_;
};

}  // namespace

std::unique_ptr<SchemaSource> MakeDocumentSchemas(
    std::vector<text::Json> documents) {
  return std::make_unique<DocumentSchemas>(std::move(documents));
}

std::unique_ptr<SchemaSource> MakeDocumentSchemasOfStructs(
    const std::vector<google::protobuf::Struct>& documents) {
  std::vector<text::Json> converted;
  converted.reserve(documents.size());
  for (const google::protobuf::Struct& document : documents) {
    converted.push_back(text::FromStruct(document));
  }
  return MakeDocumentSchemas(std::move(converted));
}

}  // namespace fncache::runner::engine
