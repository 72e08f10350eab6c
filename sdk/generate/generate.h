// SPDX-License-Identifier: Apache-2.0
// Generate: C++ headers with a class for each kind that documents define.
//
// The same documents give the same bytes, in whatever order they come. Pure but
// for the functions that name files; thread-safe.
#ifndef FNCACHE_SDK_GENERATE_GENERATE_H_
#define FNCACHE_SDK_GENERATE_GENERATE_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sdk/generate/documents.h"

namespace fncache::sdk {

struct GenerateOptions {
  std::set<std::string> kinds;     // empty: all
  std::set<std::string> versions;  // empty: all that are served
  // Kinds of a function's input, whose headers have their schema: `Input` of
  // any group, or `Input.example.org`.
  std::set<std::string> inputs;
};

// The text of each header by its path, `model/.../kind.h`. InvalidArgument: the
// documents are wrong (`FILE:LINE: why`). NotFound: they define no kind, or
// none that the options ask for.
absl::StatusOr<std::map<std::string, std::string>> Generate(
    const std::vector<std::shared_ptr<const YamlDocument>>& documents,
    const GenerateOptions& options);

// Reads the documents of files and folders. NotFound or PermissionDenied for
// one that cannot be read; InvalidArgument as ReadDocuments.
absl::StatusOr<std::vector<std::shared_ptr<const YamlDocument>>> ReadAll(
    const std::vector<std::string>& paths);

// Writes headers below `folder`. Files with the same text stay untouched, so
// that nothing is compiled anew. FailedPrecondition, before anything is
// written, if a file is there that the generator did not write; Unknown for one
// that cannot be written. Each file is written whole or not at all.
absl::Status WriteHeaders(const std::map<std::string, std::string>& headers,
                          const std::string& folder);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_GENERATE_GENERATE_H_
