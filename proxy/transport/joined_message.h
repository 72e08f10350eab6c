// SPDX-License-Identifier: Apache-2.0
// JoinedMessage: gives a message's bytes in one piece, for reading. gRPC hands
// a message over in the pieces in which it came off the wire; joining them
// through gRPC allocates as much as the message is long, and touches cold
// memory, on every call.
//
// Not thread-safe: each thread has one of its own.
#ifndef FNCACHE_PROXY_TRANSPORT_JOINED_MESSAGE_H_
#define FNCACHE_PROXY_TRANSPORT_JOINED_MESSAGE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace fncache::proxy::transport {

class JoinedMessage {
 public:
  // The bytes of `message`, valid until Clear or the next Join; none if gRPC
  // does not give them. They are copied only where they lie in several pieces.
  absl::optional<absl::string_view> Join(const grpc::ByteBuffer& message);

  // Lets go of the message. A small buffer is kept for the next one.
  void Clear();

 private:
  std::vector<grpc::Slice> slices_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_JOINED_MESSAGE_H_
