// SPDX-License-Identifier: Apache-2.0
// Corrects the lengths of the levels that StructWalk writes.
//
// StructWalk writes a head before each Struct or list. The head is the start of
// the map entry or list element around it. It has the length of the entry, of
// the Value in it, and of the Struct or list in that. The contents follow many
// levels later. By then the heads are written, with the lengths of the request.
//
// The contents can take more bytes than in the request, because a key that an
// encoder left out is written. Then the lengths in the head and in the heads
// around it are too small. They are corrected once, when everything is written.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_KEY_LEVEL_LENGTHS_H_
#define FNCACHE_CACHE_KEY_LEVEL_LENGTHS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace fncache::cache::key {

// A Struct or list in the output. They are numbered in the order in which they
// were met, which is that in which what they hold was written; the first one is
// around all others.
struct Level {
  // Where what it holds begins: heads of Structs and lists in it, and the rest.
  char* contents;
  // The number of the first Struct or list in it, or in a later one if it has
  // none.
  size_t first_inner;
  bool is_list;
};

// `levels` are all Structs and lists that were written. For each of them,
// `grown` is the number of bytes that its own contents take beyond the lengths
// around it. On return, `grown` includes the contents of its inner levels.
//
// Corrects every length, which moves the bytes behind those that need another
// byte. `end` is the end of the output; returns the new end. Returns null, and
// does nothing, if the new end would be more than `room` bytes behind `end`.
char* WidenLengths(absl::Span<const Level> levels, size_t room,
                   absl::Span<uint64_t> grown, char* end);

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_LEVEL_LENGTHS_H_
