// SPDX-License-Identifier: Apache-2.0
// FrameHeads: where the frames of a connection's input begin (RFC 9113, 4.1),
// before nghttp2 sees them; and what it is not to see is overwritten there.
//
// Not thread-safe.
#ifndef FNCACHE_HTTP2_FRAME_HEADS_H_
#define FNCACHE_HTTP2_FRAME_HEADS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/types/span.h"

namespace fncache::http2 {

class FrameHeads {
 public:
  // Of a server's input, the last stream of every GOAWAY is made 0. It tells of
  // streams that the server has opened, which are none; but 2^31-1, which says
  // the least (RFC 9113, 6.8) and is what grpc-go says as it closes, is an
  // error to nghttp2's server, that costs the calls in flight.
  explicit FrameHeads(bool server) : server_(server) {}

  // How many of these bytes, which are the next, come before the next DATA
  // frame's payload; all, if there is none. Sets `stream` and `length` to that
  // frame's.
  size_t NextData(absl::Span<char> bytes, int32_t* stream, size_t* length);
  // How many frames of types that HTTP/2 does not have there were since this
  // was asked last. nghttp2 passes over them in silence.
  size_t TakeUnknown() { return std::exchange(unknown_, 0); }
  // A header block has begun, and has not come to its end: whoever it is for,
  // as nghttp2 says nothing of those that it passes over.
  bool in_block() const { return block_; }
  // So many bytes of header blocks have come since this was asked last.
  size_t TakeBlockBytes() { return std::exchange(block_bytes_, 0); }

 private:
  std::array<uint8_t, 9> head_ = {};  // the next one's
  const bool server_;
  uint8_t last_left_ = 0;    // of a GOAWAY's last stream
  size_t head_size_ = 0;     // bytes of it that have come
  size_t payload_left_ = 0;  // before it
  size_t unknown_ = 0;
  bool block_ = false;
  bool of_block_ = false;    // the payload that comes is
  bool ends_block_ = false;  // with it
  size_t block_bytes_ = 0;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_FRAME_HEADS_H_
