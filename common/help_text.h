// SPDX-License-Identifier: Apache-2.0
// The parts of a text that `--help` prints which every command has, so that all
// of them look alike:
//
//   Purpose.
//
//   Usage: fncache example [flags] FILE
//
//   Flags:
//     -o, --output FILE             Where the result goes (default -)
//     -h, --help                    Print this
//
//   Exit codes: ...
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_HELP_TEXT_H_
#define FNCACHE_COMMON_HELP_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fncache {

// No line of a help text is longer, but for a word that is.
inline constexpr size_t kHelpColumns = 80;

// The text of the flag -h, --help.
inline constexpr char kHelpOfHelp[] = "Print this";

// The left side of a flag's row: `  -o, --output FILE`, or with the long name
// below others' where there is no short one. `names` have their dashes, the
// short one first.
std::string FlagUsage(const std::vector<std::string>& names,
                      absl::string_view argument);

// Appends a row: `left`, and from a column that all rows share `text`, broken
// into lines at its spaces. Its first letter becomes a capital one, unless the
// first word is a value or a file, with other characters than letters.
void AppendHelpRow(absl::string_view left, absl::string_view text,
                   std::string* out);

}  // namespace fncache

#endif  // FNCACHE_COMMON_HELP_TEXT_H_
