// SPDX-License-Identifier: Apache-2.0
// Text as HTML.
//
// Pure function, thread-safe.
#ifndef FNCACHE_COMMON_HTML_H_
#define FNCACHE_COMMON_HTML_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache {

// `text` with references in place of & < > " and ', for an element's content
// or a quoted attribute.
std::string EscapeHtml(absl::string_view text);

}  // namespace fncache

#endif  // FNCACHE_COMMON_HTML_H_
