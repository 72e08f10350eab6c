// SPDX-License-Identifier: Apache-2.0
// Parser: reads a reply from bytes as they arrive.
//
// hiredis reads; the objects are our Reply. No announced length reserves
// memory: elements and texts are made when their bytes are there.
//
// Not thread-safe.
#ifndef FNCACHE_RESP_PARSER_H_
#define FNCACHE_RESP_PARSER_H_

#include <cstddef>
#include <memory>

#include "absl/strings/string_view.h"
#include "hiredis/read.h"
#include "resp/reply.h"

namespace fncache::resp {

class Parser {
 public:
  enum class Result { kMore, kReply, kBroken };

  Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // Starts a reply whose bytes, with sizeof(Reply) for each element, are at
  // most `max_bytes`.
  void Begin(size_t max_bytes);

  // kBroken (why() has the reason, and the parser stays broken): the reply is
  // larger, nested deeper than seven arrays, or no RESP2, or bytes follow it.
  Result Feed(absl::string_view bytes);

  // After kReply.
  Reply& reply() { return reply_; }
  absl::string_view why() const { return why_; }

 private:
  struct Objects;  // hiredis's callbacks
  struct Free {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };

  // The bytes that the reply may still take.
  size_t left_ = 0;
  Reply reply_;
  const char* why_ = "";
  const std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace fncache::resp

#endif  // FNCACHE_RESP_PARSER_H_
