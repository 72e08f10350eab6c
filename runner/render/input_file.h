// Reading the files and folders that a render is about.
//
// A file that is named on a command line may be anything that can be read to
// its end: a regular file, a pipe, a terminal. What is found in a folder must
// be a regular file, or a pipe that somebody left there would be waited on.
//
// NotFound: it is not there. FailedPrecondition: it is a folder, another kind
// of file, or over kMaxLoadedBytes. PermissionDenied: whatever else keeps it
// from being read. No message names the path: callers do.
//
// Pure functions over files, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_INPUT_FILE_H_
#define FNCACHE_RUNNER_RENDER_INPUT_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fncache::runner::render {

absl::StatusOr<std::string> ReadNamedFile(const std::string& path);
absl::StatusOr<std::string> ReadFoundFile(const std::string& path);

// Whether `path` is a folder, or a link to one.
absl::StatusOr<bool> IsFolder(const std::string& path);

struct FolderEntry {
  std::string path;        // the folder's and the name
  bool is_folder = false;  // a link to one is none
};

// What is in a folder, by the bytes of the names.
absl::StatusOr<std::vector<FolderEntry>> ListFolder(const std::string& path);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_INPUT_FILE_H_
