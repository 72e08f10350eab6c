// SPDX-License-Identifier: Apache-2.0
// The objects in the files that people write for a render, read from their
// bytes (input_file.h) with the reference command line's rules and checks.
// Every error names the file, the document where there are several, and the
// field: `FILE: FIELD: why`, `FILE (document 3): why`.
//
// NotFound: the file is not there. InvalidArgument: its contents are wrong.
// FailedPrecondition: it is a directory, or too large. A file that is named may
// be a pipe (/dev/stdin, process substitution).
//
// Pure functions over files, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_LOADER_H_
#define FNCACHE_RUNNER_RENDER_LOADER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runner/client/function_client.h"
#include "text/json.h"

namespace fncache::runner::render {

struct LoadedObject {
  std::shared_ptr<text::Json> object;  // not null; copies share it
  std::string where;  // `FILE`, or `FILE (document 3)` of several
};

// The first document of a file, an object of any form, and all documents of a
// file, or of the *.yaml and *.yml of a directory by name, not deeper. A
// directory without any is an error. A document of comments only is an error
// for the first, and an empty object for the second.
absl::StatusOr<LoadedObject> LoadObject(const std::string& path);
absl::StatusOr<std::vector<LoadedObject>> LoadObjects(const std::string& path);

// The CompositeResourceDefinition in the first document of a file, of which the
// reference knows the form (typed_object.h).
absl::StatusOr<text::Json> LoadDefinition(const std::string& path);

// LoadObjects of Secrets, whose form is known as well; no kind is needed.
absl::StatusOr<std::vector<LoadedObject>> LoadSecrets(const std::string& path);

// LoadObjects of each path, one after another; what is loaded must have a kind,
// or be empty.
absl::StatusOr<std::vector<LoadedObject>> LoadResources(
    const std::vector<std::string>& paths);

// The same for one path, but each file of a directory is read separately, so
// that an error in one keeps the others. Not ok where there are no files to be
// read at all: `path` is not there, or is a directory that cannot be listed or
// has no YAML files.
struct LoadedFile {
  std::string path;
  absl::StatusOr<std::vector<LoadedObject>> objects;
};
absl::StatusOr<std::vector<LoadedFile>> LoadResourceFiles(
    const std::string& path);

// The XR, which must have a kind, and the Composition, whose form is known. An
// operation in either's place is refused (operations.h). CheckComposition is
// still to come.
absl::StatusOr<LoadedObject> LoadComposite(const std::string& path);
absl::StatusOr<LoadedObject> LoadComposition(const std::string& path);

// Whether `composition` is for `composite` and can be run: compositeTypeRef,
// the composite's compositionSelector, and mode Pipeline. The message is the
// reference command line's.
absl::Status CheckComposition(const text::Json& composition,
                              const text::Json& composite);

// The targets of Function objects with the Development runtime. The last of two
// with one name counts. `annotations` replace those of every object. `given`
// are targets that are known otherwise: they count before the file's, need no
// annotation, and are in the result, whether the file has them or not.
absl::StatusOr<std::vector<client::FunctionTarget>> LoadFunctions(
    const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& annotations,
    const std::vector<client::FunctionTarget>& given = {});

// Every *.json below a directory, in order of their paths: that of each
// directory's entries by name, links to directories not followed. Each holds
// one object; none at all is an error.
absl::StatusOr<std::vector<text::Json>> LoadSchemas(const std::string& dir);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_LOADER_H_
