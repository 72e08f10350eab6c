// SPDX-License-Identifier: Apache-2.0
// YamlScanner: cuts YAML into tokens where the reference runner's YAML library
// (go-yaml version 2) cuts it.
//
// That library is a port of an early libyaml, and differs from today's: `?`
// ends a plain scalar in a flow collection, `\/` is no escape, and `%YAML 1.2`
// is refused. The same text must be accepted or refused whichever program
// renders. So this scanner follows its rules: tokens, simple keys, and the
// words of its errors.
//
// Any input is safe; time and memory are linear in it. Not thread-safe.
#ifndef FNCACHE_TEXT_YAML_SCANNER_H_
#define FNCACHE_TEXT_YAML_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace fncache::text {

// A position, all counted from 0.
struct YamlMark {
  size_t index = 0;  // of the character
  int line = 0;
  int column = 0;
};

struct YamlToken {
  enum class Type {
    kVersionDirective,
    kTagDirective,
    kDocumentStart,
    kDocumentEnd,
    kBlockListStart,
    kBlockMapStart,
    kBlockEnd,
    kFlowListStart,
    kFlowListEnd,
    kFlowMapStart,
    kFlowMapEnd,
    kBlockEntry,
    kFlowEntry,
    kKey,
    kValue,
    kAlias,
    kAnchor,
    kTag,
    kScalar,
    kStreamEnd,
  };
  Type type = Type::kStreamEnd;
  YamlMark start;
  // A scalar's text, an anchor's name, a tag's handle.
  std::string value;
  std::string suffix;  // of a tag; the prefix of a tag directive
  bool plain = false;  // a scalar without quotes, | and >
  int major = 0;       // of a version directive
  int minor = 0;
};

// Why a text is no YAML.
struct YamlFault {
  std::string problem;
  // Where it is, and where what it is part of begins. Both are 0:0 for bytes
  // that are no text.
  YamlMark at;
  YamlMark context;
  bool of_scanner = true;  // else of the parser

  // The reference's message: `yaml: line N: PROBLEM`. Its N is the fault's line
  // for the scanner and one less for the parser; a fault in the first line has
  // the context's, or none.
  std::string Message() const;
};

// The bytes of a character that begins with `lead`; 0 if none does.
size_t Utf8Width(char lead);
// Appends a code point's character, as its bits say.
void AppendUtf8(uint32_t code, std::string* text);

class YamlScanner {
 public:
  // UTF-8, or UTF-16 with a byte order mark. `bytes` may go away.
  explicit YamlScanner(absl::string_view bytes);
  YamlScanner(const YamlScanner&) = delete;
  YamlScanner& operator=(const YamlScanner&) = delete;

  // The next token, the same until Skip; null if there is a fault instead. The
  // last token is kStreamEnd.
  const YamlToken* Peek();
  void Skip();
  // Set once Peek returned null.
  const absl::optional<YamlFault>& fault() const { return fault_; }

 private:
  using Type = YamlToken::Type;

  // A token that turns out to be a key if `:` follows on its line.
  struct SimpleKey {
    bool possible = false;
    bool required = false;  // in block context at the map's own indentation
    bool awaited = true;    // whether its token waits for that `:`
    size_t token = 0;       // its number
    YamlMark mark;
  };

  void Decode(absl::string_view bytes);
  void DecodeUtf16(absl::string_view bytes, bool little_endian);

  char At(size_t offset = 0);
  bool IsBlank(size_t offset = 0);
  bool IsBreak(size_t offset = 0);
  bool IsEnd(size_t offset = 0);
  bool IsBlankOrEnd(size_t offset = 0);
  bool IsBreakOrEnd(size_t offset = 0);
  bool IsWord(size_t offset = 0);
  bool IsFlowIndicator();
  bool IsDocumentMarker(char c);
  bool AtTokenEnd();

  void Advance(size_t characters = 1);
  void AdvanceLine();
  void Take(std::string* into);
  void TakeLine(std::string* into);
  void SkipBlanks();
  void SkipComment();

  bool Fail(absl::string_view problem, const YamlMark& context);
  bool FetchMore();
  bool FetchNext();
  bool ScanToNext();
  size_t NextNumber() const;
  void Push(Type type, const YamlMark& start);
  // Before the token `number`, or last if that was skipped already.
  void Insert(size_t number, Type type, const YamlMark& start);

  bool IsPossible(SimpleKey* key, bool* possible);
  bool SaveSimpleKey();
  bool DropSimpleKey();
  bool Roll(int column, absl::optional<size_t> number, Type type,
            const YamlMark& mark);
  void Unroll(int column);

  bool FetchEnd();
  bool FetchDirective();
  bool FetchDocumentMarker(Type type);
  bool FetchFlowStart(Type type);
  bool FetchFlowEnd(Type type);
  bool FetchIndicator(Type type, bool key_allowed);
  bool OpenBlock(Type collection, absl::string_view not_allowed);
  bool FetchBlockEntry();
  bool FetchKey();
  bool FetchValue();
  bool FetchAnchor(Type type);
  bool FetchTag();
  bool FetchBlockScalar(bool literal);
  void TakeSpace(bool* at_line_start, std::string* blanks, std::string* leading,
                 std::string* trailing);
  bool FetchQuoted(char quote);
  bool FetchPlain();

  bool ScanVersion(const YamlMark& start, int* number);
  bool ScanTagHandle(bool directive, const YamlMark& start,
                     std::string* handle);
  bool ScanTagUri(bool directive, absl::string_view head, const YamlMark& start,
                  std::string* uri);
  bool ScanUriEscape(bool directive, const YamlMark& start, std::string* uri);
  bool ScanBlockHeader(const YamlMark& start, int* chomping, int* increment);
  bool ScanBlockBreaks(const YamlMark& start, int* indent, std::string* breaks);
  bool ScanEscape(const YamlMark& start, std::string* value);

  std::string text_;  // in UTF-8
  // If `unreadable_` is not empty, the text ends with bytes that are none, and
  // that is its fault once it is read so far.
  std::string unreadable_;
  bool reached_unreadable_ = false;
  size_t at_ = 0;
  YamlMark mark_;

  absl::optional<YamlFault> fault_;
  std::deque<YamlToken> tokens_;
  size_t taken_ = 0;  // tokens that were skipped
  bool ready_ = false;
  bool ended_ = false;

  int indent_ = -1;
  std::vector<int> indents_;
  std::vector<SimpleKey> keys_{1};  // of each flow level, the block's first
  bool key_allowed_ = true;
};

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_YAML_SCANNER_H_
