// SPDX-License-Identifier: Apache-2.0
// The fields that the proxy forwards and adds. It forwards all fields of a call
// unchanged and in order, except grpc-timeout, which counts from the time of
// forwarding. cdn-loop gets a token of this process (RFC 8586), by which the
// proxy detects a call that comes back.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_PROXY_TRANSPORT_METADATA_H_
#define FNCACHE_PROXY_TRANSPORT_METADATA_H_

#include "absl/strings/string_view.h"
#include "http2/fields.h"
#include "proxy/transport/deadline.h"

namespace fncache::proxy::transport {

// Response body for a peer that speaks another protocol.
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

// True if the call has passed this process before.
bool HasLoop(const http2::Fields& fields);

// The header block for the function, made from the fields of the caller. Its
// grpc-timeout is the time until `deadline`.
http2::Fields RequestFields(const http2::Fields& fields,
                            const Deadline& deadline, bool tls);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_METADATA_H_
