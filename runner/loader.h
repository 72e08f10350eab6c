// Reads what a render is about from the files that people write, with the
// reference command line's rules and checks. Every error names the file, the
// document where there are several, and the field.
//
// Pure functions over files, thread-safe.
#ifndef FNCACHE_RUNNER_LOADER_H_
#define FNCACHE_RUNNER_LOADER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runner/function_client.h"
#include "runner/json.h"

namespace fncache::runner {

// No file that is read may be larger.
inline constexpr size_t kMaxLoadedBytes = 64 << 20;

struct LoadedObject {
  Json object;
  std::string where;  // `FILE`, or `FILE (document 3)` of several
};

// The first document of a file, an object.
absl::StatusOr<LoadedObject> LoadObject(const std::string& path);

// All documents of a file, or of the *.yaml and *.yml of a directory by name,
// not deeper. A directory without any is an error.
absl::StatusOr<std::vector<LoadedObject>> LoadObjects(const std::string& path);

// LoadObjects of each path in turn; what is loaded must have a kind.
absl::StatusOr<std::vector<LoadedObject>> LoadResources(
    const std::vector<std::string>& paths);

// The XR, and a Composition of mode Pipeline.
absl::StatusOr<LoadedObject> LoadComposite(const std::string& path);
absl::StatusOr<LoadedObject> LoadComposition(const std::string& path);

// Whether `composition` is for `composite`: compositeTypeRef and the
// composite's compositionSelector.
absl::Status CheckComposition(const Json& composition, const Json& composite);

// Of Function objects with the Development runtime: the target of each.
// `annotations` replace those of every object.
absl::StatusOr<std::vector<FunctionTarget>> LoadFunctions(
    const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& annotations);

// Every *.json below a directory, in order of their paths.
absl::StatusOr<std::vector<Json>> LoadSchemas(const std::string& dir);

}  // namespace fncache::runner

#endif  // FNCACHE_RUNNER_LOADER_H_
