// SPDX-License-Identifier: Apache-2.0
// The bytes of the files that a render is about, and the names in its folders.
// The loader says what the bytes mean, and RenderInputs says which files there
// are.
//
// A file that is named on a command line may be anything that can be read to
// its end: a regular file, a pipe, a terminal. A file in a folder must be a
// regular file, since reading a stray pipe would block.
//
// NotFound: it is not there. FailedPrecondition: it is a folder, another kind
// of file, or over kMaxLoadedBytes. PermissionDenied: whatever else keeps it
// from being read. No message names the path: callers do.
//
// Pure functions over files, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_INPUT_FILE_H_
#define FNCACHE_RUNNER_RENDER_INPUT_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fncache::runner::render {

// No file that is read may be larger.
inline constexpr size_t kMaxLoadedBytes = 64 << 20;

// The name that standard input has here and in messages.
inline constexpr char kStandardInput[] = "/dev/stdin";

// The path that `argument` of a command line names: `-` is standard input,
// `./-` a file of that name.
std::string NamedFile(const std::string& argument);

// kStandardInput is read from descriptor 0 as it stands, so that it may be a
// socket, which cannot be opened by that name.
absl::StatusOr<std::string> ReadNamedFile(const std::string& path);
absl::StatusOr<std::string> ReadFoundFile(const std::string& path);

// Whether `path` is a folder, or a link to one.
absl::StatusOr<bool> IsFolder(const std::string& path);

struct FolderEntry {
  std::string path;        // the folder's and the name
  bool is_folder = false;  // a link to one is none
};

// The entries of a folder, ordered by the bytes of their names.
absl::StatusOr<std::vector<FolderEntry>> ListFolder(const std::string& path);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_INPUT_FILE_H_
