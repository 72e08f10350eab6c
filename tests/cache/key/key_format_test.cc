// SPDX-License-Identifier: Apache-2.0
// Holds docs/key-format.md against the code: the scope as the page describes
// it, and every vector.
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cache/key/digest.h"
#include "cache/key/hint.h"
#include "cache/key/read_fields.h"
#include "common/method.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/drift_oracle.h"
#include "tests/cache/key/key_oracle.h"
#include "tests/cache/key/request_data.h"
#include "tests/cache/key/unfold.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace fncache::cache::key {
namespace {

struct Vector {
  std::string name;
  bool by_tag = false;  // `key: tag`
  bool sha256 = false;  // `key_hash: sha256`
  bool tune = false;    // `tune: on`
  std::vector<std::string> masks;
  std::string request;
  std::string message;
  std::string key;
  std::string drifts;  // the bytes that the drift digest is of
  std::string drift;   // the drift digest
  std::string hint;    // `fncache-depends`
};

// Those behind this heading, up to `end`.
std::vector<Vector> ReadVectors(const std::string& page,
                                const std::string& heading,
                                const std::string& end) {
  std::vector<Vector> vectors;
  const size_t at = page.find(heading);
  if (at == page.npos) return vectors;
  const std::string part = page.substr(at, page.find(end, at + 1) - at);
  for (absl::string_view line : absl::StrSplit(part, '\n')) {
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const absl::string_view name = line.substr(0, colon);
    const std::string text(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    if (name == "vector") {
      vectors.emplace_back().name = text;
    } else if (vectors.empty()) {
      continue;
    } else if (name == "masks") {
      vectors.back().masks = absl::StrSplit(text, ' ');
    } else if (name == "settings") {
      for (absl::string_view setting : absl::StrSplit(text, ", ")) {
        if (setting == "key: tag") {
          vectors.back().by_tag = true;
        } else if (setting == "key_hash: sha256") {
          vectors.back().sha256 = true;
        } else if (setting == "tune: on") {
          vectors.back().tune = true;
        } else {
          ADD_FAILURE() << "the page has another setting: " << setting;
        }
      }
    } else if (name == "request") {
      vectors.back().request = absl::HexStringToBytes(text);
    } else if (name == "hint") {
      vectors.back().hint = text;
    } else if (name == "message") {
      vectors.back().message = absl::HexStringToBytes(text);
    } else if (name == "key") {
      vectors.back().key = text;
    } else if (name == "drift") {
      vectors.back().drifts = absl::HexStringToBytes(text);
    } else if (name == "digest") {
      vectors.back().drift = text;
    }
  }
  return vectors;
}

std::string Count(size_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

std::string Text(const std::string& text) { return Count(text.size()) + text; }

// meta.tag, as protobuf sees it. What `key: tag` skips may be anything, so it
// is taken out first, by the page's words: fields 2, 3, 4 and 7, if they are
// length-delimited.
std::string TagOf(const std::string& request) {
  namespace pb = google::protobuf;
  pb::UnknownFieldSet all;
  EXPECT_TRUE(all.ParseFromString(request));
  pb::UnknownFieldSet rest;
  for (int i = 0; i < all.field_count(); ++i) {
    const pb::UnknownField& field = all.field(i);
    const bool skipped =
        field.type() == pb::UnknownField::TYPE_LENGTH_DELIMITED &&
        (field.number() == 2 || field.number() == 3 || field.number() == 4 ||
         field.number() == 7);
    if (!skipped) rest.AddField(field);
  }
  std::string bytes;
  EXPECT_TRUE(rest.SerializeToString(&bytes));
  apiextensions::fn::proto::v1::RunFunctionRequest message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message.meta().tag();
}

bool Is64HexDigits(const std::string& tag) {
  return tag.size() == 64 &&
         tag.find_first_not_of("0123456789abcdefABCDEF") == tag.npos;
}

std::string HmacSha256(const Seed& seed, const std::string& bytes) {
  unsigned char hash[32];
  unsigned int size = 0;
  EXPECT_NE(HMAC(EVP_sha256(), seed.data(), static_cast<int>(seed.size()),
                 reinterpret_cast<const unsigned char*>(bytes.data()),
                 bytes.size(), hash, &size),
            nullptr);
  EXPECT_EQ(size, sizeof(hash));
  return {reinterpret_cast<const char*>(hash), size};
}

// Key or drift digest of these bytes, as the page describes it.
std::string HashOf(bool sha256, const std::string& bytes) {
  if (sha256) {
    return absl::BytesToHexString(HmacSha256(TestSeed(), bytes).substr(0, 16));
  }
  unsigned char secret[192];
  XXH3_generateSecret(secret, sizeof(secret), TestSeed().data(), 32);
  const XXH128_hash_t hash = XXH3_128bits_withSecret(bytes.data(), bytes.size(),
                                                     secret, sizeof(secret));
  return (Key{hash.high64, hash.low64}).Hex();
}

// Drifts as texts that can be compared: type and section, key, and the value if
// it is a text.
std::vector<std::string> Sorted(std::vector<std::string> drifts) {
  std::sort(drifts.begin(), drifts.end());
  return drifts;
}
std::vector<std::string> DriftsIn(absl::string_view bytes) {
  std::vector<std::string> drifts;
  while (!bytes.empty()) {
    const int first = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    std::string drift = absl::StrCat(first);
    for (int i = 0; i < 2; ++i) {
      // Each vector's keys and values are short: a count is one byte.
      const auto size = static_cast<unsigned char>(bytes.at(0));
      EXPECT_LT(size, 128);
      if (i == 0 || first >> 2 != 2) {
        absl::StrAppend(&drift, " ", bytes.substr(1, size));
      }
      bytes.remove_prefix(1 + size);
    }
    drifts.push_back(drift);
  }
  return drifts;
}
std::vector<std::string> DriftsIn(
    apiextensions::fn::proto::v1::RunFunctionRequest request) {
  std::vector<std::string> drifts;
  for (const FoundDrift& found : FindDrift(&request)) {
    const int type = found.type == 'v' ? 1 : found.type == 'm' ? 2 : 3;
    const int section = found.section == "composite"  ? 1
                        : found.section == "composed" ? 2
                                                      : 3;
    drifts.push_back(absl::StrCat(
        type * 4 + section, " ", found.key,
        found.type == 'm' ? "" : " " + found.value->string_value()));
  }
  return drifts;
}

TEST(KeyFormat, EveryVectorHolds) {
  const std::string page = ReadFile(std::filesystem::path(FNCACHE_SOURCE_DIR) /
                                    "docs" / "key-format.md");
  std::vector<Vector> vectors = ReadVectors(page, "## Vectors", "\n## ");
  const std::string depends = ReadFile(
      std::filesystem::path(FNCACHE_SOURCE_DIR) / "docs" / "depends.md");
  for (Vector& vector : ReadVectors(depends, "## Keys by hint", "\n## ")) {
    vectors.push_back(std::move(vector));
  }
  ASSERT_GE(vectors.size(), 20);
  KeyScope scope = {"function-auto-ready", kRunFunctionV1,
                    "function-auto-ready-6dd5cd0c8f2a"};
  // The page says so too.
  for (const std::string& text :
       {scope.function, scope.method, scope.generation}) {
    EXPECT_NE(page.find("`" + text + "`"), page.npos) << text;
  }
  size_t tuned = 0;
  size_t by_hints = 0;
  for (const Vector& vector : vectors) {
    SCOPED_TRACE(vector.name);
    // As the page describes it.
    const std::string tag =
        vector.by_tag ? TagOf(vector.request) : std::string();
    const bool tag_will_do = vector.by_tag && Is64HexDigits(tag);
    std::string bytes = "\x02";
    const bool by_hint = !vector.hint.empty();
    const absl::string_view fields[] = {vector.hint};
    const Hint hint = by_hint ? *Hint::Parse(fields) : Hint();
    bytes += static_cast<char>(tag_will_do     ? 1
                               : vector.by_tag ? 2
                               : by_hint       ? 3
                                               : 0);
    bytes += static_cast<char>(vector.sha256 ? 1 : 0);
    bytes += Text(scope.function) + Text(scope.method) + Text(scope.generation);
    std::vector<std::string> masks = vector.masks;
    std::sort(masks.begin(), masks.end());
    if (vector.tune) masks.insert(masks.begin(), "@drift1");
    bytes += Count(masks.size());
    for (const std::string& mask : masks) bytes += Text(mask);
    if (by_hint) {
      bytes += static_cast<char>(hint.pure() ? 1 : 0);
      bytes += Count(hint.reads().size());
      for (const std::string& path : hint.reads()) bytes += Text(path);
    }
    if (tag_will_do) bytes += tag;
    bytes += vector.message;
    EXPECT_EQ(HashOf(vector.sha256, bytes), vector.key);
    if (vector.tune) {
      ++tuned;
      EXPECT_EQ(HashOf(vector.sha256, vector.drifts), vector.drift);
    }
    // The message is one that can be read back.
    const MaskSet mask_set = *MaskSet::Parse(vector.masks, MaskRules::kAnyPath);
    const absl::optional<std::string> unfolded =
        Unfold(mask_set, vector.tune, vector.message);
    apiextensions::fn::proto::v1::RunFunctionRequest message;
    ASSERT_TRUE(unfolded.has_value() && ProtobufParses(*unfolded, &message));
    if (!tag_will_do) {
      apiextensions::fn::proto::v1::RunFunctionRequest request;
      std::string counts = vector.request;
      if (by_hint) {
        const char* const end =
            WriteReadFields(vector.request, hint.root(), &counts[0]);
        ASSERT_NE(end, nullptr);
        counts.resize(static_cast<size_t>(end - counts.data()));
      }
      ASSERT_TRUE(ProtobufParses(counts, &request));
      if (vector.tune) {
        if (vector.masks.empty()) {
          EXPECT_EQ(Sorted(DriftsIn(vector.drifts)), Sorted(DriftsIn(request)));
        }
        TakeOutDrift(&request);
      }
      EXPECT_TRUE(SameRequest(mask_set, message, request));
    }
    // As the code does it.
    scope.source = vector.by_tag ? KeySource::kTag : KeySource::kContent;
    scope.hash = vector.sha256 ? KeyHash::kSha256 : KeyHash::kXxh3;
    scope.drift = vector.tune;
    DigestScratch scratch;
    const Digester digester(TestSeed(), scope,
                            *MaskSet::Parse(vector.masks, MaskRules::kAnyPath));
    const Digest digest =
        by_hint ? digester.ComputeByHint(vector.request, hint,
                                         digester.HintPrefix(hint), &scratch)
                : digester.Compute({vector.request}, &scratch);
    ASSERT_TRUE(digest.keyed);
    EXPECT_EQ(digest.key.Hex(), vector.key);
    by_hints += by_hint;
    if (vector.tune) {
      EXPECT_EQ(digest.drift.Hex(), vector.drift);
      EXPECT_EQ(absl::BytesToHexString(digest.drifts),
                absl::BytesToHexString(vector.drifts));
    }
  }
  EXPECT_GE(tuned, 4);
  EXPECT_GE(by_hints, 4);
}

// Digests are hashed with the widest vectors that a machine has, and with
// others where they are long; here it is the same code at every size.
TEST(KeyFormat, TheHashIsTheSameAtEverySizeWhateverVectorsAreThere) {
  const KeyScope scope = {"f", "m", "g"};
  const std::string prefix("\x02\0\0\x01\x66\x01m\x01g\0", 10);
  const Digester digester(TestSeed(), scope, MaskSet());
  DigestScratch scratch;
  unsigned char secret[192];
  XXH3_generateSecret(secret, sizeof(secret), TestSeed().data(), 32);
  std::string content;
  for (size_t size = 0; size < 70000; size += size < 2500 ? 1 : 1021) {
    while (content.size() < size) {
      content += static_cast<char>(content.size() * 167 >> 3);
    }
    // An unknown field, which is its own canonical form.
    const std::string request = "\x7a" + Text(content);
    const std::string bytes = prefix + request;
    const XXH128_hash_t hash = XXH3_128bits_withSecret(
        bytes.data(), bytes.size(), secret, sizeof(secret));
    const Digest digest = digester.Compute({request}, &scratch);
    ASSERT_TRUE(digest.keyed);
    ASSERT_EQ(digest.key.Hex(), (Key{hash.high64, hash.low64}).Hex()) << size;
  }
}

}  // namespace
}  // namespace fncache::cache::key
