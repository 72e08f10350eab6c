// SPDX-License-Identifier: Apache-2.0
// The known word nearest to a mistyped one: for `did you mean --upstream?`.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_NEAREST_H_
#define FNCACHE_COMMON_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fncache {

// The one of `words` that is most like `text`, the first of several, or nothing
// where none is alike: at most one slip of the keyboard in every three
// characters (a character added, left out or changed, or two that changed
// places), and two in all.
std::string Nearest(absl::string_view text,
                    const std::vector<std::string>& words);

// The same as the end of a sentence, "; did you mean WORD?", or empty.
std::string DidYouMean(absl::string_view text,
                       const std::vector<std::string>& words);

}  // namespace fncache

#endif  // FNCACHE_COMMON_NEAREST_H_
