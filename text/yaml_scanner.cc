// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_scanner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fncache::text {
namespace {

// A simple key and its `:` are on one line, and within this many characters.
constexpr size_t kMaxSimpleKey = 1024;
constexpr size_t kMaxDepth = 10000;

constexpr char kByteOrderMark[] = "\xef\xbb\xbf";

int HexDigit(char c) {
  if (!absl::ascii_isxdigit(c)) return -1;
  return absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10;
}

}  // namespace

std::string YamlFault::Message() const {
  int line = 0;
  if (at.line != 0) {
    line = at.line + (of_scanner ? 1 : 0);
  } else if (context.line != 0) {
    line = context.line;
  }
  return line == 0 ? absl::StrCat("yaml: ", problem)
                   : absl::StrCat("yaml: line ", line, ": ", problem);
}

bool YamlScanner::Fail(absl::string_view problem, const YamlMark& context) {
  if (fault_.has_value()) return false;
  fault_ = YamlFault{std::string(problem), mark_, context,
                     /*of_scanner=*/true};
  return false;
}

const YamlToken* YamlScanner::Peek() {
  if (!fault_.has_value() && !ready_) ready_ = FetchMore();
  if (reached_unreadable_) {
    fault_ = YamlFault{unreadable_, YamlMark(), YamlMark(), true};
  }
  return fault_.has_value() ? nullptr : &tokens_.front();
}

void YamlScanner::Skip() {
  if (tokens_.empty() || tokens_.front().type == Type::kStreamEnd) return;
  tokens_.pop_front();
  ++taken_;
  ready_ = false;
}

// Fetches until it is known what the first token is: as long as it may turn out
// to be a key, that is not so.
bool YamlScanner::FetchMore() {
  while (true) {
    if (!tokens_.empty()) {
      const auto key = std::lower_bound(
          keys_.begin(), keys_.end(), taken_,
          [](const SimpleKey& one, size_t token) { return one.token < token; });
      bool possible = false;
      for (auto at = key; at != keys_.end() && at->token == taken_; ++at) {
        if (!at->awaited) continue;
        if (!IsPossible(&*at, &possible)) return false;
        if (possible) break;
      }
      if (!possible) return true;
    }
    if (!FetchNext() || reached_unreadable_) return false;
  }
}

size_t YamlScanner::NextNumber() const { return taken_ + tokens_.size(); }

void YamlScanner::Push(Type type, const YamlMark& start) {
  tokens_.emplace_back();
  tokens_.back().type = type;
  tokens_.back().start = start;
}

void YamlScanner::Insert(size_t number, Type type, const YamlMark& start) {
  if (number < taken_) return Push(type, start);
  YamlToken token;
  token.type = type;
  token.start = start;
  tokens_.insert(tokens_.begin() + static_cast<ptrdiff_t>(number - taken_),
                 std::move(token));
}

bool YamlScanner::FetchNext() {
  // A second byte order mark is skipped, one further on is text.
  if (at_ == 0 && absl::StartsWith(text_, kByteOrderMark)) Advance();
  ScanToNext();
  Unroll(mark_.column);
  At(3);  // the reference wants so much of the text before it decides
  const bool flow = keys_.size() > 1;
  if (IsEnd()) return FetchEnd();
  if (mark_.column == 0 && At() == '%') return FetchDirective();
  if (IsDocumentMarker('-')) return FetchDocumentMarker(Type::kDocumentStart);
  if (IsDocumentMarker('.')) return FetchDocumentMarker(Type::kDocumentEnd);
  const char c = At();
  switch (c) {
    case '[':
      return FetchFlowStart(Type::kFlowListStart);
    case '{':
      return FetchFlowStart(Type::kFlowMapStart);
    case ']':
      return FetchFlowEnd(Type::kFlowListEnd);
    case '}':
      return FetchFlowEnd(Type::kFlowMapEnd);
    case ',':
      return FetchIndicator(Type::kFlowEntry, /*key_allowed=*/true);
    case '*':
      return FetchAnchor(Type::kAlias);
    case '&':
      return FetchAnchor(Type::kAnchor);
    case '!':
      return FetchTag();
    case '\'':
    case '"':
      return FetchQuoted(c);
    case '-':
      if (IsBlankOrEnd(1)) return FetchBlockEntry();
      break;
    case '?':
      if (flow || IsBlankOrEnd(1)) return FetchKey();
      break;
    case ':':
      if (flow || IsBlankOrEnd(1)) return FetchValue();
      break;
    case '|':
    case '>':
      if (!flow) return FetchBlockScalar(c == '|');
      break;
    default:
      break;
  }
  if (IsBlank() || absl::StrContains("#|>%@`", absl::string_view(&c, 1))) {
    return Fail("found character that cannot start any token", mark_);
  }
  return FetchPlain();
}

// Skips blanks, comments and line breaks. A tab does not indent: where a simple
// key may begin in block context, it is left.
bool YamlScanner::ScanToNext() {
  const bool flow = keys_.size() > 1;
  while (true) {
    while (At() == ' ' || (At() == '\t' && (flow || !key_allowed_))) Advance();
    SkipComment();
    if (!IsBreak()) return true;
    AdvanceLine();
    if (!flow) key_allowed_ = true;
  }
}

// --- keys and indentation ---------------------------------------------------

bool YamlScanner::IsPossible(SimpleKey* key, bool* possible) {
  *possible = key->possible;
  if (!key->possible) return true;
  if (key->mark.line >= mark_.line &&
      key->mark.index + kMaxSimpleKey >= mark_.index) {
    return true;
  }
  *possible = false;
  if (key->required) return Fail("could not find expected ':'", key->mark);
  key->possible = false;
  return true;
}

bool YamlScanner::SaveSimpleKey() {
  if (!key_allowed_) return true;
  const bool required = keys_.size() == 1 && indent_ == mark_.column;
  if (!DropSimpleKey()) return false;
  keys_.back() = {true, required, true, NextNumber(), mark_};
  return true;
}

bool YamlScanner::DropSimpleKey() {
  SimpleKey& key = keys_.back();
  if (key.possible && key.required) {
    return Fail("could not find expected ':'", key.mark);
  }
  key.possible = false;
  return true;
}

// Begins a block collection if `column` is further in than the present one.
// Its token comes before the token `number`, or last.
bool YamlScanner::Roll(int column, absl::optional<size_t> number, Type type,
                       const YamlMark& mark) {
  if (keys_.size() > 1 || indent_ >= column) return true;
  indents_.push_back(indent_);
  indent_ = column;
  if (indents_.size() > kMaxDepth) {
    return Fail(absl::StrCat("exceeded max depth of ", kMaxDepth),
                keys_.back().mark);
  }
  if (number.has_value()) {
    Insert(*number, type, mark);
  } else {
    Push(type, mark);
  }
  return true;
}

void YamlScanner::Unroll(int column) {
  if (keys_.size() > 1) return;
  while (indent_ > column) {
    Push(Type::kBlockEnd, mark_);
    indent_ = indents_.back();
    indents_.pop_back();
  }
}

// --- one token each ---------------------------------------------------------

bool YamlScanner::FetchEnd() {
  if (mark_.column != 0) {
    mark_.column = 0;
    ++mark_.line;
  }
  Unroll(-1);
  if (!DropSimpleKey()) return false;
  key_allowed_ = false;
  Push(Type::kStreamEnd, mark_);
  return true;
}

bool YamlScanner::FetchDocumentMarker(Type type) {
  Unroll(-1);
  if (!DropSimpleKey()) return false;
  key_allowed_ = false;
  Push(type, mark_);
  Advance(3);
  return true;
}

bool YamlScanner::FetchFlowStart(Type type) {
  if (!SaveSimpleKey()) return false;
  keys_.push_back({false, false, true, NextNumber(), mark_});
  if (keys_.size() - 1 > kMaxDepth) {
    return Fail(absl::StrCat("exceeded max depth of ", kMaxDepth), mark_);
  }
  key_allowed_ = true;
  Push(type, mark_);
  Advance();
  return true;
}

bool YamlScanner::FetchFlowEnd(Type type) {
  if (!DropSimpleKey()) return false;
  if (keys_.size() > 1) {
    // The reference forgets an empty collection here, and so does not wait for
    // the `:` behind it, as it does behind any other key.
    const size_t token = keys_.back().token;
    keys_.pop_back();
    for (SimpleKey& key : keys_) {
      if (key.token == token) key.awaited = false;
    }
  }
  key_allowed_ = false;
  Push(type, mark_);
  Advance();
  return true;
}

// Fetches an indicator of one character that ends a simple key.
bool YamlScanner::FetchIndicator(Type type, bool key_allowed) {
  if (!DropSimpleKey()) return false;
  key_allowed_ = key_allowed;
  Push(type, mark_);
  Advance();
  return true;
}

// Opens a block collection at an indicator, if it is the first in one.
bool YamlScanner::OpenBlock(Type collection, absl::string_view not_allowed) {
  if (keys_.size() > 1) return true;
  if (!key_allowed_) return Fail(not_allowed, mark_);
  return Roll(mark_.column, absl::nullopt, collection, mark_);
}

bool YamlScanner::FetchBlockEntry() {
  return OpenBlock(Type::kBlockListStart,
                   "block sequence entries are not allowed in this context") &&
         FetchIndicator(Type::kBlockEntry, /*key_allowed=*/true);
}

bool YamlScanner::FetchKey() {
  return OpenBlock(Type::kBlockMapStart,
                   "mapping keys are not allowed in this context") &&
         FetchIndicator(Type::kKey, /*key_allowed=*/keys_.size() == 1);
}

bool YamlScanner::FetchValue() {
  SimpleKey* const key = &keys_.back();
  bool possible = false;
  if (!IsPossible(key, &possible)) return false;
  if (possible) {
    Insert(key->token, Type::kKey, key->mark);
    if (!Roll(key->mark.column, key->token, Type::kBlockMapStart, key->mark)) {
      return false;
    }
    key->possible = false;
    key_allowed_ = false;
  } else {
    if (!OpenBlock(Type::kBlockMapStart,
                   "mapping values are not allowed in this context")) {
      return false;
    }
    key_allowed_ = keys_.size() == 1;
  }
  Push(Type::kValue, mark_);
  Advance();
  return true;
}

bool YamlScanner::FetchAnchor(Type type) {
  if (!SaveSimpleKey()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  Advance();
  std::string name;
  while (IsWord()) Take(&name);
  const char after = At();
  if (name.empty() ||
      !(IsBlankOrEnd() ||
        absl::StrContains("?:,]}%@`", absl::string_view(&after, 1)))) {
    return Fail("did not find expected alphabetic or numeric character", start);
  }
  Push(type, start);
  tokens_.back().value = std::move(name);
  return true;
}

bool YamlScanner::FetchDirective() {
  Unroll(-1);
  if (!DropSimpleKey()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  Advance();
  std::string name;
  while (IsWord()) Take(&name);
  if (name.empty()) {
    return Fail("could not find expected directive name", start);
  }
  if (!IsBlankOrEnd()) {
    return Fail("found unexpected non-alphabetical character", start);
  }
  YamlToken token;
  token.start = start;
  if (name == "YAML") {
    token.type = Type::kVersionDirective;
    SkipBlanks();
    if (!ScanVersion(start, &token.major)) return false;
    if (At() != '.') {
      return Fail("did not find expected digit or '.' character", start);
    }
    Advance();
    if (!ScanVersion(start, &token.minor)) return false;
  } else if (name == "TAG") {
    token.type = Type::kTagDirective;
    SkipBlanks();
    if (!ScanTagHandle(true, start, &token.value)) return false;
    if (!IsBlank()) return Fail("did not find expected whitespace", start);
    SkipBlanks();
    if (!ScanTagUri(true, "", start, &token.suffix)) return false;
    if (!IsBlankOrEnd()) {
      return Fail("did not find expected whitespace or line break", start);
    }
  } else {
    return Fail("found unknown directive name", start);
  }
  SkipBlanks();
  SkipComment();
  if (!IsBreakOrEnd()) {
    return Fail("did not find expected comment or line break", start);
  }
  AdvanceLine();
  tokens_.push_back(std::move(token));
  return true;
}

bool YamlScanner::ScanVersion(const YamlMark& start, int* number) {
  int digits = 0;
  *number = 0;
  for (; absl::ascii_isdigit(At()); Advance()) {
    if (++digits > 2) return Fail("found extremely long version number", start);
    *number = *number * 10 + (At() - '0');
  }
  return digits > 0 || Fail("did not find expected version number", start);
}

bool YamlScanner::FetchTag() {
  if (!SaveSimpleKey()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  YamlToken token;
  token.type = Type::kTag;
  token.start = start;
  if (At(1) == '<') {
    Advance(2);
    if (!ScanTagUri(false, "", start, &token.suffix)) return false;
    if (At() != '>') return Fail("did not find the expected '>'", start);
    Advance();
  } else {
    if (!ScanTagHandle(false, start, &token.value)) return false;
    const bool handle = token.value.size() > 1 && token.value.back() == '!';
    if (!ScanTagUri(false, handle ? "" : token.value, start, &token.suffix)) {
      return false;
    }
    if (!handle) token.value = "!";
    // `!` alone is a tag of its own.
    if (!handle && token.suffix.empty()) std::swap(token.value, token.suffix);
  }
  if (!IsBlankOrEnd()) {
    return Fail("did not find expected whitespace or line break", start);
  }
  tokens_.push_back(std::move(token));
  return true;
}

bool YamlScanner::ScanTagHandle(bool directive, const YamlMark& start,
                                std::string* handle) {
  if (At() != '!') return Fail("did not find expected '!'", start);
  Take(handle);
  while (IsWord()) Take(handle);
  if (At() == '!') {
    Take(handle);
  } else if (directive && *handle != "!") {
    return Fail("did not find expected '!'", start);
  }
  return true;
}

// `head` is what was taken for a handle and is none: its `!` is not part of it.
bool YamlScanner::ScanTagUri(bool directive, absl::string_view head,
                             const YamlMark& start, std::string* uri) {
  bool any = !head.empty();
  *uri = std::string(head.substr(std::min<size_t>(1, head.size())));
  while (!IsEnd() &&
         (IsWord() ||
          absl::StrContains(";/?:@&=+$,.!~*'()[]%",
                            absl::string_view(text_.data() + at_, 1)))) {
    if (At() == '%') {
      if (!ScanUriEscape(directive, start, uri)) return false;
    } else {
      Take(uri);
    }
    any = true;
  }
  return any || Fail("did not find expected tag URI", start);
}

// One character of UTF-8, each of its octets as %XX.
bool YamlScanner::ScanUriEscape(bool /*directive*/, const YamlMark& start,
                                std::string* uri) {
  size_t left = 0;
  do {
    const int high = HexDigit(At(1));
    const int low = high < 0 ? -1 : HexDigit(At(2));
    if (At() != '%' || low < 0) {
      return Fail("did not find URI escaped octet", start);
    }
    const char octet = static_cast<char>(high << 4 | low);
    if (left == 0) {
      left = Utf8Width(octet);
      if (left == 0) {
        return Fail("found an incorrect leading UTF-8 octet", start);
      }
    } else if ((octet & 0xc0) != 0x80) {
      return Fail("found an incorrect trailing UTF-8 octet", start);
    }
    uri->push_back(octet);
    Advance(3);
  } while (--left > 0);
  return true;
}

}  // namespace fncache::text
