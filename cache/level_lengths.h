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
#ifndef FNCACHE_CACHE_LEVEL_LENGTHS_H_
#define FNCACHE_CACHE_LEVEL_LENGTHS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fncache::cache {

// A Struct or list in the output.
struct LevelPlace {
  // Where its head begins. (The first one, which is around all others, has
  // none.)
  char* head;
  // Where what it holds begins, without what is in Structs and lists in it.
  const char* contents;
  bool is_list;
};

// `places` are all Structs and lists that were written, in their order, up to
// `end`. What each of them holds itself was written with as many bytes more as
// `grown` says of it; on return `grown` counts what is inside of it too.
//
// Corrects every length, which moves what is behind those that need another
// byte. Returns the new end. Null, and nothing done, if it would lie more than
// `room` bytes behind `end`.
char* WidenLengths(const std::vector<LevelPlace>& places, size_t room,
                   std::vector<uint64_t>* grown, char* end);

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_LEVEL_LENGTHS_H_
