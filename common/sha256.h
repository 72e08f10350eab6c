// SPDX-License-Identifier: Apache-2.0
// Sha256: SHA-256 (FIPS 180-4) of bytes that come in pieces.
//
// A copy continues where the original is. Used by one thread at a time.
#ifndef FNCACHE_COMMON_SHA256_H_
#define FNCACHE_COMMON_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace fncache {

class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256& other);
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void Add(absl::string_view bytes);
  // Lower-case hex of all that was added. Once, at the end.
  std::string Hex();

 private:
  evp_md_ctx_st* const context_;
};

// Returns the digest of `bytes` as lower-case hex digits.
std::string Sha256Hex(absl::string_view bytes);

}  // namespace fncache

#endif  // FNCACHE_COMMON_SHA256_H_
