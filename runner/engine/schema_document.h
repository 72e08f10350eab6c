// SchemaDocument: one OpenAPI v3 document, with its kinds found by group,
// version and kind, and flattened once each.
//
// Thread-safe. Owns the document.
#ifndef FNCACHE_RUNNER_ENGINE_SCHEMA_DOCUMENT_H_
#define FNCACHE_RUNNER_ENGINE_SCHEMA_DOCUMENT_H_

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/mutex.h"
#include "nlohmann/json.hpp"
#include "runner/schemas.h"
#include "runner/text/json.h"

namespace fncache::runner::engine {

// References may multiply: two to a schema that has two to the next, and so on.
// No flattened schema may take more than this, every value counted with 64
// bytes besides its text, nor be nested deeper than kMaxJsonDepth.
inline constexpr size_t kMaxFlattenedBytes = 64 << 20;

struct GroupVersion {
  std::string group;  // "" = core
  std::string version;

  bool operator<(const GroupVersion& other) const {
    return std::tie(group, version) < std::tie(other.group, other.version);
  }
  bool operator==(const GroupVersion& other) const {
    return group == other.group && version == other.version;
  }
};

// Of an apiVersion. InvalidArgument if it has two slashes.
absl::StatusOr<GroupVersion> ParseGroupVersion(absl::string_view api_version);

class SchemaDocument {
 public:
  explicit SchemaDocument(text::Json document);

  // Every group-version that one of its x-kubernetes-group-version-kind lists
  // names.
  const std::set<GroupVersion>& group_versions() const {
    return group_versions_;
  }

  // FlattenedSchema of the document.
  SchemaSource::Found Find(const GroupVersion& group_version,
                           const std::string& kind);

 private:
  using Kind = std::tuple<std::string, std::string, std::string>;

  const text::Json document_;
  std::set<GroupVersion> group_versions_;
  // The component whose list is just that kind; group and version in lower
  // case, since they are compared without regard to it.
  std::map<Kind, const text::Json*> kinds_;

  Mutex mutex_;
  std::map<const text::Json*, SchemaSource::Found> flattened_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_SCHEMA_DOCUMENT_H_
