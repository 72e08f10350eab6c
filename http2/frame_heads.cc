// SPDX-License-Identifier: Apache-2.0
#include "http2/frame_heads.h"

#include <algorithm>
#include <cstring>

namespace fncache::http2 {
namespace {

// Types of frames.
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kPushPromise = 5;
constexpr uint8_t kGoAway = 7;
constexpr uint8_t kContinuation = 9;  // the last that HTTP/2 has

constexpr uint8_t kEndHeaders = 4;  // a flag

// The bytes of the last stream's id, with which a GOAWAY's payload begins.
constexpr uint8_t kLastStream = 4;

}  // namespace

size_t FrameHeads::NextData(absl::Span<char> bytes, int32_t* stream,
                            size_t* length) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (payload_left_ > 0) {
      const size_t now = std::min(payload_left_, bytes.size() - at);
      if (last_left_ > 0) {
        const size_t cleared = std::min<size_t>(last_left_, now);
        std::memset(bytes.data() + at, 0, cleared);
        // A frame that is too short for it has none.
        last_left_ = now == payload_left_
                         ? 0
                         : static_cast<uint8_t>(last_left_ - cleared);
      }
      payload_left_ -= now;
      at += now;
      if (of_block_) {
        block_bytes_ += now;
        block_ = payload_left_ > 0 || !ends_block_;
      }
      continue;
    }
    const size_t now = std::min(head_.size() - head_size_, bytes.size() - at);
    std::memcpy(&head_[head_size_], bytes.data() + at, now);
    head_size_ += now;
    at += now;
    if (head_size_ < head_.size()) break;
    head_size_ = 0;
    payload_left_ =
        static_cast<size_t>(head_[0]) << 16 | head_[1] << 8 | head_[2];
    of_block_ = head_[3] == kHeaders || head_[3] == kPushPromise ||
                head_[3] == kContinuation;
    if (of_block_) {
      ends_block_ = (head_[4] & kEndHeaders) != 0;
      block_ = payload_left_ > 0 || !ends_block_;
    }
    if (head_[3] > kContinuation) ++unknown_;
    if (head_[3] == kGoAway && server_ && payload_left_ > 0) {
      last_left_ = kLastStream;
    }
    if (head_[3] != kData) continue;
    const uint32_t id = static_cast<uint32_t>(head_[5]) << 24 | head_[6] << 16 |
                        head_[7] << 8 | head_[8];
    *stream = static_cast<int32_t>(id & 0x7fffffff);
    *length = payload_left_;
    return at;
  }
  return at;
}

}  // namespace fncache::http2
