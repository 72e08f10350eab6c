// SPDX-License-Identifier: Apache-2.0
// Message: one gRPC message as it is transferred, and its framing (gRPC over
// HTTP/2: a byte that says whether it is compressed, four bytes of length, the
// bytes).
//
// Ownership: a message keeps its bytes by reference. A copy copies references.
#ifndef FNCACHE_PROXY_TRANSPORT_MESSAGE_H_
#define FNCACHE_PROXY_TRANSPORT_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "http2/slice.h"

namespace fncache::proxy::transport {

// Bytes of the prefix of every message.
inline constexpr size_t kMessagePrefix = 5;

class Message {
 public:
  // No message: valid() is false. An empty message is valid.
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

  // From now on a call to the function keeps this request in memory until it
  // ends, even if all of it is sent. Copies are kept, too.
  void Keep() { keep_ = true; }
  bool keep() const { return keep_; }

  bool valid() const { return valid_; }
  bool compressed() const { return compressed_; }
  size_t size() const { return size_; }
  const absl::InlinedVector<http2::Slice, 2>& pieces() const { return pieces_; }
  // The bytes, if they are one piece. Those of a received message are.
  absl::string_view bytes() const {
    return pieces_.empty() ? absl::string_view() : pieces_[0].bytes();
  }

 private:
  bool valid_ = false;
  bool compressed_ = false;
  bool keep_ = false;
  size_t size_ = 0;
  absl::InlinedVector<http2::Slice, 2> pieces_;
};

// Collects the message of a call that has exactly one.
class MessageCollector {
 public:
  enum class State {
    kNone,      // the message is incomplete
    kWhole,     // the message is complete
    kTooLarge,  // it is announced to be larger than the limit
    kSecond,    // something follows the message
    kBroken,    // its first byte is neither 0 nor 1
  };

  // Memory for the announced length is allocated at once up to `believed`
  // bytes. Beyond that it grows as bytes arrive.
  static constexpr size_t kBelieved = 256 << 10;
  explicit MessageCollector(size_t limit, size_t believed = kBelieved)
      : limit_(limit), believed_(believed) {}

  // Takes the next bytes. States other than kNone and kWhole are final.
  State Take(absl::string_view bytes);
  State state() const { return state_; }
  // The length of the complete message; 0 while it is not known.
  size_t announced() const { return prefix_ < kMessagePrefix ? 0 : length_; }
  // True if no byte has arrived.
  bool empty() const { return prefix_ == 0; }
  size_t limit() const { return limit_; }
  // The missing bytes, as far as the length is known.
  size_t missing() const {
    return prefix_ < kMessagePrefix ? kMessagePrefix - prefix_
                                    : length_ - buffer_.size();
  }
  // Bytes of the message that have arrived.
  size_t held() const { return buffer_.size(); }
  // The capacity in bytes. Memory that was in use before is resident.
  size_t room() const { return buffer_.capacity(); }
  // Allocates memory for the whole announced length.
  void Expect() { buffer_.Reserve(announced()); }
  // Returns the message. Precondition: kWhole, or kSecond. Call it once.
  Message Release();

 private:
  State Begin();

  const size_t limit_;
  const size_t believed_;
  State state_ = State::kNone;
  size_t prefix_ = 0;  // bytes of it that have arrived
  uint8_t head_[kMessagePrefix] = {};
  size_t length_ = 0;
  http2::Buffer buffer_;
};

// Counts the messages in a stream of bytes.
class MessageCounter {
 public:
  void Take(absl::string_view bytes);
  uint64_t begun() const { return begun_; }
  // True if the last message that has begun is incomplete.
  bool amid() const { return prefix_ > 0 || left_ > 0; }

 private:
  uint64_t begun_ = 0;
  size_t prefix_ = 0;
  uint64_t length_ = 0;  // as far as the current prefix says
  uint64_t left_ = 0;    // missing bytes of the current message
};

// The prefix of a message, in its own slice.
http2::Slice MessagePrefix(bool compressed, size_t size);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_MESSAGE_H_
