// SPDX-License-Identifier: Apache-2.0
// Makes the documents that `render` prints of a rendered composite, in their
// order, and gives them fixed times, so that two runs print the same. The
// reference runner's command line (Crossplane v2.4) does the same.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_OUTPUT_H_
#define FNCACHE_RUNNER_RENDER_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/struct_fwd.h"
#include "text/json.h"

namespace crossplane::render::v1alpha1 {
class CompositeOutput;
}  // namespace crossplane::render::v1alpha1

namespace fncache::runner::render {

struct RenderOutputOptions {
  // The composite merged over the one that was given (-x).
  bool full_composite = false;
  // A Result for every event (-r).
  bool results = false;
};

// The composite, its composed resources by the bytes of their names, Results,
// and a Context if there is one. `composite` is the input, as loaded and
// defaulted. An error where a document's status cannot hold conditions.
absl::StatusOr<std::vector<text::Json>> OutputDocuments(
    const text::Json& composite,
    const crossplane::render::v1alpha1::CompositeOutput& output,
    const absl::optional<google::protobuf::Struct>& context,
    const RenderOutputOptions& options);

// The documents as YAML, with `---` before each.
std::string PrintDocuments(const std::vector<text::Json>& documents);
// OutputDocuments, printed so.
absl::StatusOr<std::string> PrintOutput(
    const text::Json& composite,
    const crossplane::render::v1alpha1::CompositeOutput& output,
    const absl::optional<google::protobuf::Struct>& context,
    const RenderOutputOptions& options);

// Gives all `status.conditions` one fixed time and only the fields that a
// condition has. A status without conditions gets a null. Values that cannot be
// read as conditions stay as they are. FailedPrecondition if status is null.
absl::Status FixConditionTimes(text::Json* object);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_OUTPUT_H_
