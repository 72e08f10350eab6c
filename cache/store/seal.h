// SPDX-License-Identifier: Apache-2.0
// Seal: leads from the secret of a fleet to the key seed, the names on the
// shared server, and sealed values.
//
// The daemon believes nothing that comes from the server until it has opened
// here. docs/storage-format.md describes all of it byte by byte, with test
// vectors. Sources: RFC 5869 (HKDF-SHA-256), RFC 2104 (HMAC), and
// https://c2sp.org/XAES-256-GCM.
//
// Immutable after construction; thread-safe.
#ifndef FNCACHE_CACHE_STORE_SEAL_H_
#define FNCACHE_CACHE_STORE_SEAL_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/key/seeded_sha256.h"

namespace fncache::cache::store {

// XAES-256-GCM itself, for its test vectors. `nonce` has Seal::kNonceSize
// bytes, and starts the result. Otherwise as Seal::Close and Open.
std::string XaesClose(const key::Seed& key, absl::string_view nonce,
                      absl::string_view message, absl::string_view associated);
absl::optional<std::string> XaesOpen(const key::Seed& key,
                                     absl::string_view sealed,
                                     absl::string_view associated);

class Seal {
 public:
  // The bytes that a secret has at least.
  static constexpr size_t kMinSecret = 32;
  // A sealed message is longer than the message by a nonce and a tag.
  static constexpr size_t kNonceSize = 24;
  static constexpr size_t kOverhead = kNonceSize + 16;

  // Precondition: `secret` has at least kMinSecret bytes. `prefix` enters all
  // that is derived.
  Seal(absl::string_view secret, absl::string_view prefix);

  // The secret of the cache's keys: replicas agree on keys. Never log it.
  const key::Seed& key_seed() const { return key_seed_; }

  // The name of an entry, and of the record of bans: `PREFIX:1:` and 32 hex
  // digits.
  std::string NameOf(const key::Key& key) const { return NameOf(key.Bytes()); }
  std::string NameOfBans() const { return NameOf("bans"); }

  // Seals `message`: a random nonce, the ciphertext, the tag. `associated` is
  // not stored, and Open needs the same. Empty if OpenSSL has no random bytes
  // or no memory, or `message` has 2 GiB: the write has failed.
  std::string Close(absl::string_view message,
                    absl::string_view associated) const;
  // The message; absent unless Close made `sealed` with this secret, prefix and
  // associated data.
  absl::optional<std::string> Open(absl::string_view sealed,
                                   absl::string_view associated) const {
    return XaesOpen(seal_key_, sealed, associated);
  }

 private:
  // `bytes` are those of a key, 16, or a text of another length.
  std::string NameOf(absl::string_view bytes) const;

  const std::string prefix_;
  key::Seed key_seed_;
  key::SeededSha256 names_;  // HMAC-SHA-256 under the name key
  key::Seed seal_key_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_SEAL_H_
