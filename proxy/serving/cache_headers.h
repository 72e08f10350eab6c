// SPDX-License-Identifier: Apache-2.0
// The words that callers and the cache have for each other in a call's
// metadata: cache-control in the request (RFC 9111) and cache-status in the
// answer (RFC 9211), as DESIGN words them.
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

// The wishes about caching in the metadata of a request.
struct Directives {
  bool no_cache = false;       // cache-control: no-cache
  bool no_store = false;       // cache-control: no-store
  bool authorization = false;  // it has that metadata (RFC 9111, 3.5)
  bool bypass = false;         // it has a key of `bypass_metadata`
};
Directives ReadDirectives(const http2::Fields& fields,
                          const std::vector<std::string>& bypass_metadata);

// The key of the header that the texts below are values of.
inline constexpr char kCacheStatus[] = "cache-status";

// fncache; hit; ttl=N, N the whole seconds for which the entry will be served;
// of one past its time, for which it has not been fresh: negative, and rounded
// away from zero (RFC 9211, 2.5). The text is in the object itself: a hit
// allocates nothing that it can do without.
class HitStatus {
 public:
  explicit HitStatus(absl::Duration served_for);
  absl::string_view text() const { return {text_, size_}; }

 private:
  char text_[40];
  size_t size_;
};

// fncache; fwd=miss[; collapsed][; stored]
absl::string_view ForwardStatus(cache::Reason reason, bool collapsed,
                                bool stored);

// The parameter that says why a call missed, to be appended to that: `;
// detail=expired` or `; detail="changed: PATH"`. Text that no header may hold
// is replaced, and long text cut. Empty if there is nothing to say.
std::string MissDetail(const insight::explain::Explanation& why);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CACHE_HEADERS_H_
