// SPDX-License-Identifier: Apache-2.0
// ResponseDigester: what tells two responses apart, for a rehearsal of the
// cache that compares what it would have said with what the function says.
//
// The digest is of the response's canonical form, made by the rules that
// requests have (docs/key-format.md), without meta: equal if and only if the
// responses are equal messages once `meta` is gone, with maps unordered and
// whatever encoder wrote them.
//
// It is keyed by a random secret of the digester's own, so digests of two
// digesters cannot be compared, and are not stored anywhere.
//
// Thread-safe; each thread brings its own Canonicalizer.
#ifndef FNCACHE_CACHE_RESPONSE_DIGEST_H_
#define FNCACHE_CACHE_RESPONSE_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/key/canonicalizer.h"
#include "cache/key/key.h"

namespace fncache::cache {

struct ResponseDigest {
  // False: protobuf would refuse it, or it is nested more than 1,000 deep.
  bool readable = false;
  key::Key digest;
  // A hash for each of its fields, by number, 0 where it has none; and at 0 for
  // the unknown ones. Equal ones are equal with all but certainty.
  std::array<uint64_t, 8> fields{};
};

class ResponseDigester {
 public:
  ResponseDigester();

  // `body` in order is the response without meta: ResponseView::body, or an
  // Entry's.
  ResponseDigest Compute(absl::Span<const absl::string_view> body,
                         key::Canonicalizer* canonicalizer) const;

  // The names of the top-level fields that differ, in order of their numbers;
  // `?` stands for the unknown ones.
  static std::vector<std::string> FieldsDiffering(const ResponseDigest& a,
                                                  const ResponseDigest& b);

 private:
  std::array<uint8_t, 192> secret_;
};

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_RESPONSE_DIGEST_H_
