// SPDX-License-Identifier: Apache-2.0
#include "text/quoted.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/utf8.h"

namespace fncache::text {

namespace {

// Characters beyond ASCII that have no glyph: controls, spaces, format
// characters, private use, non-characters.
bool Prints(uint32_t character) {
  struct Range {
    uint32_t first;
    uint32_t last;
  };
  constexpr Range kNoGlyph[] = {
      {0x80, 0xA0},     {0xAD, 0xAD},       {0x61C, 0x61C},
      {0x1680, 0x1680}, {0x180E, 0x180E},   {0x2000, 0x200F},
      {0x2028, 0x202F}, {0x205F, 0x206F},   {0x3000, 0x3000},
      {0xE000, 0xF8FF}, {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},
      {0xFFFE, 0xFFFF}, {0xE0000, 0xE00FF}, {0xE01F0, 0x10FFFF},
  };
  return std::none_of(
      std::begin(kNoGlyph), std::end(kNoGlyph), [&](const Range& range) {
        return range.first <= character && character <= range.last;
      });
}

void AppendCharacter(absl::string_view text, std::string* out) {
  const uint32_t character = Utf8CodePoint(text);
  if (Prints(character)) {
    out->append(text.data(), text.size());
  } else if (character <= 0xFFFF) {
    absl::StrAppend(out, "\\u", absl::Hex(character, absl::kZeroPad4));
  } else {
    absl::StrAppend(out, "\\U", absl::Hex(character, absl::kZeroPad8));
  }
}

// A byte of ASCII, or one that is no UTF-8.
void AppendByte(unsigned char c, std::string* out) {
  constexpr absl::string_view kNamed = "\a\b\t\n\v\f\r";
  constexpr absl::string_view kNames = "abtnvfr";
  if (c == '"' || c == '\\') {
    out->push_back('\\');
    out->push_back(static_cast<char>(c));
  } else if (const size_t at = kNamed.find(static_cast<char>(c));
             at != absl::string_view::npos) {
    out->push_back('\\');
    out->push_back(kNames[at]);
  } else if (c < ' ' || c >= 0x7F) {
    absl::StrAppend(out, "\\x", absl::Hex(c, absl::kZeroPad2));
  } else {
    out->push_back(static_cast<char>(c));
  }
}

}  // namespace

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t bytes = std::max<size_t>(Utf8CharacterBytes(text), 1);
    if (bytes == 1) {
      AppendByte(static_cast<unsigned char>(text[0]), &out);
    } else {
      AppendCharacter(text.substr(0, bytes), &out);
    }
    text.remove_prefix(bytes);
  }
  out.push_back('"');
  return out;
}

}  // namespace fncache::text
