// SPDX-License-Identifier: Apache-2.0
// Reading and rewriting RunFunctionResponse as bytes.
//
// A response is never built as a message: one walk over its bytes finds what
// policy needs (TTL, FATAL results, connection details) and where `meta` lies,
// and rewriting replaces `meta` and leaves every other byte alone.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_RESPONSE_H_
#define FNCACHE_CACHE_RESPONSE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace fncache::cache {

// The facts that policy needs to know of a response.
struct ResponseFacts {
  // The TTL, if the response has a valid one: not negative, nanos below a
  // second, and no more nanoseconds than an int64 holds (292 years, as the
  // runner's own durations). Zero is a value and means "do not cache".
  absl::optional<absl::Duration> ttl;
  // A result of severity FATAL.
  bool fatal = false;
  // Connection details in desired state: the composite's or any resource's. A
  // repeated map key counts even where a later entry replaces it.
  bool secrets = false;
  // Its hint says that nothing but the request decides it. ReadResponse does
  // not know.
  bool pure = false;
};

// A response as read. Refers to the bytes it was read from.
struct ResponseView {
  ResponseFacts facts;
  // The tag of the merged meta.
  absl::string_view tag;
  // The response without any occurrence of `meta`, in order.
  std::vector<absl::string_view> body;
  // The bytes of the merged meta without tag and TTL: its unknown fields, those
  // of its TTL (wrapped in a `ttl` field, which merges with the one that
  // MakeMeta writes), and the whole of a TTL that is not valid (it counts as
  // none and passes untouched).
  std::string meta_rest;
};

// InvalidArgument if protobuf C++ would refuse the bytes (malformed, invalid
// UTF-8 in a string, over 2 GiB) or they are nested more than 1,000 deep: such
// a response passes untouched.
absl::StatusOr<ResponseView> ReadResponse(absl::string_view bytes);

// Returns the bytes of one `meta` field: the caller's tag, the TTL if given
// (not negative; fractions of a nanosecond are dropped), and `rest`. Prepended
// to a body they make a response.
//
// The field is written even if it is empty, because functions answer with a
// `meta` also where the caller sent no tag.
std::string MakeMeta(absl::string_view tag,
                     const absl::optional<absl::Duration>& ttl,
                     absl::string_view rest);
// The same; it replaces the contents of `meta`, whose memory is used again.
void MakeMeta(absl::string_view tag, const absl::optional<absl::Duration>& ttl,
              absl::string_view rest, std::string* meta);

// Returns the `meta` of an arriving response with another TTL and the rest of
// it as the function sent it. Prepended to `view.body` it makes the response to
// send.
std::string MetaWithTtl(const ResponseView& view, absl::Duration ttl);

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_RESPONSE_H_
