// SPDX-License-Identifier: Apache-2.0
// The cache's own fields in a call's metadata: cache-control in the request
// (RFC 9111) and cache-status in the answer (RFC 9211), as DESIGN says.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_PROXY_SERVING_CACHE_HEADERS_H_
#define FNCACHE_PROXY_SERVING_CACHE_HEADERS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/outcome.h"
#include "http2/fields.h"
#include "insight/explain/miss_memory.h"

namespace fncache::proxy::serving {

// The directives about caching in the metadata of a request.
struct Directives {
  bool no_cache = false;       // cache-control: no-cache
  bool no_store = false;       // cache-control: no-store
  bool authorization = false;  // authorization (RFC 9111, 3.5)
  bool bypass = false;         // a key of `bypass_metadata`
};
Directives ReadDirectives(const http2::Fields& fields,
                          const std::vector<std::string>& bypass_metadata);

// The key of the header that the texts below are values of.
inline constexpr char kCacheStatus[] = "cache-status";

// The cache-status of a hit, `fncache; hit`, and its `ttl=N`. N is in whole
// seconds: how long the entry will be served. For an entry past its time N is
// negative: how long it has not been fresh, rounded away from zero (RFC 9211,
// 2.5). The object itself has the text, so a hit needs no allocation for it.
class HitStatus {
 public:
  explicit HitStatus(absl::Duration served_for);
  absl::string_view text() const { return {text_, size_}; }

 private:
  char text_[40];
  size_t size_;
};

// The cache-status of a call that goes to the function, `fncache; fwd=miss` for
// a miss. Parameters follow if the call is collapsed or stored.
absl::string_view ForwardStatus(cache::Reason reason, bool collapsed,
                                bool stored);

// The parameter that says why a call missed, to be appended to ForwardStatus:
// `; detail=expired`. With a path, the value is `"changed: PATH"`. Characters
// that a header may not have are replaced, and long text is cut. Empty if no
// reason is known.
std::string MissDetail(const insight::explain::Explanation& why);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CACHE_HEADERS_H_
