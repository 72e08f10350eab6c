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

// Response to a peer that speaks HTTP/1.
inline constexpr char kHttp1Answer[] =
    "HTTP/1.1 426 Upgrade Required\r\n"
    "Upgrade: h2c\r\n"
    "Connection: Upgrade, close\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 85\r\n"
    "\r\n"
    "This is fncache, a proxy for composition functions: it serves gRPC over "
    "HTTP/2 only.\n";

// The user for the stream of a foreign request. It answers 415 to a POST, which
// has another content-type, and 405 to another method.
http2::StreamUser* AnswererOfForeign(bool is_post);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_FOREIGN_REQUEST_H_
