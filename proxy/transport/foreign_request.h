// SPDX-License-Identifier: Apache-2.0
// The answer to requests that are not gRPC calls: an HTTP status and a text
// that says what fncache serves.
//
// Thread-safe: the returned objects have no state of a request.
// Ownership: they live as long as the process.
#ifndef FNCACHE_PROXY_TRANSPORT_FOREIGN_REQUEST_H_
#define FNCACHE_PROXY_TRANSPORT_FOREIGN_REQUEST_H_

#include "http2/connection.h"

namespace fncache::proxy::transport {

// The user for the stream of a foreign request. It answers 415 to a POST, which
// has another content-type, and 405 to another method.
http2::StreamUser* AnswererOfForeign(bool is_post);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_FOREIGN_REQUEST_H_
