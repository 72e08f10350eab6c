// SPDX-License-Identifier: Apache-2.0
// Init: the project of a function, from the files of sdk/template.
//
// Thread-safe.
#ifndef FNCACHE_SDK_GENERATE_INIT_H_
#define FNCACHE_SDK_GENERATE_INIT_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::sdk {

struct InitOptions {
  std::string folder;
  // A DNS label; empty: `function-` and the folder's name.
  std::string name;
  // A file with an XRD, whose composite the function is for; empty: the
  // template's.
  std::string xrd;
};

// The files of the project by their paths. InvalidArgument for a name that no
// package may have, and as ReadDocuments for the XRD.
absl::StatusOr<std::map<std::string, std::string>> MakeProject(
    const InitOptions& options);

// Writes them. FailedPrecondition, before anything is written, if the folder is
// there and not empty.
absl::Status Init(const InitOptions& options);

// The files of sdk/template, which CMake embeds.
struct TemplateFile {
  absl::string_view path;
  absl::string_view text;
};
extern const TemplateFile kTemplate[];
extern const size_t kTemplateSize;

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_GENERATE_INIT_H_
