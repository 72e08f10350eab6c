// SPDX-License-Identifier: Apache-2.0
// Texts in a form that is safe in a log line. No text, of any origin, can end
// the line, start a field or control a terminal.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_LOG_TEXT_H_
#define FNCACHE_COMMON_LOG_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache {

// Appends `text` with control characters and the separators of lines and
// paragraphs (U+2028, U+2029) as \u00XX, and U+FFFD for each byte that is not
// UTF-8.
void AppendLogText(absl::string_view text, std::string* out);

// Appends it as a string of JSON (RFC 8259, section 7), quotes included.
void AppendJsonString(absl::string_view text, std::string* out);

// Appends it as the value of a field in a line of text: as it is, or, with
// spaces, quotes or control characters or empty, as a string of JSON.
void AppendTextValue(absl::string_view value, std::string* out);

}  // namespace fncache

#endif  // FNCACHE_COMMON_LOG_TEXT_H_
