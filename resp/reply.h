// SPDX-License-Identifier: Apache-2.0
// Reply: what a Redis or Valkey server answers, in RESP2.
//
// https://redis.io/docs/latest/develop/reference/protocol-spec/ is the source.
//
// A value; not thread-safe.
#ifndef FNCACHE_RESP_REPLY_H_
#define FNCACHE_RESP_REPLY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace fncache::resp {

struct Reply {
  enum class Kind { kNil, kInteger, kStatus, kText, kError, kArray };

  Kind kind = Kind::kNil;
  int64_t integer = 0;          // kInteger
  std::string text;             // kStatus, kText (a bulk string), kError
  std::vector<Reply> elements;  // kArray
};

}  // namespace fncache::resp

#endif  // FNCACHE_RESP_REPLY_H_
