// What crosses the proxy of a call's metadata, in both directions, and what the
// cache reads and writes there (cache-control, cache-status).
//
// Crosses: every key with all its values in order, binary ones too, except what
// belongs to one hop: pseudo-headers, te, content-type, the user-agent (which
// travels as x-forwarded-user-agent) and gRPC's own grpc-* keys. See DESIGN,
// "Transparent means".
//
// Pure functions; thread-safe.
#ifndef FNCACHE_PROXY_TRANSPORT_METADATA_H_
#define FNCACHE_PROXY_TRANSPORT_METADATA_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "grpc/grpc.h"
#include "grpcpp/client_context.h"
#include "proxy/transport/incoming_call.h"

namespace fncache::proxy::transport {

inline absl::string_view View(const grpc::string_ref& text) {
  return absl::string_view(text.data(), text.size());
}

// Gives `to` the caller's metadata, :authority and (unless infinite) deadline.
void CopyRequest(const IncomingCall& from, grpc::ClientContext* to);

// Adds the function's headers, or trailers, to the answer.
void CopyHeaders(const Metadata& from, IncomingCall* to);
void CopyTrailers(const Metadata& from, IncomingCall* to);

// What the request metadata says about caching.
struct Directives {
  bool no_cache = false;  // cache-control: no-cache
  bool no_store = false;  // cache-control: no-store
  bool bypass = false;    // authorization, or a key of `bypass_metadata`
};
Directives ReadDirectives(absl::Span<const grpc_metadata> metadata,
                          const std::vector<std::string>& bypass_metadata);

inline constexpr char kCacheStatus[] = "cache-status";

// Values of the cache-status header (RFC 9211) as DESIGN words them.

// fncache; hit; ttl=N. Text in a place of its own: a hit allocates nothing that
// it can do without.
class HitStatus {
 public:
  explicit HitStatus(absl::Duration served_for);
  absl::string_view text() const { return {text_, size_}; }

 private:
  char text_[40];
  size_t size_;
};

enum class Forward { kMiss, kStale, kRequest, kBypass };
// fncache; fwd=miss[; collapsed][; stored]
absl::string_view ForwardStatus(Forward why, bool collapsed, bool stored);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_METADATA_H_
