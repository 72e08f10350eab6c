// SPDX-License-Identifier: Apache-2.0
// Which fields of a call cross the proxy, and what it adds: all cross, as they
// came and in order, except grpc-timeout, which counts from when the call goes
// on; cdn-loop gets a token of this process (RFC 8586), by which a call that
// comes back is known.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_PROXY_TRANSPORT_METADATA_H_
#define FNCACHE_PROXY_TRANSPORT_METADATA_H_

#include "absl/strings/string_view.h"
#include "http2/fields.h"
#include "proxy/transport/deadline.h"

namespace fncache::proxy::transport {

// What peers are told that speak something else.
inline constexpr absl::string_view kNoGrpc =
    "This is fncache, a proxy for composition functions: it serves gRPC over "
    "HTTP/2 only.\n";
inline constexpr char kHttp1Answer[] =
    "HTTP/1.1 426 Upgrade Required\r\n"
    "Upgrade: h2c\r\n"
    "Connection: Upgrade, close\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 85\r\n"
    "\r\n"
    "This is fncache, a proxy for composition functions: it serves gRPC over "
    "HTTP/2 only.\n";

// Whether the call has passed this process before.
bool HasLoop(const http2::Fields& fields);

// The header block for the function, of a call that came with these fields.
// Its grpc-timeout is what is left until `deadline`.
http2::Fields RequestFields(const http2::Fields& fields,
                            const Deadline& deadline, bool tls);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_METADATA_H_
