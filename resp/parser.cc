// SPDX-License-Identifier: Apache-2.0
#include "resp/parser.h"

namespace fncache::resp {
namespace {

constexpr char kTooLarge[] = "the reply is too large";
// The largest buffer that a connection keeps. hiredis would free that of a
// usual response each time.
constexpr size_t kKeptBuffer = 64 << 10;

}  // namespace

// Each returns the new object, or null, which breaks the reader. The pointers
// to elements stay valid: only the innermost array grows.
struct Parser::Objects {
  static Reply* Add(const redisReadTask* task, Reply::Kind kind) {
    auto* const parser = static_cast<Parser*>(task->privdata);
    Reply* reply = &parser->reply_;
    if (task->parent != nullptr) {
      if (parser->left_ < sizeof(Reply)) {
        parser->why_ = kTooLarge;
        return nullptr;
      }
      parser->left_ -= sizeof(Reply);
      reply = &static_cast<Reply*>(task->parent->obj)->elements.emplace_back();
    }
    reply->kind = kind;
    return reply;
  }

  static void* String(const redisReadTask* task, char* text, size_t size) {
    Reply::Kind kind = Reply::Kind::kText;
    if (task->type == REDIS_REPLY_STATUS) kind = Reply::Kind::kStatus;
    if (task->type == REDIS_REPLY_ERROR) kind = Reply::Kind::kError;
    // hiredis does not check the end of a bulk string, which is there by now.
    if (kind == Reply::Kind::kText &&
        absl::string_view(text + size, 2) != "\r\n") {
      return nullptr;
    }
    Reply* const reply = Add(task, kind);
    if (reply != nullptr) reply->text.assign(text, size);
    return reply;
  }

  static void* Array(const redisReadTask* task, int /*announced*/) {
    return Add(task, Reply::Kind::kArray);
  }

  static void* Integer(const redisReadTask* task, long long value) {
    Reply* const reply = Add(task, Reply::Kind::kInteger);
    if (reply != nullptr) reply->integer = value;
    return reply;
  }

  static void* Nil(const redisReadTask* task) {
    return Add(task, Reply::Kind::kNil);
  }

  // The root has all objects, and the parser has the root.
  static void Leave(void* /*object*/) {}

  static redisReplyObjectFunctions* Functions() {
    static redisReplyObjectFunctions functions = {&String, &Array, &Integer,
                                                  &Nil, &Leave};
    return &functions;
  }
};

Parser::Parser()
    : reader_(redisReaderCreateWithFunctions(Objects::Functions())) {
  if (reader_ == nullptr) return;
  reader_->privdata = this;
  reader_->maxbuf = kKeptBuffer;
}

void Parser::Begin(size_t max_bytes) {
  left_ = max_bytes;
  reply_ = Reply();
}

Parser::Result Parser::Feed(absl::string_view bytes) {
  why_ = "the reply is no RESP2";
  if (bytes.size() > left_) {
    why_ = kTooLarge;
    return Result::kBroken;
  }
  left_ -= bytes.size();
  void* done = nullptr;
  if (reader_ == nullptr ||
      redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK ||
      redisReaderGetReply(reader_.get(), &done) != REDIS_OK) {
    return Result::kBroken;
  }
  if (done == nullptr) return Result::kMore;
  if (reader_->pos != reader_->len) {
    why_ = "bytes follow the reply";
    return Result::kBroken;
  }
  return Result::kReply;
}

}  // namespace fncache::resp
