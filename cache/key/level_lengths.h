// SPDX-License-Identifier: Apache-2.0
// Lengths of the levels that StructWalk writes, made larger.
//
// A Struct or list comes into the output behind a head: the start of the map
// entry or list element that it is in, with the length of the entry, of the
// Value in it, and of the Struct or list in that. What these hold follows many
// levels later, when the heads have long been written with the lengths of the
// request. Where it then takes more bytes than in the request (a key that an
// encoder left out is written), the lengths in its head are too small, and in
// the heads around that. They are corrected once, when everything is written.
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

// `levels` are all Structs and lists that were written. Of what each of them
// holds itself, `grown` says how many bytes more were written than the lengths
// around it say; on return it counts what is inside of it too.
//
// Corrects every length, which moves what is behind those that need another
// byte. `end` is that of what was written; returns the new one. Null, and
// nothing done, if that would be more than `room` bytes behind `end`.
char* WidenLengths(absl::Span<const Level> levels, size_t room,
                   absl::Span<uint64_t> grown, char* end);

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_LEVEL_LENGTHS_H_
