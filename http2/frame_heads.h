// SPDX-License-Identifier: Apache-2.0
// FrameHeads: finds the starts of frames in a connection's input (RFC 9113,
// 4.1) before nghttp2 sees it. It overwrites values that nghttp2 must not see.
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
  // In a server's input, the last stream of every GOAWAY is overwritten with 0.
  // The field concerns streams that the server has opened, and there are none.
  // But grpc-go sends 2^31-1 as it closes (RFC 9113, 6.8: the value that says
  // the least). nghttp2's server takes that for an error, which ends the calls
  // in progress.
  explicit FrameHeads(bool server) : server_(server) {}

  // How many of these bytes, which are the next, come before the next DATA
  // frame's payload; all, if there is none. Sets `stream` and `length` to that
  // frame's.
  size_t NextData(absl::Span<char> bytes, int32_t* stream, size_t* length);
  // The number of frames of types unknown to HTTP/2 since the last call.
  // nghttp2 skips them silently.
  size_t TakeUnknown() { return std::exchange(unknown_, 0); }
  // A header block of any stream has begun and not ended. nghttp2 does not
  // report the blocks that it skips.
  bool in_block() const { return block_; }
  // The number of bytes of header blocks since the last call.
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
