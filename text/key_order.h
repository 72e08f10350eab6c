// SPDX-License-Identifier: Apache-2.0
// The order in which the reference runner's YAML library (go-yaml version 2)
// writes the keys of a map: a2 comes before a10, and letters come last.
//
// Pure function, thread-safe.
#ifndef FNCACHE_TEXT_KEY_ORDER_H_
#define FNCACHE_TEXT_KEY_ORDER_H_

#include "absl/strings/string_view.h"

namespace fncache::text {

// Whether `a` is written before `b`, both UTF-8. One of two different keys is,
// but three can make a circle, as a1b, a2b and a10b do (the reference's order
// of them varies). So sort with std::stable_sort, which stays within its range
// even with a circle.
bool KeyLess(absl::string_view a, absl::string_view b);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_KEY_ORDER_H_
