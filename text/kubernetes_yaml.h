// SPDX-License-Identifier: Apache-2.0
// YAML as Kubernetes' tools read it: YAML 1.1, converted to JSON.
//
// `yes`, `on` and `n` are booleans, as keys too (then "true" or "false"). `010`
// is 8. `1_000`, `0x10` and `0o10` are whole numbers. Dates are text. Anchors
// and `<<` work. The last of two equal keys wins. A null, list or map as a key
// is an error. The rules are those of the reference runner's YAML library, from
// its scanner (yaml_scanner.h) to the words of its errors.
//
// Any input is safe: nesting is bounded (kMaxJsonDepth), and so is what aliases
// may expand to. Pure functions, thread-safe.
#ifndef FNCACHE_TEXT_KUBERNETES_YAML_H_
#define FNCACHE_TEXT_KUBERNETES_YAML_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "text/json.h"

namespace fncache::text {

// Cuts a file into its documents at lines of `---`, which blanks or a comment
// may follow; other text there is an error. A separator before any text belongs
// to the document behind it, so that of two at the beginning the first is a
// document of its own, without content. (Such is the reference's reader.)
absl::StatusOr<std::vector<std::string>> SplitYamlDocuments(
    absl::string_view text);

// Reads the first document, or JSON, which is YAML as well. One that is empty
// or holds only comments is null. A double is a number that was written as one
// (`1.0`, `1e3`, `.inf`), a whole number int64 or, beyond that, uint64.
// InvalidArgument has the reference's message, `yaml: line N: why`.
absl::StatusOr<Json> ParseYamlValues(absl::string_view text);

// Makes of such values what a Kubernetes object without a fixed form holds. A
// whole number is int64 however it was written (`3.0`, `1e3`), and one beyond
// that is a double. InvalidArgument for `.inf` and `.nan`, which JSON lacks.
absl::Status MakeUnstructured(Json* json);

// Both.
absl::StatusOr<Json> ParseKubernetesYaml(absl::string_view text);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_KUBERNETES_YAML_H_
