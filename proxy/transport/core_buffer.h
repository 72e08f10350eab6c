// SPDX-License-Identifier: Apache-2.0
// Gives the gRPC core's message buffer inside a grpc::ByteBuffer to those who
// use both of gRPC's interfaces: they need it, without a copy, for what the C++
// interface has no function for.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_PROXY_TRANSPORT_CORE_BUFFER_H_
#define FNCACHE_PROXY_TRANSPORT_CORE_BUFFER_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "grpc/byte_buffer.h"
#include "grpc/slice.h"
#include "grpcpp/support/byte_buffer.h"

namespace grpc::internal {

// grpc::ByteBuffer's friend for this purpose.
class GrpcByteBufferPeer {
 public:
  static grpc_byte_buffer** Of(ByteBuffer* buffer) {
    return buffer->c_buffer_ptr();
  }
};

}  // namespace grpc::internal

namespace fncache::proxy::transport {

// Where the core's buffer is kept: null while `buffer` has no value. It may
// then be set, which hands over ownership.
inline grpc_byte_buffer** CoreBuffer(grpc::ByteBuffer* buffer) {
  return grpc::internal::GrpcByteBufferPeer::Of(buffer);
}

// Appends the pieces that a message came in, in order. They belong to the
// buffer, and are valid as long as nobody changes it. False where the buffer
// has no value.
//
// grpc::ByteBuffer's own functions count references to each piece, and where
// there are several, TrySingleSlice allocates twice to say so.
inline bool AppendPieces(grpc::ByteBuffer* buffer,
                         std::vector<absl::string_view>* pieces) {
  grpc_byte_buffer* const core = *CoreBuffer(buffer);
  grpc_byte_buffer_reader reader;
  if (core == nullptr || grpc_byte_buffer_reader_init(&reader, core) == 0) {
    return false;
  }
  grpc_slice* piece;
  while (grpc_byte_buffer_reader_peek(&reader, &piece) != 0) {
    pieces->emplace_back(
        reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(*piece)),
        GRPC_SLICE_LENGTH(*piece));
  }
  grpc_byte_buffer_reader_destroy(&reader);
  return true;
}

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_CORE_BUFFER_H_
