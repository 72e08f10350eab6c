// SPDX-License-Identifier: Apache-2.0
// Random legal encodings of a message, as encoders write it and as they never
// would.
//
// Pure functions of the Random that they are given.
#ifndef FNCACHE_TESTS_CACHE_KEY_RANDOM_ENCODING_H_
#define FNCACHE_TESTS_CACHE_KEY_RANDOM_ENCODING_H_

#include <string>

#include "google/protobuf/message.h"
#include "tests/cache/key/random_request.h"

namespace fncache::cache::key {

enum class Style {
  // As most encoders write it, map entries in random order.
  kPlain,
  // As one encoder or another might: empty keys and values of map entries left
  // out, values before keys, defaults written, fields and the entries of maps
  // in any order (but for unknown fields of Structs, Values and lists, which
  // are behind known ones); everything once, varints as short as they can be.
  kAnyEncoder,
  // Any bytes that parse as the same message: fields in any order, messages
  // split, keys and singular fields repeated, long varints, junk in map
  // entries...
  kWild,
};
std::string Encode(const google::protobuf::Message& message, Style style,
                   Random* random);

// A top-level field of a request that `key: tag` skips; what it holds is
// seldom what such a field may hold.
std::string SkippedByTag(Random* random);

}  // namespace fncache::cache::key

#endif  // FNCACHE_TESTS_CACHE_KEY_RANDOM_ENCODING_H_
