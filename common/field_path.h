// SPDX-License-Identifier: Apache-2.0
// How a path to a field is spelled, for everybody who writes or reads one:
// masks, the expressions of `fncache function`, error messages that say where
// in a file something is wrong, and lists of what differs.
//
// A path is field names and map keys with dots between them, such as
// `context."example.org/now".zone`. A key is quoted where it could be taken for
// something else bare: where it holds dots, quotes, backslashes, stars,
// brackets, white space or control characters, is empty or all digits. Within
// quotes `\"` stands for a quote and `\\` for a backslash.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_FIELD_PATH_H_
#define FNCACHE_COMMON_FIELD_PATH_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache {

// Whether a key that holds `c` is quoted for that.
bool NeedsQuotes(char c);
// Whether `text` is not empty and holds digits only: bare, it would be an
// index.
bool IsAllDigits(absl::string_view text);

// `key` in quotes.
std::string QuoteKey(absl::string_view key);
// `key` as it stands in a path, in quotes only where it must be.
std::string SpellKey(absl::string_view key);

// The path of the field or map key `key` below `path`, which may be empty.
std::string PathBelow(absl::string_view path, absl::string_view key);
// The path of a list's element.
std::string PathOfElement(absl::string_view path, size_t index);

// Reads the key (or other text) in quotes that `text` begins with, and cuts it
// off. InvalidArgument says what is wrong with it; `text` is then
// unspecified.
absl::StatusOr<std::string> TakeQuoted(absl::string_view* text);

}  // namespace fncache

#endif  // FNCACHE_COMMON_FIELD_PATH_H_
