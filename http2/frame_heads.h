// SPDX-License-Identifier: Apache-2.0
// FrameHeads: where the frames of a connection's input begin (RFC 9113, 4.1),
// before nghttp2 sees them.
//
// Not thread-safe.
#ifndef FNCACHE_HTTP2_FRAME_HEADS_H_
#define FNCACHE_HTTP2_FRAME_HEADS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"

namespace fncache::http2 {

class FrameHeads {
 public:
  // How many of these bytes, which are the next, come before the next DATA
  // frame's payload; all, if there is none. Sets `stream` and `length` to that
  // frame's.
  size_t NextData(absl::string_view bytes, int32_t* stream, size_t* length);
  // How many frames of types that HTTP/2 does not have there were since this
  // was asked last. nghttp2 passes over them in silence.
  size_t TakeUnknown() { return std::exchange(unknown_, 0); }

 private:
  std::array<uint8_t, 9> head_ = {};  // the next one's
  size_t head_size_ = 0;              // bytes of it that have come
  size_t payload_left_ = 0;           // before it
  size_t unknown_ = 0;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_FRAME_HEADS_H_
