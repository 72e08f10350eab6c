// The gRPC core's message buffer inside a grpc::ByteBuffer, for those who use
// both of gRPC's interfaces: what the C++ one has no function for, without a
// copy.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_PROXY_CORE_BUFFER_H_
#define FNCACHE_PROXY_CORE_BUFFER_H_

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

namespace fncache::proxy {

// Null where the buffer has no value; may be set, which hands over ownership.
// Precondition for setting: the buffer has no value.
inline grpc_byte_buffer** CoreBuffer(grpc::ByteBuffer* buffer) {
  return grpc::internal::GrpcByteBufferPeer::Of(buffer);
}

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_CORE_BUFFER_H_
