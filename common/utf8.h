// UTF-8 as RFC 3629 defines it: no surrogates, no over-long forms, nothing
// above U+10FFFF. What files, logs and labels are checked against.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_UTF8_H_
#define FNCACHE_COMMON_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace fncache {

// The bytes (1 to 4) of the well-formed character that `text` starts with, or 0
// if it starts with none.
size_t Utf8CharacterBytes(absl::string_view text);

// Whether all of `text` is well-formed.
bool IsUtf8(absl::string_view text);

// `text` with U+FFFD in place of each byte that is not well-formed, as the JSON
// encoders of Go do it.
std::string WellFormedUtf8(absl::string_view text);

// `text` as something that can be shown: UTF-8 without control characters of
// ASCII or Latin-1 (U+0080 to U+009F), which break lines and which terminals
// obey. Those, and bytes that are not UTF-8, become \xNN, or \n, \r, \t.
std::string Printable(absl::string_view text);

}  // namespace fncache

#endif  // FNCACHE_COMMON_UTF8_H_
