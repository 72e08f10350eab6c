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

namespace fncache::proxy::transport {

// True if the call has passed this process before.
bool HasLoop(const http2::Fields& fields);

// The header block for the function, made from the fields of the caller. Its
// grpc-timeout is `timeout` (Deadline::UpstreamTimeout). Empty: the caller's.
http2::Fields RequestFields(const http2::Fields& fields,
                            absl::string_view timeout, bool tls);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_METADATA_H_
