// SPDX-License-Identifier: Apache-2.0
// Decides which of a call's metadata crosses the proxy, in both directions.
//
// Crosses: every key with all its values in order, binary ones too, except what
// belongs to one hop: pseudo-headers, te, content-type, the user-agent (which
// travels as x-forwarded-user-agent) and gRPC's own grpc-* keys. See DESIGN,
// "Transparent means".
//
// Pure functions; thread-safe.
#ifndef FNCACHE_PROXY_TRANSPORT_METADATA_H_
#define FNCACHE_PROXY_TRANSPORT_METADATA_H_

#include "absl/strings/string_view.h"
#include "grpcpp/client_context.h"
#include "proxy/transport/incoming_call.h"

namespace fncache::proxy::transport {

inline absl::string_view View(const grpc::string_ref& text) {
  return absl::string_view(text.data(), text.size());
}

// Gives `to` the caller's metadata and :authority.
void CopyRequest(const IncomingCall& from, grpc::ClientContext* to);

// Adds the function's headers, or trailers, to the answer.
void CopyHeaders(const Metadata& from, IncomingCall* to);
void CopyTrailers(const Metadata& from, IncomingCall* to);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_METADATA_H_
