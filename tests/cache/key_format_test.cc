// Holds docs/key-format.md against the code: the scope as the page describes
// it, and every vector.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "cache/digest.h"
#include "gtest/gtest.h"
#include "tests/cache/request_data.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace fncache::cache {
namespace {

struct Vector {
  std::string name;
  std::vector<std::string> masks;
  std::string request;
  std::string message;
  std::string key;
};

std::vector<Vector> ReadVectors(const std::string& page) {
  std::vector<Vector> vectors;
  const size_t at = page.find("## Vectors");
  if (at == page.npos) return vectors;
  for (absl::string_view line : absl::StrSplit(page.substr(at), '\n')) {
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
    } else if (name == "request") {
      vectors.back().request = absl::HexStringToBytes(text);
    } else if (name == "message") {
      vectors.back().message = absl::HexStringToBytes(text);
    } else if (name == "key") {
      vectors.back().key = text;
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

TEST(KeyFormat, EveryVectorHolds) {
  const std::string page = ReadFile(std::filesystem::path(FNCACHE_SOURCE_DIR) /
                                    "docs" / "key-format.md");
  const std::vector<Vector> vectors = ReadVectors(page);
  ASSERT_GE(vectors.size(), 12);
  const KeyScope scope = {
      "function-auto-ready",
      "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
      "function-auto-ready-6dd5cd0c8f2a"};
  // The page says so too.
  for (const std::string& text :
       {scope.function, scope.method, scope.generation}) {
    EXPECT_NE(page.find("`" + text + "`"), page.npos) << text;
  }
  unsigned char secret[192];
  XXH3_generateSecret(secret, sizeof(secret), TestSeed().data(), 32);
  for (const Vector& vector : vectors) {
    SCOPED_TRACE(vector.name);
    // As the page describes it.
    std::string bytes("\x01\0\0", 3);
    bytes += Text(scope.function) + Text(scope.method) + Text(scope.generation);
    bytes += Count(vector.masks.size());
    std::vector<std::string> masks = vector.masks;
    std::sort(masks.begin(), masks.end());
    for (const std::string& mask : masks) bytes += Text(mask);
    bytes += vector.message;
    const XXH128_hash_t hash = XXH3_128bits_withSecret(
        bytes.data(), bytes.size(), secret, sizeof(secret));
    EXPECT_EQ((Key{hash.high64, hash.low64}).Hex(), vector.key);
    // As the code does it.
    DigestScratch scratch;
    const Digester digester(TestSeed(), scope, *MaskSet::Parse(vector.masks));
    const Digest digest = digester.Compute({vector.request}, &scratch);
    ASSERT_TRUE(digest.keyed);
    EXPECT_EQ(digest.key.Hex(), vector.key);
  }
}

}  // namespace
}  // namespace fncache::cache
