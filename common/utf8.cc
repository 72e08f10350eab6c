// SPDX-License-Identifier: Apache-2.0
#include "common/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace fncache {
namespace {

unsigned char At(absl::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

template <typename Word>
Word Load(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Whether all bytes are ASCII. Nearly all text is. Loads that overlap check it
// without a loop over the last few bytes.
bool IsAscii(absl::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  const char* p = text.data();
  const size_t size = text.size();
  if (size >= 8) {
    const char* const last = p + size - 8;
    uint64_t all = Load<uint64_t>(last);
    for (; p < last; p += 8) all |= Load<uint64_t>(p);
    return (all & kHighBits) == 0;
  }
  if (size >= 4) {
    const uint32_t all = Load<uint32_t>(p) | Load<uint32_t>(p + size - 4);
    return (all & static_cast<uint32_t>(kHighBits)) == 0;
  }
  if (size == 0) return true;
  return ((p[0] | p[size / 2] | p[size - 1]) & 0x80) == 0;
}

bool IsBidiControl(uint32_t character) {
  return character == 0x061c || character == 0x200e || character == 0x200f ||
         (character >= 0x202a && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

bool IsSeparator(uint32_t character) {
  return character == 0x2028 || character == 0x2029;
}

void AppendEscaped(const char* format, uint32_t number, std::string* out) {
  char escaped[8];
  std::snprintf(escaped, sizeof escaped, format, number);
  out->append(escaped);
}

// Takes the character that `text`, which is not empty, begins with, or one byte
// that begins none. `bytes` gets its length, 0 for such a byte.
absl::string_view TakeCharacter(absl::string_view* text, size_t* bytes) {
  *bytes = Utf8CharacterBytes(*text);
  const absl::string_view character =
      text->substr(0, std::max<size_t>(*bytes, 1));
  text->remove_prefix(character.size());
  return character;
}

}  // namespace

size_t Utf8CharacterBytes(absl::string_view text) {
  if (text.empty()) return 0;
  const unsigned char lead = At(text, 0);
  if (lead < 0x80) return 1;
  size_t bytes;
  // The second byte's range excludes over-long forms, surrogates and what lies
  // beyond U+10FFFF (RFC 3629, section 4).
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    bytes = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    bytes = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    bytes = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return 0;
  }
  if (text.size() < bytes) return 0;
  if (At(text, 1) < low || At(text, 1) > high) return 0;
  for (size_t i = 2; i < bytes; ++i) {
    if ((At(text, i) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

uint32_t Utf8CodePoint(absl::string_view character) {
  const unsigned char lead = At(character, 0);
  // The first of several bytes has one marking bit for each, and a zero.
  uint32_t point =
      character.size() == 1 ? lead : lead & (0x7fU >> character.size());
  for (size_t i = 1; i < character.size(); ++i) {
    point = point << 6 | (At(character, i) & 0x3fU);
  }
  return point;
}

std::string WellFormedUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t bytes;
  while (!text.empty()) {
    const absl::string_view character = TakeCharacter(&text, &bytes);
    if (bytes > 0) {
      out.append(character.data(), bytes);
    } else {
      out.append("\xEF\xBF\xBD");
    }
  }
  return out;
}

bool HasBidiControl(absl::string_view text) {
  size_t bytes;
  while (!text.empty()) {
    const absl::string_view character = TakeCharacter(&text, &bytes);
    if (bytes > 1 && IsBidiControl(Utf8CodePoint(character))) return true;
  }
  return false;
}

std::string WithoutBidiControls(absl::string_view text) {
  std::string out;
  size_t bytes;
  while (!text.empty()) {
    const absl::string_view character = TakeCharacter(&text, &bytes);
    if (const uint32_t decoded = bytes > 1 ? Utf8CodePoint(character) : 0;
        IsBidiControl(decoded)) {
      AppendEscaped("\\u%04x", decoded, &out);
    } else {
      out.append(character.data(), character.size());
    }
  }
  return out;
}

std::string Printable(absl::string_view text) {
  std::string out;
  size_t bytes;
  while (!text.empty()) {
    const absl::string_view character = TakeCharacter(&text, &bytes);
    const unsigned char lead = At(character, 0);
    const uint32_t decoded = bytes > 1 ? Utf8CodePoint(character) : 0;
    const bool control =
        lead < 0x20 || lead == 0x7f || (decoded >= 0x80 && decoded < 0xa0);
    if (IsBidiControl(decoded) || IsSeparator(decoded)) {
      AppendEscaped("\\u%04x", decoded, &out);
    } else if (bytes > 0 && !control) {
      out.append(character.data(), character.size());
    } else if (lead == '\n') {
      out += "\\n";
    } else if (lead == '\r') {
      out += "\\r";
    } else if (lead == '\t') {
      out += "\\t";
    } else {
      for (size_t i = 0; i < character.size(); ++i) {
        AppendEscaped("\\x%02x", At(character, i), &out);
      }
    }
  }
  return out;
}

std::string PrintableStart(absl::string_view text) {
  constexpr size_t kMost = 100;
  if (text.size() <= kMost) return Printable(text);
  size_t end = 0;
  for (size_t next = 0; next <= kMost;) {
    end = next;
    next += std::max<size_t>(1, Utf8CharacterBytes(text.substr(next)));
  }
  return Printable(text.substr(0, end)) + "...";
}

bool IsUtf8(absl::string_view text) {
  if (IsAscii(text)) return true;
  while (true) {
    while (text.size() >= 8 && IsAscii(text.substr(0, 8))) {
      text.remove_prefix(8);
    }
    // Where one character is beyond ASCII, most likely its neighbours are too.
    for (int i = 0; i < 8; ++i) {
      if (text.empty()) return true;
      const size_t bytes = Utf8CharacterBytes(text);
      if (bytes == 0) return false;
      text.remove_prefix(bytes);
    }
  }
}

}  // namespace fncache
