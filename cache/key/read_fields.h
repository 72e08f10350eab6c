// SPDX-License-Identifier: Apache-2.0
// The fields of a request that count in a key by hint (hint.h): all that no
// mask may hide, and what is at, below or above a path that the function read.
// The rest is skipped by its length, so its bytes are not read.
//
// These always count: which objects there are and all that is beside them,
// whether an object has a `spec` and a `metadata`, and how many elements a list
// has that is at or above a path.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_KEY_READ_FIELDS_H_
#define FNCACHE_CACHE_KEY_READ_FIELDS_H_

#include "absl/strings/string_view.h"
#include "cache/key/mask.h"

namespace fncache::cache::key {

// An object that has both, of which nothing was read. It is its own canonical
// form.
inline constexpr absl::string_view kBareObject(
    "\x0a\x0e\x0a\x08metadata\x12\x02\x2a\0\x0a\x0a\x0a\x04spec\x12\x02\x2a\0",
    28);

// Writes the RunFunctionRequest `request` without what does not count to `out`,
// which has request.size() bytes: that is a request, which is still to be
// validated. Returns its end. `reads` is the root of a hint. Null if the walk
// does not take the bytes: a message is nested too deep or broken, a map entry
// is not of a form that encoders write, or a length is longer than necessary.
// Reencode makes a form that it takes.
//
// Removing and merging may come in either order: what is removed depends on
// paths alone. So a request in an unusual form leads to the same message.
char* WriteReadFields(absl::string_view request, const MaskNode* reads,
                      char* out);

// The same of the request's `input` alone.
char* WriteInput(absl::string_view request, char* out);

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_READ_FIELDS_H_
