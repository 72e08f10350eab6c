// SPDX-License-Identifier: Apache-2.0
// YAML as Kubernetes' tools read it: YAML 1.1, converted to JSON.
//
// `yes`, `on` and `n` are booleans, as keys too (then "true" or "false"); `010`
// is 8; `1_000`, `0x10` and `0o10` are whole numbers; dates are text; anchors
// and `<<` work; the last of two equal keys wins; `.inf` and `.nan` are errors.
// A whole number is int64 however it was written (`3.0`, `1e3`); one beyond
// that is a double, as in Kubernetes' unstructured objects. A null, list or map
// as a key is an error. The rules are those of the reference runner's YAML
// library, a port of libyaml, which does the parsing here.
//
// Any input is safe: nesting is bounded (kMaxJsonDepth), and so is what aliases
// may expand to. Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_TEXT_KUBERNETES_YAML_H_
#define FNCACHE_RUNNER_TEXT_KUBERNETES_YAML_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runner/text/json.h"

namespace fncache::runner::text {

struct YamlDocument {
  std::string text;
  int line = 1;  // of the file, where it begins
};

// Cuts a file into its documents at lines of `---`, which blanks or a comment
// may follow; other text there is an error that names the line. Nothing at all
// between two separators is no document, but comments alone are one.
absl::StatusOr<std::vector<YamlDocument>> SplitYamlDocuments(
    absl::string_view text);

// Reads one document, or JSON, which is YAML as well. A document that is empty
// or holds only comments is null. The message of InvalidArgument is `line N:
// why`, with N counted from `first_line`.
absl::StatusOr<Json> ParseKubernetesYaml(absl::string_view text,
                                         int first_line = 1);

}  // namespace fncache::runner::text

#endif  // FNCACHE_RUNNER_TEXT_KUBERNETES_YAML_H_
