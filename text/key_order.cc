// SPDX-License-Identifier: Apache-2.0
#include "text/key_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "common/utf8.h"
#include "re2/re2.h"

namespace fncache::text {
namespace {

// The code point at the head of a text that is not empty. A byte that is not
// UTF-8 counts as itself.
struct CodePoint {
  char32_t value;
  size_t bytes;
};

CodePoint Head(absl::string_view text) {
  const size_t bytes = std::max<size_t>(Utf8CharacterBytes(text), 1);
  return {Utf8CodePoint(text.substr(0, bytes)), bytes};
}

// Whether the code point at the head of `text` is one of `category`.
bool HeadIsOf(absl::string_view text, const RE2& category) {
  return RE2::FullMatch(re2::StringPiece(text.data(), Head(text).bytes),
                        category);
}

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

bool BeginsWithLetter(absl::string_view text) {
  if (IsAscii(text[0])) return absl::ascii_isalpha(text[0]);
  static const RE2* const kLetter = new RE2("\\p{L}");
  return HeadIsOf(text, *kLetter);
}

bool BeginsWithDigit(absl::string_view text) {
  if (IsAscii(text[0])) return absl::ascii_isdigit(text[0]);
  static const RE2* const kDigit = new RE2("\\p{Nd}");
  return HeadIsOf(text, *kDigit);
}

struct DigitRun {
  int64_t value = 0;
  size_t count = 0;
};

// The digits that `text` begins with, after digits worth `before`. The value
// wraps around, and a digit outside ASCII counts by its distance from '0': as
// in the reference.
DigitRun ReadDigits(absl::string_view text, uint64_t before) {
  uint64_t value = before;
  size_t count = 0;
  while (!text.empty() && BeginsWithDigit(text)) {
    const CodePoint digit = Head(text);
    value = value * 10 + (digit.value - U'0');
    text.remove_prefix(digit.bytes);
    ++count;
  }
  return {static_cast<int64_t>(value), count};
}

// Whether the digits that `text` ends with hold one that is not 0.
bool EndsWithNonZero(absl::string_view text) {
  while (!text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 &&
           (static_cast<unsigned char>(text[start]) & 0xC0u) == 0x80) {
      --start;
    }
    const absl::string_view last = text.substr(start);
    if (!BeginsWithDigit(last)) return false;
    if (last != "0") return true;
    text.remove_suffix(last.size());
  }
  return false;
}

}  // namespace

bool KeyLess(absl::string_view a, absl::string_view b) {
  const size_t shorter = std::min(a.size(), b.size());
  size_t at = static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + shorter, b.begin()).first -
      a.begin());
  if (at == shorter) return a.size() < b.size();
  // Go back to the first byte of the code points that differ.
  while (at > 0 && (static_cast<unsigned char>(a[at]) & 0xC0u) == 0x80) --at;
  const absl::string_view common = a.substr(0, at);
  a.remove_prefix(at);
  b.remove_prefix(at);

  const bool letter_a = BeginsWithLetter(a);
  const bool letter_b = BeginsWithLetter(b);
  if (letter_a != letter_b) return letter_b;
  const char32_t first_a = Head(a).value;
  const char32_t first_b = Head(b).value;
  if (letter_a) return first_a < first_b;
  // A 0 within a number is no leading one.
  const bool within = (a[0] == '0' || b[0] == '0') && EndsWithNonZero(common);
  const DigitRun digits_a = ReadDigits(a, within ? 1 : 0);
  const DigitRun digits_b = ReadDigits(b, within ? 1 : 0);
  if (digits_a.value != digits_b.value) return digits_a.value < digits_b.value;
  if (digits_a.count != digits_b.count) return digits_a.count < digits_b.count;
  return first_a < first_b;
}

}  // namespace fncache::text
