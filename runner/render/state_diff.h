// SPDX-License-Identifier: Apache-2.0
// Describes what a step changed in lines that people read:
//
//   ~ desired.composite.status.hosts: 2 -> 3
//   + desired.resources.bucket (s3.example.org/v1 Bucket)
//     +   spec:
//     +     region: eu
//   - context."example.org/zone": "a"
//
// Secrets do not show: of connection details only the length does. Every line
// is Printable (common/utf8.h).
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_STATE_DIFF_H_
#define FNCACHE_RUNNER_RENDER_STATE_DIFF_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/function_v1_fwd.h"
#include "proto/struct_fwd.h"

namespace fncache::runner::render {

// How many lines of a resource or value that is new are shown.
inline constexpr int kMaxShownLines = 40;

// Both return no line where nothing changed. `path` is the name of the state or
// map, such as `desired`, and begins every path in the lines.
std::vector<std::string> DiffStates(
    absl::string_view path, const apiextensions::fn::proto::v1::State& before,
    const apiextensions::fn::proto::v1::State& after);
std::vector<std::string> DiffMaps(absl::string_view path,
                                  const google::protobuf::Struct& before,
                                  const google::protobuf::Struct& after);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_STATE_DIFF_H_
