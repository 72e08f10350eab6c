// SPDX-License-Identifier: Apache-2.0
#include "cache/key/hint.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace fncache::cache::key {
namespace {

absl::Status Refused(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

bool IsTokenCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("!#$%&'*+-.^_`|~:/").find(c) !=
             absl::string_view::npos;
}

// Reads structured fields (RFC 9651, section 4.2). Each Take removes what it
// read from the front; false if the text is not such a thing.
class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  bool Take(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void SkipSpaces(bool tabs) {
    while (!text_.empty() && (text_[0] == ' ' || (tabs && text_[0] == '\t'))) {
      text_.remove_prefix(1);
    }
  }

  bool TakeKey(absl::string_view* key) {
    if (text_.empty() || !(absl::ascii_islower(text_[0]) || text_[0] == '*')) {
      return false;
    }
    return TakeWhile(
        [](char c) {
          return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' ||
                 c == '-' || c == '.' || c == '*';
        },
        key);
  }
  bool TakeString(std::string* string) {
    if (!Take('"')) return false;
    while (!text_.empty()) {
      char c = text_[0];
      text_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\') {
        if (text_.empty() || (text_[0] != '"' && text_[0] != '\\')) {
          return false;
        }
        c = text_[0];
        text_.remove_prefix(1);
      } else if (c < 0x20 || c > 0x7e) {
        return false;
      }
      string->push_back(c);
    }
    return false;
  }
  bool TakeBoolean(bool* value) {
    if (!Take('?')) return false;
    *value = Take('1');
    return *value || Take('0');
  }
  // Any value but an inner list.
  bool SkipItem() {
    if (text_.empty()) return false;
    const char c = text_[0];
    std::string string;
    bool boolean;
    absl::string_view rest;
    if (c == '"') return TakeString(&string);
    if (c == '?') return TakeBoolean(&boolean);
    if (c == '%') return SkipDisplayString();
    if (c == ':') return SkipBytes();
    if (c == '@') {
      text_.remove_prefix(1);
      return SkipNumber(/*fraction=*/false);
    }
    if (c == '-' || absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      return SkipNumber(/*fraction=*/true);
    }
    if (c != '*' && !absl::ascii_isalpha(static_cast<unsigned char>(c))) {
      return false;
    }
    return TakeWhile(IsTokenCharacter, &rest);
  }
  bool SkipParameters() {
    while (Take(';')) {
      SkipSpaces(/*tabs=*/false);
      absl::string_view key;
      if (!TakeKey(&key) || (Take('=') && !SkipItem())) return false;
    }
    return true;
  }
  // Calls `item`, which takes one item without its parameters, for each.
  template <typename Item>
  bool TakeInnerList(Item item) {
    if (!Take('(')) return false;
    while (true) {
      SkipSpaces(/*tabs=*/false);
      if (Take(')')) return SkipParameters();
      if (!item() || !SkipParameters()) return false;
      // A space is between items.
      if (text_.empty() || (text_[0] != ' ' && text_[0] != ')')) return false;
    }
  }
  bool AtList() const { return !text_.empty() && text_[0] == '('; }

 private:
  template <typename Is>
  bool TakeWhile(Is is, absl::string_view* taken) {
    size_t size = 0;
    while (size < text_.size() && is(text_[size])) ++size;
    *taken = text_.substr(0, size);
    text_.remove_prefix(size);
    return size > 0;
  }
  size_t TakeDigits() {
    absl::string_view digits;
    TakeWhile([](char c) { return absl::ascii_isdigit(c); }, &digits);
    return digits.size();
  }
  bool SkipNumber(bool fraction) {
    Take('-');
    const size_t digits = TakeDigits();
    if (digits == 0 || digits > 15) return false;
    if (!fraction || !Take('.')) return true;
    const size_t decimals = TakeDigits();
    return digits <= 12 && decimals >= 1 && decimals <= 3;
  }
  bool SkipBytes() {
    absl::string_view base64;
    Take(':');
    TakeWhile(
        [](char c) {
          return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                 c == '+' || c == '/' || c == '=';
        },
        &base64);
    return Take(':');
  }
  bool SkipDisplayString() {
    Take('%');
    if (!Take('"')) return false;
    absl::string_view text;
    TakeWhile([](char c) { return c >= 0x20 && c <= 0x7e && c != '"'; }, &text);
    return Take('"');
  }

  absl::string_view text_;
};

// The memory of a trie.
size_t MemoryOf(const MaskNode& node) {
  size_t bytes = sizeof(node);
  for (const MaskNode::Child& child : node.named) {
    bytes += sizeof(child) + child.name.capacity() + MemoryOf(*child.node);
  }
  if (node.any != nullptr) bytes += MemoryOf(*node.any);
  return bytes;
}

// Whether a path is at, below or above one that the trie has from `at` on.
bool Meets(const MaskNode& node, const MaskPath& path, size_t at) {
  if (node.masked || at == path.size()) return true;
  if (!path[at].any) {
    const MaskNode* const below = node.Find(path[at].name);
    return below != nullptr && Meets(*below, path, at + 1);
  }
  if (node.any != nullptr && Meets(*node.any, path, at + 1)) return true;
  return std::any_of(node.named.begin(), node.named.end(),
                     [&](const MaskNode::Child& child) {
                       return Meets(*child.node, path, at + 1);
                     });
}

}  // namespace

bool Hint::Counts(const MaskPath& path) const {
  const size_t object = HideableObject(path);
  if (object == 0) return true;
  // A mask names single fields of these.
  if (path.size() == object + 1 && !path[object].any &&
      (path[object].name == "spec" || path[object].name == "metadata")) {
    return true;
  }
  return root() != nullptr && Meets(*root(), path, 0);
}

bool Hint::Counts(absl::string_view path) const {
  const auto read = ReadMaskPath(path);
  return !read.ok() || Counts(*read);
}

absl::StatusOr<Hint> Hint::Parse(absl::Span<const absl::string_view> values) {
  size_t bytes = 0;
  for (const absl::string_view value : values) bytes += value.size();
  if (bytes > kMostBytes) {
    return Refused(absl::StrCat("has more than ", kMostBytes, " bytes"));
  }
  // Several fields of one name are one list (RFC 9110, 5.2).
  std::string text;
  for (const absl::string_view value : values) {
    absl::StrAppend(&text, text.empty() ? "" : ",", value);
  }
  Hint hint;
  absl::optional<std::vector<std::string>> reads;
  absl::optional<bool> pure;
  const absl::Status broken = Refused("is no dictionary of RFC 9651");
  Reader in(text);
  in.SkipSpaces(/*tabs=*/false);
  while (true) {
    absl::string_view key;
    if (!in.TakeKey(&key)) return broken;
    if ((key == "reads" && reads.has_value()) ||
        (key == "pure" && pure.has_value())) {
      return Refused(absl::StrCat("has `", key, "` twice"));
    }
    const bool is_true = !in.Take('=');
    if (key == "reads") {
      if (is_true || !in.AtList()) return Refused("`reads` is no list");
      reads.emplace();
      bool strings = true;
      const bool whole = in.TakeInnerList([&] {
        std::string path;
        if (!in.TakeString(&path)) return strings = false;
        reads->push_back(std::move(path));
        return true;
      });
      if (!whole) {
        return strings ? broken : Refused("`reads` has other than strings");
      }
      if (reads->size() > kMostPaths) {
        return Refused(absl::StrCat("has more than ", kMostPaths, " paths"));
      }
    } else if (key == "pure") {
      bool value = true;
      if (!is_true && !in.TakeBoolean(&value)) {
        return Refused("`pure` is no boolean");
      }
      pure = value;
      if (!in.SkipParameters()) return broken;
    } else if (is_true) {
      if (!in.SkipParameters()) return broken;
    } else if (in.AtList()) {
      if (!in.TakeInnerList([&] { return in.SkipItem(); })) return broken;
    } else if (!in.SkipItem() || !in.SkipParameters()) {
      return broken;
    }
    in.SkipSpaces(/*tabs=*/true);
    if (in.done()) break;
    if (!in.Take(',')) return broken;
    in.SkipSpaces(/*tabs=*/true);
  }
  if (!reads.has_value()) return Refused("has no `reads`");
  for (const std::string& path : *reads) {
    // It would be the name of a set of masks, and no field is called so.
    if (!path.empty() && path[0] == '@') return Refused("has a path with `@`");
  }
  auto set = MaskSet::Parse(*reads, MaskRules::kAnyPath);
  if (!set.ok()) {
    return Refused(set.status().message() == kTooManyMasks
                       ? "has too many paths with `*`"
                       : "has a path that no request has");
  }
  hint.reads_ = *std::move(set);
  hint.pure_ = pure.value_or(false);
  for (const std::string& path : hint.reads()) {
    hint.memory_ +=
        sizeof(path) + 2 * path.capacity() +
        std::count(path.begin(), path.end(), '.') * sizeof(MaskElement);
  }
  // The paths to drift, which nothing uses, are as many.
  if (hint.root() != nullptr) hint.memory_ += 2 * MemoryOf(*hint.root());
  if (hint.memory_ > kMostMemory) return Refused("has too many paths with `*`");
  return hint;
}

}  // namespace fncache::cache::key
