// SPDX-License-Identifier: Apache-2.0
// The characters of YamlScanner: from bytes to UTF-8, and one step at a time.
#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "text/yaml_scanner.h"

namespace fncache::text {
namespace {

// Bytes that the reference reads at a time. It reports unreadable ones before
// any other error in the same piece.
constexpr size_t kPieceBytes = 512;
constexpr char kUtf8Mark[] = "\xef\xbb\xbf";
constexpr char kUtf16LittleMark[] = "\xff\xfe";
constexpr char kUtf16BigMark[] = "\xfe\xff";

// YAML's printable characters; others are control characters to the reference.
bool IsAllowed(uint32_t code) {
  return code == 0x09 || code == 0x0a || code == 0x0d ||
         (code >= 0x20 && code <= 0x7e) || code == 0x85 ||
         (code >= 0xa0 && code <= 0xd7ff) ||
         (code >= 0xe000 && code <= 0xfffd) ||
         (code >= 0x10000 && code <= 0x10ffff);
}

constexpr char kIncomplete[] = "incomplete UTF-8 octet sequence";
constexpr char kControl[] = "control characters are not allowed";

// Why `bytes` does not begin with a character of UTF-8 that YAML has; "" if it
// does, and then `width` is its size.
absl::string_view Utf8Problem(absl::string_view bytes, size_t* width) {
  *width = Utf8Width(bytes[0]);
  if (*width == 0) return "invalid leading UTF-8 octet";
  if (*width > bytes.size()) return kIncomplete;
  constexpr uint8_t kMasks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t code = static_cast<uint8_t>(bytes[0]) & kMasks[*width];
  for (size_t i = 1; i < *width; ++i) {
    const auto octet = static_cast<uint8_t>(bytes[i]);
    if ((octet & 0xc0) != 0x80) return "invalid trailing UTF-8 octet";
    code = code << 6 | (octet & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[*width]) return "invalid length of a UTF-8 sequence";
  if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) {
    return "invalid Unicode character";
  }
  return IsAllowed(code) ? "" : kControl;
}

}  // namespace

size_t Utf8Width(char c) {
  const auto lead = static_cast<uint8_t>(c);
  if (lead < 0x80) return 1;
  if ((lead & 0xe0) == 0xc0) return 2;
  if ((lead & 0xf0) == 0xe0) return 3;
  return (lead & 0xf8) == 0xf0 ? 4 : 0;
}

void AppendUtf8(uint32_t code, std::string* text) {
  if (code < 0x80) {
    text->push_back(static_cast<char>(code));
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint8_t kLeads[] = {0, 0xc0, 0xe0, 0xf0};
  text->push_back(static_cast<char>(kLeads[more] | (code >> (6 * more))));
  for (int left = more - 1; left >= 0; --left) {
    text->push_back(static_cast<char>(0x80 | ((code >> (6 * left)) & 0x3f)));
  }
}

YamlScanner::YamlScanner(absl::string_view bytes) { Decode(bytes); }

void YamlScanner::Decode(absl::string_view bytes) {
  if (absl::ConsumePrefix(&bytes, kUtf16LittleMark)) {
    return DecodeUtf16(bytes, /*little_endian=*/true);
  }
  if (absl::ConsumePrefix(&bytes, kUtf16BigMark)) {
    return DecodeUtf16(bytes, /*little_endian=*/false);
  }
  const size_t marks = absl::ConsumePrefix(&bytes, kUtf8Mark) ? 3 : 0;
  size_t end = 0;
  while (end < bytes.size()) {
    size_t width = 0;
    const absl::string_view problem = Utf8Problem(bytes.substr(end), &width);
    if (!problem.empty()) {
      unreadable_ = std::string(problem);
      if (problem == kIncomplete) break;  // more might have come
      const size_t piece = (end + marks) / kPieceBytes * kPieceBytes;
      end = piece > marks ? piece - marks : 0;
      break;
    }
    end += width;
  }
  text_ = std::string(bytes.substr(0, end));
}

void YamlScanner::DecodeUtf16(absl::string_view bytes, bool little_endian) {
  const auto unit = [&](size_t at) {
    const auto first = static_cast<uint8_t>(bytes[at]);
    const auto second = static_cast<uint8_t>(bytes[at + 1]);
    return static_cast<uint32_t>(little_endian ? second << 8 | first
                                               : first << 8 | second);
  };
  for (size_t at = 0; at < bytes.size() && unreadable_.empty();) {
    if (bytes.size() - at < 2) {
      unreadable_ = "incomplete UTF-16 character";
      break;
    }
    uint32_t code = unit(at);
    at += 2;
    if ((code & 0xfc00) == 0xdc00) {
      unreadable_ = "unexpected low surrogate area";
    } else if ((code & 0xfc00) == 0xd800) {
      if (bytes.size() - at < 2) {
        unreadable_ = "incomplete UTF-16 surrogate pair";
        break;
      }
      const uint32_t low = unit(at);
      at += 2;
      if ((low & 0xfc00) != 0xdc00) {
        unreadable_ = "expected low surrogate area";
        break;
      }
      code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
    }
    if (unreadable_.empty() && !IsAllowed(code)) unreadable_ = kControl;
    if (unreadable_.empty()) AppendUtf8(code, &text_);
  }
}

// --- characters -------------------------------------------------------------

// The byte at an offset from here, 0 at the end. (No text has a 0.)
char YamlScanner::At(size_t offset) {
  if (at_ + offset < text_.size()) return text_[at_ + offset];
  reached_unreadable_ = reached_unreadable_ || !unreadable_.empty();
  return '\0';
}

bool YamlScanner::IsBlank(size_t offset) {
  return At(offset) == ' ' || At(offset) == '\t';
}

bool YamlScanner::IsBreak(size_t offset) {
  switch (At(offset)) {
    case '\r':
    case '\n':
      return true;
    case '\xc2':
      return At(offset + 1) == '\x85';
    case '\xe2':
      return At(offset + 1) == '\x80' &&
             (At(offset + 2) == '\xa8' || At(offset + 2) == '\xa9');
    default:
      return false;
  }
}

bool YamlScanner::IsEnd(size_t offset) { return At(offset) == '\0'; }

bool YamlScanner::IsBreakOrEnd(size_t offset) {
  return IsBreak(offset) || IsEnd(offset);
}

bool YamlScanner::IsBlankOrEnd(size_t offset) {
  return IsBlank(offset) || IsBreakOrEnd(offset);
}

bool YamlScanner::IsWord(size_t offset) {
  const char c = At(offset);
  return absl::ascii_isalnum(c) || c == '_' || c == '-';
}

bool YamlScanner::IsFlowIndicator() {
  return !IsEnd() &&
         absl::StrContains(",?[]{}", absl::string_view(text_.data() + at_, 1));
}

// `---` or `...` at a line's beginning.
bool YamlScanner::IsDocumentMarker(char c) {
  return mark_.column == 0 && At(0) == c && At(1) == c && At(2) == c &&
         IsBlankOrEnd(3);
}

void YamlScanner::Advance(size_t characters) {
  for (; characters > 0; --characters) {
    at_ += std::max<size_t>(1, Utf8Width(At()));
    ++mark_.index;
    ++mark_.column;
  }
}

void YamlScanner::AdvanceLine() {
  std::string ignored;
  TakeLine(&ignored);
}

void YamlScanner::Take(std::string* into) {
  const size_t width = std::max<size_t>(1, Utf8Width(At()));
  into->append(text_, at_, width);
  Advance();
}

// Takes a line break, which all but those of Unicode become a newline.
void YamlScanner::TakeLine(std::string* into) {
  if (!IsBreak()) return;
  if (At(0) == '\r' && At(1) == '\n') {
    into->push_back('\n');
    at_ += 2;
    mark_.index += 2;
  } else if (At() == '\xe2') {
    into->append(text_, at_, 3);
    at_ += 3;
    ++mark_.index;
  } else {
    into->push_back('\n');
    at_ += Utf8Width(At());
    ++mark_.index;
  }
  mark_.column = 0;
  ++mark_.line;
}

void YamlScanner::SkipBlanks() {
  while (IsBlank()) Advance();
}

void YamlScanner::SkipComment() {
  if (At() != '#') return;
  while (!IsBreakOrEnd()) Advance();
}

}  // namespace fncache::text
