// SPDX-License-Identifier: Apache-2.0
#include "cache/store/seal.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>

#include "absl/base/internal/endian.h"
#include "absl/strings/str_cat.h"

namespace fncache::cache::store {
namespace {

using absl::big_endian::Load32;
using absl::big_endian::Load64;
using absl::big_endian::Store64;
using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

constexpr size_t kTagSize = Seal::kOverhead - Seal::kNonceSize;

uint8_t* Bytes(const char* text) {
  return reinterpret_cast<uint8_t*>(const_cast<char*>(text));
}

// HKDF-SHA-256 without salt. It fails without memory only, and ends the process
// as any allocation does then.
key::Seed Derive(absl::string_view secret, absl::string_view purpose,
                 absl::string_view prefix) {
  std::string hash = "SHA256";
  const std::string info = absl::StrCat("fncache/1/", purpose, "/", prefix);
  const auto octets = OSSL_PARAM_construct_octet_string;
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, &hash[0], 0),
      octets(OSSL_KDF_PARAM_KEY, Bytes(secret.data()), secret.size()),
      octets(OSSL_KDF_PARAM_INFO, Bytes(info.data()), info.size()),
      OSSL_PARAM_construct_end()};
  EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr);
  EVP_KDF_CTX* const context = EVP_KDF_CTX_new(kdf);
  key::Seed out;
  if (EVP_KDF_derive(context, out.data(), out.size(), params) != 1) abort();
  EVP_KDF_CTX_free(context);
  EVP_KDF_free(kdf);
  return out;
}

// The key of AES-256-GCM for a message, of the first 12 bytes of the nonce: the
// KDF in counter mode with CMAC (NIST SP 800-108).
bool DeriveMessageKey(const key::Seed& key, const char* nonce, uint8_t* out) {
  static EVP_CIPHER* const ecb =
      EVP_CIPHER_fetch(nullptr, "AES-256-ECB", nullptr);
  static thread_local const Context context(EVP_CIPHER_CTX_new(),
                                            EVP_CIPHER_CTX_free);
  uint8_t blocks[32] = {};
  int size = 0;
  if (!EVP_EncryptInit_ex2(context.get(), ecb, key.data(), nullptr, nullptr) ||
      !EVP_EncryptUpdate(context.get(), blocks, &size, blocks, 16)) {
    return false;
  }
  // CMAC's first subkey is that block doubled in GF(2^128).
  uint64_t high = Load64(blocks);
  uint64_t low = Load64(blocks + 8);
  const uint64_t carry = high >> 63;
  high = high << 1 | low >> 63;
  low = low << 1 ^ carry * 0x87;
  // Each input: a counter of 16 bits, 'X', 0, and the nonce's bytes.
  for (const uint64_t counter : {1, 2}) {
    uint8_t* const to = blocks + 16 * (counter - 1);
    Store64(to, high ^ (counter << 48 | uint64_t{'X'} << 40 | Load32(nonce)));
    Store64(to + 8, low ^ Load64(nonce + 4));
  }
  return EVP_EncryptUpdate(context.get(), out, &size, blocks, sizeof(blocks));
}

// Encrypts `from` to as many bytes at `to`, and makes the tag. Or decrypts it,
// only reads the tag, and is false unless that is right.
bool Crypt(bool encrypt, const key::Seed& key, const char* nonce,
           absl::string_view associated, absl::string_view from, uint8_t* to,
           uint8_t* tag) {
  static EVP_CIPHER* const gcm =
      EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  static thread_local const Context owned(EVP_CIPHER_CTX_new(),
                                          EVP_CIPHER_CTX_free);
  EVP_CIPHER_CTX* const context = owned.get();
  uint8_t message_key[32];
  int size = 0;
  return from.size() <= std::numeric_limits<int>::max() &&
         DeriveMessageKey(key, nonce, message_key) &&
         EVP_CipherInit_ex2(context, gcm, message_key, Bytes(nonce + 12),
                            encrypt, nullptr) &&
         EVP_CipherUpdate(context, nullptr, &size, Bytes(associated.data()),
                          static_cast<int>(associated.size())) &&
         EVP_CipherUpdate(context, to, &size, Bytes(from.data()),
                          static_cast<int>(from.size())) &&
         (encrypt || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG,
                                         kTagSize, tag) == 1) &&
         EVP_CipherFinal_ex(context, to, &size) == 1 &&
         (!encrypt || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG,
                                          kTagSize, tag) == 1);
}

}  // namespace

std::string XaesClose(const key::Seed& key, absl::string_view nonce,
                      absl::string_view message, absl::string_view associated) {
  std::string sealed(nonce);
  sealed.resize(Seal::kOverhead + message.size());
  uint8_t* const to = Bytes(sealed.data()) + Seal::kNonceSize;
  if (!Crypt(/*encrypt=*/true, key, nonce.data(), associated, message, to,
             to + message.size())) {
    sealed.clear();
  }
  return sealed;
}

absl::optional<std::string> XaesOpen(const key::Seed& key,
                                     absl::string_view sealed,
                                     absl::string_view associated) {
  if (sealed.size() < Seal::kOverhead) return absl::nullopt;
  std::string message(sealed.size() - Seal::kOverhead, '\0');
  const auto from = sealed.substr(Seal::kNonceSize, message.size());
  if (!Crypt(/*encrypt=*/false, key, sealed.data(), associated, from,
             Bytes(message.data()), Bytes(from.data() + from.size()))) {
    return absl::nullopt;
  }
  return message;
}

Seal::Seal(absl::string_view secret, absl::string_view prefix)
    : prefix_(prefix),
      key_seed_(Derive(secret, "keys", prefix)),
      names_(Derive(secret, "names", prefix)),
      seal_key_(Derive(secret, "seal", prefix)) {}

std::string Seal::NameOf(absl::string_view bytes) const {
  static thread_local key::SeededSha256::Scratch scratch;
  key::Key name;
  if (!names_.Hash(bytes, &scratch, &name)) abort();  // as Derive
  return absl::StrCat(prefix_, ":1:", name.Hex());
}

std::string Seal::Close(absl::string_view message,
                        absl::string_view associated) const {
  char nonce[kNonceSize];
  if (RAND_bytes(Bytes(nonce), kNonceSize) != 1) return "";
  return XaesClose(seal_key_, {nonce, kNonceSize}, message, associated);
}

}  // namespace fncache::cache::store
