// SPDX-License-Identifier: Apache-2.0
// The scalars of YamlScanner: block (| and >), quoted and plain.
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "text/yaml_scanner.h"

namespace fncache::text {
namespace {

// Line breaks between two lines of a scalar become a space, or one break less
// than there are.
void Fold(std::string* leading, std::string* trailing, std::string* value) {
  if (leading->empty() || leading->front() != '\n') {
    *value += *leading;
    *value += *trailing;
  } else if (trailing->empty()) {
    value->push_back(' ');
  } else {
    *value += *trailing;
  }
  leading->clear();
  trailing->clear();
}

}  // namespace

// --- block scalars ----------------------------------------------------------

bool YamlScanner::ScanBlockHeader(const YamlMark& start, int* chomping,
                                  int* increment) {
  const auto take_chomping = [&] {
    if (At() != '+' && At() != '-') return false;
    *chomping = At() == '+' ? 1 : -1;
    Advance();
    return true;
  };
  const auto take_increment = [&] {
    if (!absl::ascii_isdigit(At())) return true;
    if (At() == '0') {
      return Fail("found an indentation indicator equal to 0", start);
    }
    *increment = At() - '0';
    Advance();
    return true;
  };
  if (take_chomping()) {
    if (!take_increment()) return false;
  } else {
    if (!take_increment()) return false;
    if (*increment > 0) take_chomping();
  }
  SkipBlanks();
  SkipComment();
  if (!IsBreakOrEnd()) {
    return Fail("did not find expected comment or line break", start);
  }
  AdvanceLine();
  return true;
}

// Skips indentation and takes empty lines. An indent of 0 is found out here:
// that of the line that is indented most, up to the first that is not empty.
bool YamlScanner::ScanBlockBreaks(const YamlMark& start, int* indent,
                                  std::string* breaks) {
  int most = 0;
  while (true) {
    while ((*indent == 0 || mark_.column < *indent) && At() == ' ') Advance();
    if (mark_.column > most) most = mark_.column;
    if ((*indent == 0 || mark_.column < *indent) && At() == '\t') {
      return Fail(
          "found a tab character where an indentation space is expected",
          start);
    }
    if (!IsBreak()) break;
    TakeLine(breaks);
  }
  if (*indent > 0) return true;
  *indent = most;
  if (*indent < indent_ + 1) *indent = indent_ + 1;
  if (*indent < 1) *indent = 1;
  return true;
}

bool YamlScanner::FetchBlockScalar(bool literal) {
  if (!DropSimpleKey()) return false;
  key_allowed_ = true;
  const YamlMark start = mark_;
  Advance();
  int chomping = 0;
  int increment = 0;
  if (!ScanBlockHeader(start, &chomping, &increment)) return false;
  int indent = 0;
  if (increment > 0) indent = indent_ >= 0 ? indent_ + increment : increment;

  std::string value, leading, trailing;
  if (!ScanBlockBreaks(start, &indent, &trailing)) return false;
  bool leading_blank = false;
  while (mark_.column == indent && !IsEnd()) {
    const bool trailing_blank = IsBlank();
    if (!literal && !leading_blank && !trailing_blank && !leading.empty() &&
        leading.front() == '\n') {
      if (trailing.empty()) value.push_back(' ');
    } else {
      value += leading;
    }
    leading.clear();
    value += trailing;
    trailing.clear();
    leading_blank = IsBlank();
    while (!IsBreakOrEnd()) Take(&value);
    TakeLine(&leading);
    if (!ScanBlockBreaks(start, &indent, &trailing)) return false;
  }
  if (chomping != -1) value += leading;
  if (chomping == 1) value += trailing;
  Push(Type::kScalar, start);
  tokens_.back().value = std::move(value);
  return true;
}

// --- quoted scalars ---------------------------------------------------------

bool YamlScanner::ScanEscape(const YamlMark& start, std::string* value) {
  static constexpr struct {
    char escape;
    uint32_t code;
  } kEscapes[] = {
      {'0', 0},    {'a', 7},      {'b', 8},      {'t', 9},     {'\t', 9},
      {'n', 10},   {'v', 11},     {'f', 12},     {'r', 13},    {'e', 27},
      {' ', ' '},  {'"', '"'},    {'\'', '\''},  {'\\', '\\'}, {'N', 0x85},
      {'_', 0xa0}, {'L', 0x2028}, {'P', 0x2029},
  };
  const char escape = At(1);
  for (const auto& known : kEscapes) {
    if (known.escape != escape) continue;
    AppendUtf8(known.code, value);
    Advance(2);
    return true;
  }
  const int digits = escape == 'x' ? 2 : escape == 'u' ? 4 : 8;
  if (digits == 8 && escape != 'U') {
    return Fail("found unknown escape character", start);
  }
  Advance(2);
  uint64_t code = 0;
  for (int i = 0; i < digits; ++i) {
    const char c = At(static_cast<size_t>(i));
    if (!absl::ascii_isxdigit(c)) {
      return Fail("did not find expected hexdecimal number", start);
    }
    code = code << 4 |
           static_cast<uint64_t>(absl::ascii_isdigit(c)
                                     ? c - '0'
                                     : absl::ascii_tolower(c) - 'a' + 10);
  }
  if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) {
    return Fail("found invalid Unicode character escape code", start);
  }
  AppendUtf8(static_cast<uint32_t>(code), value);
  Advance(static_cast<size_t>(digits));
  return true;
}

// Takes a blank or a line break between two words of a scalar.
void YamlScanner::TakeSpace(bool* at_line_start, std::string* blanks,
                            std::string* leading, std::string* trailing) {
  if (IsBlank() && *at_line_start) {
    Advance();
  } else if (IsBlank()) {
    Take(blanks);
  } else if (*at_line_start) {
    TakeLine(trailing);
  } else {
    blanks->clear();
    TakeLine(leading);
    *at_line_start = true;
  }
}

bool YamlScanner::FetchQuoted(char quote) {
  if (!SaveSimpleKey()) return false;
  key_allowed_ = false;
  const bool single = quote == '\'';
  const YamlMark start = mark_;
  Advance();
  std::string value, leading, trailing, blanks;
  while (true) {
    if (IsDocumentMarker('-') || IsDocumentMarker('.')) {
      return Fail("found unexpected document indicator", start);
    }
    if (IsEnd()) return Fail("found unexpected end of stream", start);
    bool at_line_start = false;
    while (!IsBlankOrEnd()) {
      if (single && At() == '\'' && At(1) == '\'') {
        value.push_back('\'');
        Advance(2);
      } else if (At() == quote) {
        break;
      } else if (!single && At() == '\\' && IsBreak(1)) {
        Advance();
        AdvanceLine();
        at_line_start = true;
        break;
      } else if (!single && At() == '\\') {
        if (!ScanEscape(start, &value)) return false;
      } else {
        Take(&value);
      }
    }
    if (At() == quote) break;
    while (IsBlank() || IsBreak()) {
      TakeSpace(&at_line_start, &blanks, &leading, &trailing);
    }
    if (at_line_start) {
      Fold(&leading, &trailing, &value);
    } else {
      value += blanks;
      blanks.clear();
    }
  }
  Advance();
  Push(Type::kScalar, start);
  tokens_.back().value = std::move(value);
  return true;
}

// --- plain scalars ----------------------------------------------------------

// Whether the plain scalar ends at this character: at `: `, and in a flow
// collection at each of its indicators, of which `?` is one.
bool YamlScanner::AtTokenEnd() {
  if (At() == ':' && IsBlankOrEnd(1)) return true;
  return keys_.size() > 1 && IsFlowIndicator();
}

bool YamlScanner::FetchPlain() {
  if (!SaveSimpleKey()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  const bool block = keys_.size() == 1;
  const int indent = indent_ + 1;
  std::string value, leading, trailing, blanks;
  bool at_line_start = false;
  while (true) {
    if (IsDocumentMarker('-') || IsDocumentMarker('.')) break;
    if (At() == '#') break;
    while (!IsBlankOrEnd() && !AtTokenEnd()) {
      if (at_line_start) {
        Fold(&leading, &trailing, &value);
        at_line_start = false;
      } else {
        value += blanks;
        blanks.clear();
      }
      Take(&value);
    }
    if (!IsBlank() && !IsBreak()) break;
    while (IsBlank() || IsBreak()) {
      if (at_line_start && mark_.column < indent && At() == '\t') {
        return Fail("found a tab character that violates indentation", start);
      }
      TakeSpace(&at_line_start, &blanks, &leading, &trailing);
    }
    if (block && mark_.column < indent) break;
  }
  Push(Type::kScalar, start);
  tokens_.back().value = std::move(value);
  tokens_.back().plain = true;
  if (at_line_start) key_allowed_ = true;
  return true;
}

}  // namespace fncache::text
