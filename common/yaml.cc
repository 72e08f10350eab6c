// SPDX-License-Identifier: Apache-2.0
#include "common/yaml.h"

#include <yaml.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/file.h"
#include "common/utf8.h"

namespace fncache {
namespace {

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// Keys are compared one by one; a file that people write has few.
constexpr size_t kMaxEntries = 1000;

constexpr char kAnchors[] = "anchors and aliases are not accepted";
constexpr char kTags[] = "tags are not accepted";
constexpr char kOpenList[] = "a list is not closed: ] is missing";
constexpr char kOpenMap[] = "a map is not closed: } is missing";
constexpr char kSeveral[] =
    "holds more than one document, or a list and a map on one level";

std::string Shown(absl::string_view text) {
  return absl::StrCat("\"", Printable(text.substr(0, 64)), "\"");
}

// Whether YAML allows the character, one of UTF-8, in a text (YAML 1.2.2, 5.1).
bool IsAllowed(absl::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) {
    return lead >= 0x20 ? lead != 0x7f
                        : lead == '\n' || lead == '\r' || lead == '\t';
  }
  if (lead == 0xc2) {  // U+0080 to U+009F are controls, but for a line's end
    const auto next = static_cast<unsigned char>(character[1]);
    return next >= 0xa0 || next == 0x85;
  }
  return character != kByteOrderMark && character != "\xef\xbf\xbe" &&
         character != "\xef\xbf\xbf";
}

// Whether the character would not come back as itself from a quoted text: it is
// not allowed there, or taken for a line's end and so for a space.
bool MustBeEscaped(absl::string_view character) {
  return !IsAllowed(character) || character == "\n" || character == "\r" ||
         character == "\t" || character == "\xc2\x85" ||
         character == "\xe2\x80\xa8" || character == "\xe2\x80\xa9";
}

// Returns the text from `mark`, which counts characters, to its end.
absl::string_view TextAt(absl::string_view text, const yaml_mark_t& mark) {
  for (size_t i = 0; i < mark.index && !text.empty(); ++i) {
    text.remove_prefix(Utf8CharacterBytes(text));
  }
  return text;
}

// Why a text cannot begin as the one at this place does.
std::string CannotBegin(absl::string_view rest) {
  if (absl::StartsWith(rest, "\t")) return "a tab in the indentation";
  if (absl::StartsWith(rest, "@") || absl::StartsWith(rest, "`")) {
    const absl::string_view word =
        rest.substr(0, rest.find_first_of(" \t\r\n,]}"));
    return absl::StrCat("YAML reserves ", word.substr(0, 1),
                        " at the start of a text: it needs quotes, ",
                        Shown(word));
  }
  return "text that starts like this needs quotes";
}

// libyaml's complaint where a value should begin.
constexpr char kNoContent[] = "did not find expected node content";

// libyaml's other complaints in words for those who write files.
struct Complaint {
  const char* problem;
  const char* words;
  // Whether what is wrong is where it began, not where that was noticed.
  bool at_context = false;
};

constexpr Complaint kComplaints[] = {
    {"did not find expected ',' or ']'", kOpenList, true},
    {"did not find expected ',' or '}'", kOpenMap, true},
    {"found unexpected end of stream", "a quoted text is not closed", true},
    {"found unexpected document indicator", "a quoted text is not closed",
     true},
    {"could not find expected ':'", "a key without a colon", true},
    {"mapping values are not allowed in this context",
     "a value where none may be (indentation, or text with `: ` that "
     "needs quotes)"},
    {"mapping keys are not allowed in this context",
     "a key where none may be (indentation)"},
    {"block sequence entries are not allowed in this context",
     "a list's `- ` where none may be"},
    {"did not find expected key",
     "a key, or less indentation, is missing here"},
    {"did not find expected '-' indicator",
     "a list's `- `, or less indentation, is missing here"},
    {"did not find expected <document start>", kSeveral},
    {"found unknown escape character", "an escape that is not accepted"},
    {"did not find expected hexdecimal number",
     "an escape that is not accepted"},
    {"found invalid Unicode character escape code",
     "an escape that is not accepted"},
    {"found a tab character where an indentation space is expected",
     "a tab in the indentation"},
    {"found a tab character that violates indentation",
     "a tab in the indentation"},
    {"found undefined tag handle", kTags},
};

// Builds the tree from libyaml's events, and stops at the first thing that is
// wrong.
class Reader {
 public:
  Reader(absl::string_view text, absl::string_view name)
      : text_(text), name_(name) {
    ready_ = yaml_parser_initialize(&parser_) != 0;
    if (!ready_) return;
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    // libyaml does not take the null pointer of an empty view.
    const char* const data = text.empty() ? "" : text.data();
    yaml_parser_set_input_string(
        &parser_, reinterpret_cast<const unsigned char*>(data), text.size());
  }
  ~Reader() {
    if (ready_) yaml_parser_delete(&parser_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  absl::StatusOr<YamlNode> Read() {
    if (!ready_) return absl::ResourceExhaustedError("out of memory");
    for (bool more = true; more;) {
      Event event;
      if (yaml_parser_parse(&parser_, &event.raw) == 0) return Problem();
      more = event.raw.type != YAML_STREAM_END_EVENT;
      absl::Status status = Take(event.raw);
      if (!status.ok()) return status;
    }
    return std::move(root_);
  }

 private:
  // An open list or map. In a map, keys and values alternate.
  struct Level {
    YamlNode node;
    bool has_key = false;
  };

  struct Event {
    Event() = default;
    ~Event() { yaml_event_delete(&raw); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    yaml_event_t raw = {};
  };

  absl::Status Error(const yaml_mark_t& mark, absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ":", mark.line + 1, ": ", why));
  }

  absl::Status NotClosed(const YamlNode& node) const {
    return absl::InvalidArgumentError(absl::StrCat(
        name_, ":", node.line, ": ",
        node.kind == YamlNode::Kind::kList ? kOpenList : kOpenMap));
  }

  absl::Status Problem() const {
    const absl::string_view problem =
        parser_.problem == nullptr ? "no YAML" : parser_.problem;
    const absl::string_view context =
        parser_.context == nullptr ? "" : parser_.context;
    const absl::string_view rest = TextAt(text_, parser_.problem_mark);
    if (problem == "found character that cannot start any token") {
      return Error(parser_.problem_mark, CannotBegin(rest));
    }
    if (problem == kNoContent && rest.empty() && !levels_.empty()) {
      return NotClosed(levels_.back().node);
    }
    if (problem == kNoContent) {
      const bool closes =
          absl::StartsWith(rest, "]") || absl::StartsWith(rest, "}");
      return Error(parser_.problem_mark,
                   closes ? "a ] or } closes what was not opened"
                          : "a value is missing here");
    }
    if (absl::EndsWith(context, " a tag")) {
      return Error(parser_.problem_mark, kTags);
    }
    if (absl::EndsWith(context, " an anchor") ||
        absl::EndsWith(context, " an alias")) {
      return Error(parser_.problem_mark, kAnchors);
    }
    for (const Complaint& complaint : kComplaints) {
      if (problem != complaint.problem) continue;
      const bool at_context = complaint.at_context && !context.empty();
      return Error(at_context ? parser_.context_mark : parser_.problem_mark,
                   complaint.words);
    }
    return Error(parser_.problem_mark, Printable(problem));
  }

  absl::Status Take(const yaml_event_t& event) {
    const yaml_mark_t& mark = event.start_mark;
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (has_document_) return Error(mark, kSeveral);
        has_document_ = true;
        return absl::OkStatus();
      case YAML_ALIAS_EVENT:
        return Error(mark, kAnchors);
      case YAML_SCALAR_EVENT:
        return TakeScalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return Open(mark, event.data.sequence_start.anchor,
                    event.data.sequence_start.tag, YamlNode::Kind::kList);
      case YAML_MAPPING_START_EVENT:
        return Open(mark, event.data.mapping_start.anchor,
                    event.data.mapping_start.tag, YamlNode::Kind::kMap);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: {
        YamlNode node = std::move(levels_.back().node);
        levels_.pop_back();
        Add(std::move(node));
        return absl::OkStatus();
      }
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_END_EVENT:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status TakeScalar(const yaml_event_t& event) {
    const yaml_mark_t& mark = event.start_mark;
    const auto& scalar = event.data.scalar;
    if (scalar.anchor != nullptr) return Error(mark, kAnchors);
    if (scalar.tag != nullptr) return Error(mark, kTags);
    const std::string text(reinterpret_cast<const char*>(scalar.value),
                           scalar.length);
    const bool quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE;
    const bool null =
        !quoted && (text.empty() || text == "~" || text == "null" ||
                    text == "Null" || text == "NULL");
    if (AtKey()) {
      return null ? Error(mark, "a key is missing") : StartEntry(mark, text);
    }
    YamlNode node =
        At(mark, null ? YamlNode::Kind::kNull : YamlNode::Kind::kScalar);
    if (!null) node.scalar = text;
    node.quoted = quoted;
    Add(std::move(node));
    return absl::OkStatus();
  }

  static YamlNode At(const yaml_mark_t& mark, YamlNode::Kind kind) {
    YamlNode node;
    node.kind = kind;
    node.line = static_cast<int>(mark.line) + 1;
    node.column = static_cast<int>(mark.column) + 1;
    return node;
  }

  bool AtKey() const {
    return !levels_.empty() &&
           levels_.back().node.kind == YamlNode::Kind::kMap &&
           !levels_.back().has_key;
  }

  absl::Status StartEntry(const yaml_mark_t& mark, const std::string& key) {
    Level& level = levels_.back();
    for (const YamlEntry& entry : level.node.entries) {
      if (entry.key != key) continue;
      return Error(mark, absl::StrCat("the key ", Shown(key),
                                      " is already on line ", entry.line));
    }
    if (level.node.entries.size() >= kMaxEntries) {
      return Error(mark,
                   absl::StrCat("a map of more than ", kMaxEntries, " keys"));
    }
    YamlEntry entry;
    entry.key = key;
    entry.line = static_cast<int>(mark.line) + 1;
    entry.column = static_cast<int>(mark.column) + 1;
    level.node.entries.push_back(std::move(entry));
    level.has_key = true;
    return absl::OkStatus();
  }

  absl::Status Open(const yaml_mark_t& mark, const yaml_char_t* anchor,
                    const yaml_char_t* tag, YamlNode::Kind kind) {
    if (anchor != nullptr) return Error(mark, kAnchors);
    if (tag != nullptr) return Error(mark, kTags);
    if (AtKey()) return Error(mark, "a key must be text");
    if (levels_.size() >= static_cast<size_t>(kMaxYamlDepth)) {
      return Error(mark, absl::StrCat("nested deeper than ", kMaxYamlDepth));
    }
    levels_.push_back({At(mark, kind)});
    return absl::OkStatus();
  }

  void Add(YamlNode node) {
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == YamlNode::Kind::kList) {
      level.node.items.push_back(std::move(node));
    } else {
      level.node.entries.back().value = std::move(node);
      level.has_key = false;
    }
  }

  const absl::string_view text_;
  const absl::string_view name_;
  bool ready_ = false;
  yaml_parser_t parser_ = {};
  bool has_document_ = false;
  std::vector<Level> levels_;
  YamlNode root_;
};

}  // namespace

const YamlNode* YamlNode::Find(absl::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

absl::StatusOr<YamlNode> ParseYaml(absl::string_view text,
                                   absl::string_view name) {
  if (text.size() > kMaxYamlBytes) {
    return absl::InvalidArgumentError(absl::StrCat(name, ":1: is over 1 MiB"));
  }
  int line = 1;
  absl::ConsumePrefix(&text, kByteOrderMark);
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t bytes = Utf8CharacterBytes(rest);
    const bool utf8 = bytes > 0;
    if (!utf8 || !IsAllowed(rest.substr(0, bytes))) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ":", line,
          utf8 ? ": holds a control character" : ": is not UTF-8"));
    }
    if (rest[0] == '\n') ++line;
    rest.remove_prefix(bytes);
  }
  return Reader(text, name).Read();
}

absl::StatusOr<YamlNode> ReadYamlFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxYamlBytes);
  if (!text.ok()) return text.status();
  return ParseYaml(*text, path);
}

std::string YamlScalar(absl::string_view text) {
  // Plain only where no reader of YAML could see anything but text... or the
  // boolean or number that the setting wants.
  bool plain = !text.empty() && text.size() < 200 &&
               (absl::ascii_isalnum(text.front()) || text.front() == '/') &&
               text.back() != ':';
  for (const char c : text) {
    plain = plain &&
            (absl::ascii_isalnum(c) ||
             absl::string_view("_./:@%+-").find(c) != absl::string_view::npos);
  }
  const std::string lower = absl::AsciiStrToLower(text);
  if (plain && lower != "null") {
    std::string same(text);
    return same;
  }
  std::string out = "\"";
  for (absl::string_view rest = text; !rest.empty();) {
    const absl::string_view character =
        rest.substr(0, std::max<size_t>(Utf8CharacterBytes(rest), 1));
    rest.remove_prefix(character.size());
    if (character == "\"" || character == "\\") {
      absl::StrAppend(&out, "\\", character);
    } else if (MustBeEscaped(character)) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x",
                    Utf8CodePoint(character));
      out += escaped;
    } else {
      absl::StrAppend(&out, character);
    }
  }
  return out += '"';
}

}  // namespace fncache
