// SPDX-License-Identifier: Apache-2.0
// Where two texts differ, line by line, in the unified format of diff(1).
//
// A pure function, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_TEXT_DIFF_H_
#define FNCACHE_RUNNER_RENDER_TEXT_DIFF_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache::runner::render {

// Empty if they are equal. Names follow `---` and `+++`. Every line of a text
// is taken to end with a line feed. Texts that have few lines in common among
// many thousands are shown as one text instead of another.
std::string TextDiff(absl::string_view before, absl::string_view after,
                     absl::string_view before_name,
                     absl::string_view after_name);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_TEXT_DIFF_H_
