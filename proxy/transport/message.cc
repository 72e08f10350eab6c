// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/message.h"

#include <algorithm>

namespace fncache::proxy::transport {
MessageCollector::State MessageCollector::Begin() {
  if (head_[0] > 1) return State::kBroken;
  for (size_t i = 1; i < kMessagePrefix; ++i) length_ = length_ << 8 | head_[i];
  if (length_ > limit_) return State::kTooLarge;
  buffer_.Reserve(std::min(length_, believed_));
  return length_ == 0 ? State::kWhole : State::kNone;
}

MessageCollector::State MessageCollector::Take(absl::string_view bytes) {
  while (!bytes.empty()) {
    if (state_ == State::kWhole) state_ = State::kSecond;
    if (state_ != State::kNone) return state_;
    if (prefix_ < kMessagePrefix) {
      head_[prefix_++] = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      if (prefix_ == kMessagePrefix) state_ = Begin();
      continue;
    }
    const absl::string_view now = bytes.substr(0, length_ - buffer_.size());
    if (buffer_.size() + now.size() > buffer_.capacity()) {
      buffer_.Reserve(std::min(length_, std::max(buffer_.size() + now.size(),
                                                 2 * buffer_.capacity())));
    }
    buffer_.Append(now);
    bytes.remove_prefix(now.size());
    if (buffer_.size() == length_) state_ = State::kWhole;
  }
  return state_;
}

Message MessageCollector::Release() {
  Message message(buffer_.Share(), head_[0] == 1);
  buffer_.Clear();
  return message;
}

void MessageCounter::Take(absl::string_view bytes) {
  while (!bytes.empty()) {
    if (left_ > 0) {
      const auto now =
          static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
      left_ -= now;
      bytes.remove_prefix(now);
      continue;
    }
    if (prefix_ == 0) ++begun_;
    length_ = prefix_ == 0 ? 0 : length_ << 8 | static_cast<uint8_t>(bytes[0]);
    bytes.remove_prefix(1);
    if (++prefix_ < kMessagePrefix) continue;
    prefix_ = 0;
    left_ = length_;
  }
}

http2::Slice MessagePrefix(bool compressed, size_t size) {
  const char bytes[kMessagePrefix] = {
      static_cast<char>(compressed ? 1 : 0), static_cast<char>(size >> 24),
      static_cast<char>(size >> 16), static_cast<char>(size >> 8),
      static_cast<char>(size)};
  return http2::Slice::Copy({bytes, sizeof bytes});
}

}  // namespace fncache::proxy::transport
