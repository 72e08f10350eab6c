// SPDX-License-Identifier: Apache-2.0
// SchemaDocument: one OpenAPI v3 document, which finds schemas by group,
// version and kind, and flattens each of them once.
//
// Thread-safe. Owns the document.
#ifndef FNCACHE_SDK_SCHEMA_SCHEMA_DOCUMENT_H_
#define FNCACHE_SDK_SCHEMA_SCHEMA_DOCUMENT_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "proto/struct_fwd.h"
#include "sdk/schema/group_version.h"
#include "text/json.h"

namespace fncache::sdk::schema {

// A kind's schema with its references replaced; nullopt if no document has that
// kind. An error if a document is not available or is broken.
using FoundSchema = absl::StatusOr<absl::optional<google::protobuf::Struct>>;

// References may multiply: two to a schema that has two to the next, and so on.
// No flattened schema may take more than this, every value counted with 64
// bytes besides its text, nor be nested deeper than kMaxJsonDepth.
inline constexpr size_t kMaxFlattenedBytes = 64 << 20;

class SchemaDocument {
 public:
  explicit SchemaDocument(text::Json document);
  ~SchemaDocument();

  // All group-versions that its x-kubernetes-group-version-kind lists name.
  const std::set<GroupVersion>& group_versions() const {
    return group_versions_;
  }

  // The schema of `kind`, flattened; nullopt if no component's list is just
  // that kind. References to the document's own components are replaced whole,
  // a reference to a schema that is being expanded by {type: object}. A
  // dangling one is InvalidArgument.
  FoundSchema Find(const GroupVersion& group_version, const std::string& kind);

 private:
  using Kind = std::tuple<std::string, std::string, std::string>;

  const std::unique_ptr<const text::Json> document_;
  std::set<GroupVersion> group_versions_;
  // The name of the component whose list is just that kind; group and version
  // in lower case, since they are compared without regard to it.
  std::map<Kind, std::string> kinds_;

  Mutex mutex_;
  std::map<std::string, FoundSchema> flattened_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_SDK_SCHEMA_SCHEMA_DOCUMENT_H_
