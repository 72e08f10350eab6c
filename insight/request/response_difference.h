// SPDX-License-Identifier: Apache-2.0
// ResponseComparer: the differences of two responses, as paths and hashes. They
// have no values, so that they can be logged.
//
// It reads both as nodes (nodes.h), which takes some milliseconds for a MiB, so
// callers limit the size. Belongs to one thread.
#ifndef FNCACHE_INSIGHT_REQUEST_RESPONSE_DIFFERENCE_H_
#define FNCACHE_INSIGHT_REQUEST_RESPONSE_DIFFERENCE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/key/key.h"
#include "cache/key/seeded_sha256.h"
#include "insight/request/nodes.h"

namespace fncache::insight::request {

struct ResponseDifference {
  std::string path;     // indices as `[3]`
  std::string pattern;  // the same with `*` for them
  // 8 hexadecimal digits of a keyed hash of the value. "absent": there is none.
  // "present": a secret, or a value that contains others. Equal hashes under
  // one seed are of equal values.
  std::string first;
  std::string second;
};

class ResponseComparer {
 public:
  // Hashes in results are under `seed`. Hashes for comparing are under
  // `secret`, and are shown nowhere.
  ResponseComparer(const FingerprintSecret& secret,
                   const cache::key::Seed& seed)
      : hash_(seed), first_(secret), second_(secret) {}

  // The first `most` differences of two responses without meta, in the order of
  // the first one, then those that only the second one has. A subtree that only
  // one of them has is one difference, at its root. Empty if they are equal
  // messages, or if one of them cannot be read.
  std::vector<ResponseDifference> Compare(
      absl::Span<const absl::string_view> first,
      absl::Span<const absl::string_view> second, size_t most);

 private:
  std::string Shown(const Node& node);

  cache::key::SeededSha256 hash_;
  cache::key::SeededSha256::Scratch scratch_;
  RequestNodes first_;
  RequestNodes second_;
};

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_RESPONSE_DIFFERENCE_H_
