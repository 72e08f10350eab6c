// SPDX-License-Identifier: Apache-2.0
// Key: the 16 bytes under which a response is stored (docs/key-format.md). With
// it come the secret under which keys are made, and the settings that say what
// a key is made of, and how.
#ifndef FNCACHE_CACHE_KEY_KEY_H_
#define FNCACHE_CACHE_KEY_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace fncache::cache::key {

// The setting `key`: what of a request makes its key.
enum class KeySource : uint8_t {
  kContent,  // all of it but meta.tag and what is masked
  // meta.tag, and what Crossplane changes after it has computed that; for
  // runners that are trusted with it. Requests without such a tag are keyed by
  // their content.
  kTag,
};

// The setting `key_hash`: what hashes it.
enum class KeyHash : uint8_t {
  kXxh3,    // XXH3-128 under a secret: fast
  kSha256,  // HMAC-SHA-256 under a secret: where tenants are hostile
};

// The secret under which keys are made: random per cache, kept with it.
using Seed = std::array<uint8_t, 32>;

// A plain value. Keys are uniformly distributed (they are hashes), so their own
// bits serve as hash table hashes and shard numbers.
struct Key {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const Key& a, const Key& b) {
    return a.high == b.high && a.low == b.low;
  }
  friend bool operator!=(const Key& a, const Key& b) { return !(a == b); }
  template <typename H>
  friend H AbslHashValue(H state, const Key& key) {
    return H::combine(std::move(state), key.low);
  }

  // The 16 bytes, big-endian, as stores and logs write them.
  std::string Bytes() const {
    std::string out(16, '\0');
    for (int i = 0; i < 8; ++i) {
      out[i] = static_cast<char>(high >> (56 - 8 * i));
      out[8 + i] = static_cast<char>(low >> (56 - 8 * i));
    }
    return out;
  }
  // The key with these 16 bytes.
  static Key FromBytes(absl::string_view bytes) {
    Key key;
    for (size_t i = 0; i < 8; ++i) {
      key.high = key.high << 8 | static_cast<uint8_t>(bytes[i]);
      key.low = key.low << 8 | static_cast<uint8_t>(bytes[8 + i]);
    }
    return key;
  }
  std::string Hex() const { return absl::BytesToHexString(Bytes()); }
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_KEY_H_
