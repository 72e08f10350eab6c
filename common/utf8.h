// SPDX-License-Identifier: Apache-2.0
// UTF-8 as RFC 3629 defines it: no surrogates, no over-long forms, nothing
// above U+10FFFF. Files, logs and labels are checked against it.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_UTF8_H_
#define FNCACHE_COMMON_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fncache {

// The bytes (1 to 4) of the well-formed character that `text` starts with, or 0
// if it starts with none.
size_t Utf8CharacterBytes(absl::string_view text);

// The code point of `character`, one well-formed character and nothing else. Of
// a single byte it is that byte.
uint32_t Utf8CodePoint(absl::string_view character);

// Whether all of `text` is well-formed.
bool IsUtf8(absl::string_view text);

// `text` with U+FFFD in place of each byte that is not well-formed, as the JSON
// encoders of Go do it.
std::string WellFormedUtf8(absl::string_view text);

// Whether `text` has a control character of Unicode's for the direction of
// writing (Bidi_Control: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
// U+2069). They do not show, and they reorder what stands around them on a
// screen, so that it reads as something else than it is.
bool HasBidiControl(absl::string_view text);

// `text` with \uNNNN in place of each of those.
std::string WithoutBidiControls(absl::string_view text);

// `text` as something that a terminal can be given: UTF-8 on one line. Control
// characters of ASCII and Latin-1 (U+0080 to U+009F), which terminals obey, and
// bytes that are not UTF-8 become \xNN, or \n, \r, \t; Bidi_Control and the
// separators of lines and paragraphs (U+2028, U+2029) become \uNNNN.
std::string Printable(absl::string_view text);

// The beginning of a given text, for an error about it: at most 100 bytes, as
// Printable, with "..." if the text is longer.
std::string PrintableStart(absl::string_view text);

}  // namespace fncache

#endif  // FNCACHE_COMMON_UTF8_H_
