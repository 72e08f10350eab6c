// SPDX-License-Identifier: Apache-2.0
// The documents of the files that the generator reads, and the lines at which
// their values stand.
//
// Documents own their content; the functions are thread-safe.
#ifndef FNCACHE_SDK_GENERATE_DOCUMENTS_H_
#define FNCACHE_SDK_GENERATE_DOCUMENTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "text/json.h"

namespace fncache::sdk {

// One document of a file, in YAML or JSON.
struct YamlDocument {
  std::string file;    // as errors name it
  int first_line = 1;  // of its text in the file
  std::string text;
  std::shared_ptr<const text::Json> json;
};

// The keys of a value from a document's root on, an element's index among them.
using DocumentPath = std::vector<std::string>;

// InvalidArgument `FILE:LINE: why` for a text that is not YAML.
absl::StatusOr<std::vector<YamlDocument>> ReadDocuments(absl::string_view text,
                                                        absl::string_view file);

// The error `FILE:LINE: why` about the value at `path`, or about the innermost
// value around it that is there.
absl::Status ErrorAt(const YamlDocument& document, const DocumentPath& path,
                     absl::string_view why);

// The files that a path names: a file itself; of a folder those below it whose
// names end in .yaml, .yml or .json, sorted, without hidden ones. NotFound, or
// what else keeps a folder from being read, with the path in the message.
absl::StatusOr<std::vector<std::string>> FilesAt(const std::string& path);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_GENERATE_DOCUMENTS_H_
