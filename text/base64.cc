// SPDX-License-Identifier: Apache-2.0
#include "text/base64.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fncache::text {
namespace {

// The value of a base64 digit, or -1.
int Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

absl::StatusOr<std::string> DecodeBase64(absl::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int digits = 0;   // of the group of four
  int padding = 0;  // of the last group
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n' || c == '\r') continue;
    const int digit = Digit(c);
    const bool fits = padding > 0 ? c == '=' && digits + padding < 4
                                  : digit >= 0 || (c == '=' && digits >= 2);
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("illegal base64 data at input byte ", at));
    }
    if (c == '=') {
      ++padding;
      continue;
    }
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (++digits < 4) continue;
    bytes.push_back(static_cast<char>(bits >> 16));
    bytes.push_back(static_cast<char>(bits >> 8));
    bytes.push_back(static_cast<char>(bits));
    bits = 0;
    digits = 0;
  }
  if (digits > 0) {
    if (digits + padding != 4) {
      // Where the group begins that has no padding, or else at the end.
      const size_t at =
          padding > 0 ? text.size() : text.size() - static_cast<size_t>(digits);
      return absl::InvalidArgumentError(
          absl::StrCat("illegal base64 data at input byte ", at));
    }
    // Two digits are 12 bits, one byte of them used; three are 18, two used.
    if (digits == 3) bytes.push_back(static_cast<char>(bits >> 10));
    bytes.push_back(static_cast<char>(digits == 3 ? bits >> 2 : bits >> 4));
  }
  return bytes;
}

}  // namespace fncache::text
