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
#include "cache/entry.h"

namespace fncache::cache {

// What policy needs to know of a response.
struct ResponseFacts {
  // The TTL, if the response has a valid one (google.protobuf.Duration's range,
  // seconds and nanos of one sign, not negative). Zero is a value: "do not
  // cache".
  absl::optional<absl::Duration> ttl;
  bool fatal = false;    // a result of severity FATAL
  bool secrets = false;  // connection details in desired state
};

// A response as read. Refers to the bytes it was read from.
struct ResponseView {
  ResponseFacts facts;
  // The response without any occurrence of `meta`, in order.
  std::vector<absl::string_view> body;
  // The merged meta's unknown fields, as bytes.
  std::string meta_rest;
};

// InvalidArgument if protobuf would refuse the bytes (malformed, invalid UTF-8
// in a string, nested too deep): such a response passes untouched.
absl::StatusOr<ResponseView> ReadResponse(absl::string_view bytes);

// The bytes of one `meta` field: caller's tag, TTL if given (>= 0), `rest`.
// Prepended to a body it makes a response.
std::string MakeMeta(absl::string_view tag,
                     const absl::optional<absl::Duration>& ttl,
                     absl::string_view rest);

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_RESPONSE_H_
