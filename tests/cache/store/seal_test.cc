// SPDX-License-Identifier: Apache-2.0
// The seal: published vectors, and nothing else opens.
#include "cache/store/seal.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/cache/store/held_hex.h"

namespace fncache::cache::store {
namespace {

// The first `size` bytes of SHAKE-128 of nothing.
std::string Shake128(size_t size) {
  std::string out(size, '\0');
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
      EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EXPECT_EQ(EVP_DigestInit_ex(context.get(), EVP_shake128(), nullptr), 1);
  EXPECT_EQ(EVP_DigestFinalXOF(context.get(),
                               reinterpret_cast<unsigned char*>(&out[0]), size),
            1);
  return out;
}

key::Seed Filled(uint8_t with) {
  key::Seed secret;
  secret.fill(with);
  return secret;
}

// ------------------------------------------------------------- XAES-256-GCM

constexpr absl::string_view kNonce = "ABCDEFGHIJKLMNOPQRSTUVWX";
constexpr absl::string_view kMessage = "XAES-256-GCM";

// https://c2sp.org/XAES-256-GCM, "Test vectors": one of each value of the bit
// that doubling carries.
TEST(XaesTest, ThePublishedVectorsHold) {
  const struct {
    uint8_t key;
    absl::string_view associated;
    absl::string_view sealed;
  } vectors[] = {
      {1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
      {3, "c2sp.org/XAES-256-GCM",
       "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
  };
  for (const auto& vector : vectors) {
    const key::Seed key = Filled(vector.key);
    const std::string sealed =
        XaesClose(key, kNonce, kMessage, vector.associated);
    EXPECT_EQ(absl::BytesToHexString(absl::StripPrefix(sealed, kNonce)),
              vector.sealed);
    EXPECT_EQ(XaesOpen(key, sealed, vector.associated), kMessage);
  }
}

// The same page, "Accumulated randomized": keys, nonces and messages of
// SHAKE-128, and SHAKE-128 of what they give.
TEST(XaesTest, ThePublishedTenThousandRandomMessagesHold) {
  const std::string stream = Shake128(10'000 * (32 + 24 + 2 + 2 * 255));
  size_t at = 0;
  const auto read = [&](size_t size) {
    at += size;
    return absl::string_view(stream).substr(at - size, size);
  };
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(
      EVP_MD_CTX_new(), EVP_MD_CTX_free);
  ASSERT_EQ(EVP_DigestInit_ex(digest.get(), EVP_shake128(), nullptr), 1);
  for (int round = 0; round < 10'000; ++round) {
    key::Seed key;
    const absl::string_view key_bytes = read(key.size());
    std::copy(key_bytes.begin(), key_bytes.end(), key.begin());
    const absl::string_view nonce = read(Seal::kNonceSize);
    const auto text = [&] { return read(static_cast<uint8_t>(read(1)[0])); };
    const absl::string_view message = text();
    const absl::string_view associated = text();
    const std::string sealed = XaesClose(key, nonce, message, associated);
    ASSERT_EQ(XaesOpen(key, sealed, associated), message) << round;
    ASSERT_EQ(EVP_DigestUpdate(digest.get(), sealed.data() + nonce.size(),
                               sealed.size() - nonce.size()),
              1);
  }
  std::string sum(32, '\0');
  ASSERT_EQ(
      EVP_DigestFinalXOF(digest.get(),
                         reinterpret_cast<unsigned char*>(&sum[0]), sum.size()),
      1);
  EXPECT_EQ(absl::BytesToHexString(sum),
            "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939");
}

// ------------------------------------------------------------ Keys and names

constexpr absl::string_view kSecret = "0123456789abcdef0123456789abcdef";
const key::Key kKey{0x0123456789abcdef, 0xfedcba9876543210};

std::string Hmac(absl::string_view key, absl::string_view text) {
  std::string out(32, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(&out[0]), &size);
  return out;
}

absl::string_view AsText(const key::Seed& seed) {
  return {reinterpret_cast<const char*>(seed.data()), seed.size()};
}

TEST(SealTest, TheDocumentsKeysAndNamesAreDerived) {
  const std::string vectors = testing::HeldHex(
      "storage-format.md", "SealTest.TheDocumentsKeysAndNamesAreDerived");
  ASSERT_EQ(vectors.size(), 3 * 32 + 2 * 16u);
  const absl::string_view name_key = absl::string_view(vectors).substr(32, 32);
  key::Seed seal_key;
  std::copy_n(vectors.begin() + 64, 32, seal_key.begin());
  const std::string of_key = absl::BytesToHexString(vectors.substr(96, 16));
  const std::string of_bans = absl::BytesToHexString(vectors.substr(112));

  const Seal seal(kSecret, "fncache");
  EXPECT_EQ(AsText(seal.key_seed()), vectors.substr(0, 32));
  EXPECT_EQ(seal.NameOf(kKey), absl::StrCat("fncache:1:", of_key));
  EXPECT_EQ(seal.NameOfBans(), absl::StrCat("fncache:1:", of_bans));
  EXPECT_EQ(seal.Open(XaesClose(seal_key, kNonce, kMessage, "a"), "a"),
            kMessage);
  // The names are HMACs under the name key.
  EXPECT_EQ(absl::BytesToHexString(Hmac(name_key, kKey.Bytes()).substr(0, 16)),
            of_key);
  EXPECT_EQ(absl::BytesToHexString(Hmac(name_key, "bans").substr(0, 16)),
            of_bans);
}

// The extraction and expansion of RFC 5869, made of HMAC.
TEST(SealTest, AnySecretAndPrefixGiveTheKeySeedOfTheRfc) {
  for (size_t size = Seal::kMinSecret; size < 200; size += 7) {
    const std::string secret = Shake128(size);
    const std::string prefix(1 + size % 64, 'p');
    const std::string extracted = Hmac(std::string(32, '\0'), secret);
    EXPECT_EQ(AsText(Seal(secret, prefix).key_seed()),
              Hmac(extracted, absl::StrCat("fncache/1/keys/", prefix, "\x01")))
        << size;
  }
}

TEST(SealTest, AnotherSecretOrPrefixSharesNothing) {
  const std::string other(32, 'x');
  const Seal seals[] = {{kSecret, "fncache"},
                        {other, "fncache"},
                        {kSecret, "fncachf"},
                        {kSecret, "fncache:1"}};
  std::set<std::string> digests;
  std::set<std::string> seeds;
  for (const Seal& seal : seals) {
    seeds.insert(std::string(AsText(seal.key_seed())));
    for (const std::string& name : {seal.NameOf(kKey), seal.NameOfBans()}) {
      digests.insert(name.substr(name.size() - 32));
    }
    for (const Seal& opener : seals) {
      EXPECT_EQ(opener.Open(seal.Close("message", "a"), "a").has_value(),
                &opener == &seal);
    }
  }
  EXPECT_EQ(digests.size(), 8u);
  EXPECT_EQ(seeds.size(), 4u);
}

// ----------------------------------------------------------------- Messages

TEST(SealTest, MessagesOfAnySizeOpen) {
  const Seal seal(kSecret, "fncache");
  for (const size_t size : {0, 1, 15, 16, 17, 4095, 13 << 10, 1 << 20}) {
    const std::string message = Shake128(size);
    for (const size_t beside : {0, 5, 38}) {
      const std::string associated(beside, 'a');
      const std::string sealed = seal.Close(message, associated);
      EXPECT_EQ(sealed.size(), message.size() + Seal::kOverhead);
      EXPECT_EQ(seal.Open(sealed, associated), message) << size;
      EXPECT_FALSE(seal.Open(sealed, associated + 'a').has_value());
    }
  }
}

TEST(SealTest, NoChangedBitOpensAndNoErrorOfOpensslStays) {
  const Seal seal(kSecret, "fncache");
  const std::string message = "a message of 25 bytes ...";
  const std::string sealed = seal.Close(message, "associated");
  ERR_clear_error();
  for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::string flipped = sealed;
    flipped[bit / 8] ^= 1 << (bit % 8);
    EXPECT_FALSE(seal.Open(flipped, "associated").has_value()) << bit;
  }
  for (size_t bit = 0; bit < 8 * 10; ++bit) {
    std::string flipped = "associated";
    flipped[bit / 8] ^= 1 << (bit % 8);
    EXPECT_FALSE(seal.Open(sealed, flipped).has_value()) << bit;
  }
  for (size_t size = 0; size < sealed.size(); ++size) {
    EXPECT_FALSE(seal.Open(sealed.substr(0, size), "associated").has_value());
    EXPECT_FALSE(seal.Open(sealed.substr(size + 1), "associated").has_value());
  }
  EXPECT_FALSE(seal.Open(sealed + '\0', "associated").has_value());
  EXPECT_FALSE(seal.Open("", "").has_value());
  EXPECT_EQ(ERR_peek_error(), 0u);
  EXPECT_EQ(seal.Open(sealed, "associated"), message);
}

TEST(SealTest, NoNonceComesTwice) {
  const Seal seal(kSecret, "fncache");
  std::set<std::string> nonces;
  for (int i = 0; i < 10'000; ++i) {
    nonces.insert(seal.Close("", "").substr(0, Seal::kNonceSize));
  }
  EXPECT_EQ(nonces.size(), 10'000u);
}

// It is deprecated, and the one means to make RAND_bytes fail.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(SealTest, WithoutRandomBytesNothingIsSealed) {
  const Seal seal(kSecret, "fncache");
  RAND_METHOD none = {};
  none.bytes = [](unsigned char*, int) { return 0; };
  ASSERT_EQ(RAND_set_rand_method(&none), 1);
  const std::string sealed = seal.Close("message", "");
  ASSERT_EQ(RAND_set_rand_method(nullptr), 1);
  ERR_clear_error();
  EXPECT_EQ(sealed, "");
  EXPECT_NE(seal.Close("message", ""), "");
}
#pragma GCC diagnostic pop

TEST(SealTest, ThreadsShareOneSeal) {
  const Seal seal(kSecret, "fncache");
  const std::string name = seal.NameOf(kKey);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&seal, &name, thread] {
      for (int i = 0; i < 500; ++i) {
        const std::string message = absl::StrCat(thread, "/", i);
        const std::string sealed = seal.Close(message, "a");
        EXPECT_EQ(seal.Open(sealed, "a"), message);
        EXPECT_FALSE(seal.Open(sealed, "b").has_value());
        EXPECT_EQ(seal.NameOf(kKey), name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace fncache::cache::store
