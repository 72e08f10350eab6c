// SPDX-License-Identifier: Apache-2.0
// Refusal: why a call is refused, and WeightOf: what its fields take. Calls in
// (incoming_call.h) and calls to the function (upstream.h) need both, and
// neither includes the other.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_PROXY_TRANSPORT_REFUSAL_H_
#define FNCACHE_PROXY_TRANSPORT_REFUSAL_H_

#include <cstddef>

#include "http2/fields.h"

namespace fncache::proxy::transport {

// Why a request, or the function's response, is refused.
enum class Refusal {
  kMetadata,  // it is larger than max_metadata_bytes
  kSize,      // the message is larger than its maximum
  kRoom,      // calls keep too much of inflight.bytes
  kStalled,   // it stopped moving while others wait
  kLoop,      // it has passed this proxy before
};

// The words of kRoom if a connection keeps more than its cap.
inline constexpr char kOverCap[] =
    "the calls on this connection exceed its cap of inflight.bytes";

// Bytes that fields of this size take beyond the usual: three times their size,
// once with the call and twice as they are sent on. 0 up to 1 KiB.
inline size_t WeightOf(const http2::Fields& fields) {
  constexpr size_t kUsualFields = 1 << 10;
  const size_t size = fields.ListSize();
  return size > kUsualFields ? 3 * size : 0;
}

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_REFUSAL_H_
