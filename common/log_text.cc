// SPDX-License-Identifier: Apache-2.0
#include "common/log_text.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/utf8.h"

namespace fncache {
namespace {

// Tells the characters that must not reach a terminal or a log as they are:
// control characters of ASCII and, as UTF-8, of Latin-1 (U+0080 to U+009F),
// which terminals obey too, and what readers of lines may take for a line's
// end.
bool IsControl(absl::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead < 0x20 || lead == 0x7f;
  if (character.size() == 3) {
    return character == "\xe2\x80\xa8" || character == "\xe2\x80\xa9";
  }
  return lead == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

// How many bytes from the beginning are characters of ASCII that may stand as
// they are, within quotes too.
size_t PlainBytes(absl::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size() && text[bytes] >= 0x20 && text[bytes] < 0x7f &&
         text[bytes] != '"' && text[bytes] != '\\') {
    ++bytes;
  }
  return bytes;
}

void AppendEscaped(absl::string_view text, bool quoting, std::string* out) {
  while (!text.empty()) {
    const size_t plain = PlainBytes(text);
    out->append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) return;
    const size_t bytes = Utf8CharacterBytes(text);
    const absl::string_view character =
        text.substr(0, std::max<size_t>(bytes, 1));
    if (bytes == 0) {
      *out += "\xef\xbf\xbd";
    } else if (IsControl(character)) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x",
                    Utf8CodePoint(character));
      *out += escaped;
    } else {
      if (quoting && (character == "\"" || character == "\\")) *out += '\\';
      absl::StrAppend(out, character);
    }
    text.remove_prefix(character.size());
  }
}

bool IsPlainValue(absl::string_view value) {
  if (value.empty() || !IsUtf8(value)) return false;
  while (!value.empty()) {
    const size_t bytes = Utf8CharacterBytes(value);
    if (IsControl(value.substr(0, bytes)) || value[0] == ' ' ||
        value[0] == '"' || value[0] == '=' || value[0] == '\\') {
      return false;
    }
    value.remove_prefix(bytes);
  }
  return true;
}

}  // namespace

void AppendLogText(absl::string_view text, std::string* out) {
  AppendEscaped(text, /*quoting=*/false, out);
}

void AppendJsonString(absl::string_view text, std::string* out) {
  *out += '"';
  AppendEscaped(text, /*quoting=*/true, out);
  *out += '"';
}

void AppendTextValue(absl::string_view value, std::string* out) {
  if (IsPlainValue(value)) {
    out->append(value.data(), value.size());
  } else {
    AppendJsonString(value, out);
  }
}

}  // namespace fncache
