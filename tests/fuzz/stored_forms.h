// SPDX-License-Identifier: Apache-2.0
// The stored forms of docs/storage-format.md, made from the format's
// description alone. The fuzzers of these formats share them: lengths,
// checksums and seals are right, which a fuzzer would not find.
//
// Pure functions.
#ifndef FNCACHE_TESTS_FUZZ_STORED_FORMS_H_
#define FNCACHE_TESTS_FUZZ_STORED_FORMS_H_

#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cache/key/key.h"
#include "cache/store/seal.h"

namespace fncache::fuzz {

// `bytes` bytes, the lowest first.
inline std::string LittleEndian(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text.push_back(static_cast<char>(number >> (8 * i)));
  }
  return text;
}

// A stored entry of the key. The first byte of `parts` is the header's length;
// half of the bytes behind the header are the rest of meta, the others the
// body.
inline std::string StoredEntryOf(const cache::key::Key& key,
                                 absl::string_view parts, char version) {
  const size_t wanted = parts.empty() ? 0 : static_cast<uint8_t>(parts[0]);
  parts.remove_prefix(parts.empty() ? 0 : 1);
  const size_t header = std::min(wanted, parts.size());
  const size_t rest = (parts.size() - header) / 2;
  const std::string start = absl::StrCat("fncache", std::string(1, version));
  const std::string checked =
      absl::StrCat(LittleEndian(header, 4), LittleEndian(rest, 4),
                   LittleEndian(parts.size() - header - rest, 4), parts);
  const std::string seed = absl::StrCat(key.Bytes(), start);
  const uint64_t checksum = XXH3_64bits_withSeed(
      checked.data(), checked.size(), XXH3_64bits(seed.data(), seed.size()));
  return absl::StrCat(start, LittleEndian(checksum, 8), checked);
}

// A file of bans with this message.
inline std::string BansFileOf(absl::string_view message) {
  const std::string start("fncbans\x01", 8);
  const uint64_t checksum = XXH3_64bits_withSeed(
      message.data(), message.size(), XXH3_64bits(start.data(), start.size()));
  return absl::StrCat(start, LittleEndian(checksum, 8), message);
}

// Has the secret and prefix of the document's vectors.
inline const cache::store::Seal& SealOfVectors() {
  static const auto* const seal =
      new cache::store::Seal("0123456789abcdef0123456789abcdef", "fncache");
  return *seal;
}

}  // namespace fncache::fuzz

#endif  // FNCACHE_TESTS_FUZZ_STORED_FORMS_H_
