// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA-256 under the seed of a cache, its first 16 bytes as a key: what
// `key_hash: sha256` hashes with (docs/key-format.md).
//
// Immutable and thread-safe; each thread brings its own Scratch.
#ifndef FNCACHE_CACHE_KEY_SEEDED_SHA256_H_
#define FNCACHE_CACHE_KEY_SEEDED_SHA256_H_

#include <openssl/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "cache/key/key.h"

namespace fncache::cache::key {

class SeededSha256 {
 public:
  // OpenSSL's state of one hash, reused from one to the next.
  class Scratch {
   private:
    friend class SeededSha256;
    struct Free {
      void operator()(EVP_MD_CTX* context) const;
    };
    std::unique_ptr<EVP_MD_CTX, Free> context_;
  };

  explicit SeededSha256(const Seed& seed);

  // False if OpenSSL has no SHA-256 or no memory.
  bool Hash(absl::string_view bytes, Scratch* scratch, Key* key) const;

 private:
  static constexpr size_t kBlockSize = 64;

  struct Free {
    void operator()(EVP_MD* algorithm) const;
  };
  std::unique_ptr<EVP_MD, Free> algorithm_;
  // HMAC hashes one of them before the bytes, and the other one before the hash
  // of these (RFC 2104).
  std::array<uint8_t, kBlockSize> inner_;
  std::array<uint8_t, kBlockSize> outer_;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_SEEDED_SHA256_H_
