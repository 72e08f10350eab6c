// SPDX-License-Identifier: Apache-2.0
// Quoted: names as the reference runner's messages quote them.
//
// Pure function, thread-safe.
#ifndef FNCACHE_TEXT_QUOTED_H_
#define FNCACHE_TEXT_QUOTED_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache::text {

// `text` in double quotes, as Go's %q writes it: quotes, backslashes, control
// characters and bytes that are no UTF-8 are escaped, all else stays.
std::string Quoted(absl::string_view text);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_QUOTED_H_
