// SPDX-License-Identifier: Apache-2.0
// The bytes of a hex block of a page in docs.
#ifndef FNCACHE_TESTS_CACHE_STORE_HELD_HEX_H_
#define FNCACHE_TESTS_CACHE_STORE_HELD_HEX_H_

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/file.h"
#include "gtest/gtest.h"

namespace fncache::cache::store::testing {

// `test` follows `held=` after the fence. Comments start with #. Empty, and a
// failure of the test, if there is no such block.
inline std::string HeldHex(absl::string_view page, absl::string_view test) {
  const auto document =
      ReadSmallFile(absl::StrCat(FNCACHE_SOURCE_DIR, "/docs/", page), 1 << 20);
  if (!document.ok()) {
    ADD_FAILURE() << document.status();
    return "";
  }
  const std::string fence = absl::StrCat("```hex held=", test, "\n");
  const size_t at = document->find(fence);
  const size_t end = document->find("```", at + fence.size());
  if (at == std::string::npos || end == std::string::npos) {
    ADD_FAILURE() << "no block " << test;
    return "";
  }
  std::string hex;
  bool comment = false;
  for (size_t i = at + fence.size(); i < end; ++i) {
    const char c = (*document)[i];
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    if (!comment && absl::ascii_isxdigit(c)) hex.push_back(c);
  }
  return absl::HexStringToBytes(hex);
}

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_HELD_HEX_H_
