// SPDX-License-Identifier: Apache-2.0
// Reads the canonical form as docs/key-format.md describes it, without any code
// of the walks that write it: that it can be read back is what makes keys
// sound.
#ifndef FNCACHE_TESTS_CACHE_KEY_UNFOLD_H_
#define FNCACHE_TESTS_CACHE_KEY_UNFOLD_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "cache/key/mask.h"

namespace fncache::cache::key {

// The protobuf encoding of the request whose canonical form under these masks
// is `form` (no scope), with or without tuning: every Struct and list where it
// belongs. None if it is not such a form.
absl::optional<std::string> Unfold(const MaskSet& masks, bool tuned,
                                   absl::string_view form);

}  // namespace fncache::cache::key

#endif  // FNCACHE_TESTS_CACHE_KEY_UNFOLD_H_
