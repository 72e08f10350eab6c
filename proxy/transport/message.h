// SPDX-License-Identifier: Apache-2.0
// Message: one gRPC message as it travels, and how it is framed (gRPC over
// HTTP/2: a byte that says whether it is compressed, four of length, the
// bytes).
//
// A message keeps its bytes by reference; copying it copies references.
#ifndef FNCACHE_PROXY_TRANSPORT_MESSAGE_H_
#define FNCACHE_PROXY_TRANSPORT_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "http2/slice.h"

namespace fncache::proxy::transport {

// Before every message.
inline constexpr size_t kMessagePrefix = 5;

class Message {
 public:
  // None at all; an empty message is another thing.
  Message() = default;
  explicit Message(http2::Slice bytes, bool compressed = false)
      : valid_(true), compressed_(compressed) {
    Append(std::move(bytes));
  }

  void Append(http2::Slice bytes) {
    valid_ = true;
    size_ += bytes.size();
    if (!bytes.empty()) pieces_.push_back(std::move(bytes));
  }
  void Clear() { *this = Message(); }

  bool valid() const { return valid_; }
  bool compressed() const { return compressed_; }
  size_t size() const { return size_; }
  const absl::InlinedVector<http2::Slice, 2>& pieces() const { return pieces_; }
  // The bytes, where they lie in one piece, as those of messages that came do.
  absl::string_view bytes() const {
    return pieces_.empty() ? absl::string_view() : pieces_[0].bytes();
  }

 private:
  bool valid_ = false;
  bool compressed_ = false;
  size_t size_ = 0;
  absl::InlinedVector<http2::Slice, 2> pieces_;
};

// Collects the one message of a call that has one.
class MessageCollector {
 public:
  enum class State {
    kNone,      // not all has come
    kWhole,     // the message is there
    kTooLarge,  // it is announced to be larger than the limit
    kSecond,    // something follows the message
    kBroken,    // its first byte is neither 0 nor 1
  };

  // What is announced is believed up to `believed` bytes; beyond, room is made
  // as bytes come.
  static constexpr size_t kBelieved = 256 << 10;
  explicit MessageCollector(size_t limit, size_t believed = kBelieved)
      : limit_(limit), believed_(believed) {}

  // Takes the bytes that came next. States other than kNone and kWhole stay.
  State Take(absl::string_view bytes);
  State state() const { return state_; }
  // The length that the message will have; 0 while that is not known.
  size_t announced() const { return prefix_ < kMessagePrefix ? 0 : length_; }
  // Nothing has come.
  bool empty() const { return prefix_ == 0; }
  size_t limit() const { return limit_; }
  // How many bytes are missing, as far as that is known.
  size_t missing() const {
    return prefix_ < kMessagePrefix ? kMessagePrefix - prefix_
                                    : length_ - buffer_.size();
  }
  // Bytes that are held.
  size_t held() const { return buffer_.size(); }
  // Bytes that there is room for, which takes memory where others used it.
  size_t room() const { return buffer_.capacity(); }
  // All that is announced may come: there is room for it at once.
  void Expect() { buffer_.Reserve(announced()); }
  // Precondition: kWhole, or kSecond. Once.
  Message Release();

 private:
  State Begin();

  const size_t limit_;
  const size_t believed_;
  State state_ = State::kNone;
  size_t prefix_ = 0;  // bytes of it that have come
  uint8_t head_[kMessagePrefix] = {};
  size_t length_ = 0;
  http2::Buffer buffer_;
};

// Counts the messages that pass by.
class MessageCounter {
 public:
  void Take(absl::string_view bytes);
  uint64_t begun() const { return begun_; }
  // The last that has begun is not complete.
  bool amid() const { return prefix_ > 0 || left_ > 0; }

 private:
  uint64_t begun_ = 0;
  size_t prefix_ = 0;
  uint64_t length_ = 0;  // of the prefix that passes
  uint64_t left_ = 0;    // of the message that passes
};

// The prefix of a message, as a slice of its own.
http2::Slice MessagePrefix(bool compressed, size_t size);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_MESSAGE_H_
