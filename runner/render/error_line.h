// SPDX-License-Identifier: Apache-2.0
// ErrorLine: how both of the reference's programs, its command line and its
// engine, say on stderr what went wrong.
//
// Pure function, thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_ERROR_LINE_H_
#define FNCACHE_RUNNER_RENDER_ERROR_LINE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache::runner::render {

// `message` behind `crossplane: error: `: without newlines at its end, every
// further line indented to where the first begins. Ends with a newline. All
// else that a terminal would obey is escaped (Printable of common/utf8.h),
// since functions and files decide parts of a message.
std::string ErrorLine(absl::string_view message);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_ERROR_LINE_H_
