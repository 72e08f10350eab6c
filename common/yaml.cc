#include "common/yaml.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/utf8.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace fncache {
namespace {

std::string Shown(absl::string_view text) {
  return absl::StrCat("\"", Printable(text.substr(0, 64)), "\"");
}

// Builds the tree from yaml-cpp's events. The first thing that is wrong is
// kept, and what follows it ignored.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(absl::string_view name) : name_(name) {}

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!Accepts(mark, anchor)) return;
    if (AtKey()) return Fail(mark, "a key is missing");
    Add(At(mark, YamlNode::Kind::kNull));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "anchors and aliases are not accepted");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    if (!Accepts(mark, anchor)) return;
    // "?" is plain, "!" quoted; anything else was written by the author.
    if (tag != "?" && tag != "!") return Fail(mark, "tags are not accepted");
    // The text was UTF-8, but yaml-cpp makes a lone byte of "\N" and "\_".
    if (!IsUtf8(value)) return Fail(mark, "an escape that is not accepted");
    if (AtKey()) return StartEntry(mark, value);
    YamlNode node = At(mark, YamlNode::Kind::kScalar);
    node.scalar = value;
    node.quoted = tag == "!";
    Add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

  void Fail(const YAML::Mark& mark, absl::string_view why) {
    if (!status_.ok()) return;
    // yaml-cpp counts from 0, and gives -1 where it knows no place.
    status_ = absl::InvalidArgumentError(
        absl::StrCat(name_, ":", std::max(mark.line, 0) + 1, ": ", why));
  }

  // What is no YAML at all explains best what was seen on the way there.
  void FailSyntax(const YAML::Mark& mark, absl::string_view why) {
    status_ = absl::OkStatus();
    Fail(mark, why);
  }

  const absl::Status& status() const { return status_; }
  const YAML::Mark& start() const { return start_; }
  YamlNode TakeRoot() { return std::move(root_); }

 private:
  // An open list or map. In a map, keys and values take turns.
  struct Level {
    YamlNode node;
    bool has_key = false;
  };

  static YamlNode At(const YAML::Mark& mark, YamlNode::Kind kind) {
    YamlNode node;
    node.kind = kind;
    node.line = std::max(mark.line, 0) + 1;
    node.column = std::max(mark.column, 0) + 1;
    return node;
  }

  bool Accepts(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      Fail(mark, "anchors and aliases are not accepted");
    }
    return status_.ok();
  }

  bool AtKey() const {
    return !levels_.empty() &&
           levels_.back().node.kind == YamlNode::Kind::kMap &&
           !levels_.back().has_key;
  }

  void StartEntry(const YAML::Mark& mark, const std::string& key) {
    Level& level = levels_.back();
    for (const YamlEntry& entry : level.node.entries) {
      if (entry.key != key) continue;
      return Fail(mark, absl::StrCat("the key ", Shown(key),
                                     " is already on line ", entry.line));
    }
    if (level.node.entries.size() >= kMaxEntries) {
      return Fail(mark,
                  absl::StrCat("a map of more than ", kMaxEntries, " keys"));
    }
    YamlEntry entry;
    entry.key = key;
    entry.line = std::max(mark.line, 0) + 1;
    entry.column = std::max(mark.column, 0) + 1;
    level.node.entries.push_back(std::move(entry));
    level.has_key = true;
  }

  void Open(const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor, YamlNode::Kind kind) {
    if (!Accepts(mark, anchor)) return;
    if (tag != "?" && tag != "!" && !tag.empty()) {
      return Fail(mark, "tags are not accepted");
    }
    if (AtKey()) return Fail(mark, "a key must be text");
    if (levels_.size() >= static_cast<size_t>(kMaxYamlDepth)) {
      return Fail(mark, absl::StrCat("nested deeper than ", kMaxYamlDepth));
    }
    levels_.push_back({At(mark, kind)});
  }

  void Close() {
    if (!status_.ok()) return;
    YamlNode node = std::move(levels_.back().node);
    levels_.pop_back();
    Add(std::move(node));
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

  // Keys are compared one by one; a file that people write has few.
  static constexpr size_t kMaxEntries = 1000;

  const absl::string_view name_;
  YAML::Mark start_;
  absl::Status status_;
  std::vector<Level> levels_;
  YamlNode root_;
};

// yaml-cpp's complaint in words for those who write files, on one line.
std::string SyntaxError(const std::string& complaint) {
  namespace said = YAML::ErrorMsg;
  const struct {
    const char* said;
    const char* meant;
  } kWords[] = {
      {said::END_OF_SEQ_FLOW, "a list is not closed: ] is missing"},
      {said::END_OF_MAP_FLOW, "a map is not closed: } is missing"},
      {said::FLOW_END, "a ] or } closes what was not opened"},
      {said::EOF_IN_SCALAR, "a quoted text is not closed"},
      {said::DOC_IN_SCALAR, "a quoted text is not closed"},
      {said::MAP_VALUE,
       "a value in a place that has none (indentation, or text with `: ` that "
       "needs quotes)"},
      {said::MAP_KEY, "a key in a place that has none (indentation)"},
      {said::BLOCK_ENTRY, "a list's `- ` in a place that has none"},
      {said::END_OF_MAP, "a key, or less indentation, is missing here"},
      {said::END_OF_SEQ, "a list's `- `, or less indentation, is missing here"},
      {said::TAB_IN_INDENTATION, "a tab in the indentation"},
      {said::UNKNOWN_TOKEN, "text that starts like this needs quotes"},
      {said::BAD_FILE, "nested deeper than accepted"},  // its DeepRecursion
      {said::UNKNOWN_ANCHOR, "anchors and aliases are not accepted"},
  };
  for (const auto& words : kWords) {
    if (complaint == words.said) return words.meant;
  }
  return Printable(complaint);
}

// What no plain text may begin with (YAML 1.2.2, 5.4), said with the text that
// does; empty if the place holds nothing of the kind.
std::string ReservedIndicator(absl::string_view text, int at) {
  if (at < 0 || static_cast<size_t>(at) >= text.size()) return "";
  const absl::string_view rest = text.substr(at);
  if (rest[0] != '@' && rest[0] != '`') return "";
  const absl::string_view word =
      rest.substr(0, rest.find_first_of(" \t\r\n,]}"));
  return absl::StrCat("YAML reserves ", word.substr(0, 1),
                      " at the start of a text: it needs quotes, ",
                      Shown(word));
}

// yaml-cpp's scanner recurses and searches in ways that grow with the depth of
// flow collections; what people write is nowhere near.
absl::Status CheckFlowDepth(absl::string_view text, absl::string_view name) {
  int depth = 0;
  int line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    // Brackets in quoted text count too; it takes many to matter.
    if (depth > 10 * kMaxYamlDepth) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ":", line, ": nested deeper than ", kMaxYamlDepth));
    }
  }
  return absl::OkStatus();
}

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
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t bytes = Utf8CharacterBytes(rest);
    const auto byte = static_cast<unsigned char>(rest[0]);
    const bool control =
        byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t';
    if (bytes == 0 || control) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ":", line,
          control ? ": holds a control character" : ": is not UTF-8"));
    }
    if (byte == '\n') ++line;
    rest.remove_prefix(bytes);
  }
  const absl::Status flow = CheckFlowDepth(text, name);
  if (!flow.ok()) return flow;

  Builder builder(name);
  try {
    const std::string copy(text);
    std::istringstream in(copy);
    YAML::Parser parser(in);
    if (parser.HandleNextDocument(builder) && builder.status().ok()) {
      Builder second(name);
      if (parser.HandleNextDocument(second)) {
        builder.Fail(second.start(),
                     "holds more than one document, or a list and a map on one "
                     "level");
      }
    }
  } catch (const YAML::Exception& error) {
    std::string why = ReservedIndicator(text, error.mark.pos);
    if (why.empty()) why = SyntaxError(error.msg);
    builder.FailSyntax(error.mark, why);
  }
  if (!builder.status().ok()) return builder.status();
  return builder.TakeRoot();
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
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out += '"';
}

}  // namespace fncache
