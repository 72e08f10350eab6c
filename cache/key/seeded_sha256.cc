// SPDX-License-Identifier: Apache-2.0
#include "cache/key/seeded_sha256.h"

#include <openssl/evp.h>

#include "absl/base/internal/endian.h"

namespace fncache::cache::key {
namespace {

constexpr size_t kHashSize = 32;

}  // namespace

void SeededSha256::Scratch::Free::operator()(EVP_MD_CTX* context) const {
  EVP_MD_CTX_free(context);
}

void SeededSha256::Free::operator()(EVP_MD* algorithm) const {
  EVP_MD_free(algorithm);
}

// Fetched once: EVP_sha256() would be looked up again for every hash.
SeededSha256::SeededSha256(const Seed& seed)
    : algorithm_(EVP_MD_fetch(nullptr, "SHA256", nullptr)) {
  for (size_t i = 0; i < kBlockSize; ++i) {
    const uint8_t byte = i < seed.size() ? seed[i] : 0;
    inner_[i] = byte ^ 0x36;
    outer_[i] = byte ^ 0x5c;
  }
}

bool SeededSha256::Hash(absl::string_view bytes, Scratch* scratch,
                        Key* key) const {
  if (scratch->context_ == nullptr) scratch->context_.reset(EVP_MD_CTX_new());
  EVP_MD_CTX* const context = scratch->context_.get();
  unsigned char hash[kHashSize];
  if (algorithm_ == nullptr || context == nullptr ||
      EVP_DigestInit_ex2(context, algorithm_.get(), nullptr) != 1 ||
      EVP_DigestUpdate(context, inner_.data(), inner_.size()) != 1 ||
      EVP_DigestUpdate(context, bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(context, hash, nullptr) != 1 ||
      EVP_DigestInit_ex2(context, algorithm_.get(), nullptr) != 1 ||
      EVP_DigestUpdate(context, outer_.data(), outer_.size()) != 1 ||
      EVP_DigestUpdate(context, hash, sizeof(hash)) != 1 ||
      EVP_DigestFinal_ex(context, hash, nullptr) != 1) {
    return false;
  }
  key->high = absl::big_endian::Load64(hash);
  key->low = absl::big_endian::Load64(hash + 8);
  return true;
}

}  // namespace fncache::cache::key
