// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/spelled_paths.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace fncache::runner::probe {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr size_t kLongestName = 128;
constexpr size_t kLongestGap = 24;
constexpr size_t kMostValues = 3;
// Quotes in quotes: a template in a YAML text in JSON.
constexpr int kMostNested = 4;

bool IsNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool BeginsName(char c) { return IsNameByte(c) && !absl::ascii_isdigit(c); }

// Names of fields, and keys of annotations and labels.
bool IsKey(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestName && BeginsName(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsNameByte(c) || c == '.' || c == '/' || c == '-';
         });
}

bool ConsistsOf(absl::string_view text, absl::string_view bytes) {
  return text.find_first_not_of(bytes) == text.npos;
}

class Scanner {
 public:
  void Scan(const Value& value) {
    if (value.has_string_value()) {
      Scan(value.string_value(), 0);
    } else if (value.has_struct_value()) {
      Scan(value.struct_value());
    } else if (value.has_list_value()) {
      for (const Value& one : value.list_value().values()) Scan(one);
    }
  }
  void Scan(const Struct& object) {
    std::map<std::string, const Value*> sorted;
    for (const auto& [key, value] : object.fields()) sorted[key] = &value;
    for (const auto& [key, value] : sorted) {
      Begin();
      if (IsKey(key)) Take({key, false, false});
      Scan(*value);
    }
  }

  std::vector<SpelledPath> TakePaths() { return std::move(paths_); }

 private:
  struct Word {
    std::string text;
    bool quoted;
    bool number;
  };

  void Begin() {
    current_.clear();
    last_quoted_ = false;
  }

  // The path that grows, or a new one.
  void Take(const Word& word) {
    if (paths_.size() >= kMostSpelledPaths) return;
    current_.push_back(word.text);
    last_quoted_ = word.quoted;
    const std::string name = absl::StrJoin(current_, "\n");
    const auto [at, added] = numbers_.try_emplace(name, paths_.size());
    if (added) paths_.push_back({current_, {}});
    path_ = at->second;
  }

  void TakeValue(const Word& word) {
    if (current_.empty()) return;
    std::vector<Value>& values = paths_[path_].values;
    Value value;
    double number = 0;
    if (word.number && absl::SimpleAtod(word.text, &number)) {
      value.set_number_value(number);
    } else {
      value.set_string_value(word.text);
    }
    const bool known =
        std::any_of(values.begin(), values.end(), [&](const Value& one) {
          return one.string_value() == value.string_value() &&
                 one.number_value() == value.number_value();
        });
    if (known || values.size() >= kMostValues) return;
    values.push_back(value);
    // A number is compared by its size, too.
    if (word.number && values.size() < kMostValues) {
      value.set_number_value(number + 1);
      values.push_back(value);
    }
  }

  // Whether the word continues the last one; `gap` is between them.
  bool Joins(absl::string_view gap, const Word& word) const {
    if (current_.empty() || gap.size() > kLongestGap) return false;
    const bool getter = current_.back() == "get" || current_.back() == "Get";
    if (word.quoted) {
      // Skip the end of the index or call before: `]["a"]`.
      gap.remove_prefix(std::min(gap.find_first_not_of(")]"), gap.size()));
      if (gap == "[" || gap == "?[" || (getter && gap == "(")) return true;
      // `dig "a" "b"`, `index $x "a" "b"`.
      return last_quoted_ && !gap.empty() && ConsistsOf(gap, " ,");
    }
    absl::string_view before = gap;
    if (before.empty() || before.back() != '.') return false;
    before.remove_suffix(1);
    if (!before.empty() && before.back() == '?') before.remove_suffix(1);
    if (before.empty()) return true;
    // The gap may end a call or an index: `, {}).`
    return ConsistsOf(before, ")], {}\"'") &&
           before.find_first_of(")]") != before.npos;
  }

  static bool Compares(absl::string_view gap) {
    return !gap.empty() && gap.size() <= kLongestGap &&
           ConsistsOf(gap, " =!<>()[],?");
  }

  void Add(absl::string_view gap, const Word& word) {
    if (Joins(gap, word)) {
      if (!current_.empty() &&
          (current_.back() == "get" || current_.back() == "Get")) {
        current_.pop_back();
      }
      Take(word);
      return;
    }
    if ((word.quoted || word.number) && Compares(gap)) TakeValue(word);
    if (word.number) return;
    Begin();
    Take(word);
  }

  void Scan(absl::string_view text, int nested) {
    Begin();
    size_t end = 0;  // of the last word
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      const absl::string_view gap = text.substr(end, i - end);
      if (c == '\n') {
        Begin();
        end = ++i;
      } else if (BeginsName(c)) {
        size_t to = i;
        while (to < text.size() && IsNameByte(text[to])) ++to;
        if (to - i <= kLongestName) {
          Add(gap, {std::string(text.substr(i, to - i)), false, false});
        }
        end = i = to;
      } else if (absl::ascii_isdigit(static_cast<unsigned char>(c))) {
        size_t to = i;
        while (to < text.size() && (IsNameByte(text[to]) || text[to] == '.')) {
          ++to;
        }
        Add(gap, {std::string(text.substr(i, to - i)), false, true});
        end = i = to;
      } else if (c == '"' || c == '\'' || c == '`') {
        i = Quoted(text, i, gap, nested);
        end = i;
      } else if (c == '[' && end == i && end > 0) {
        i = Bracketed(text, i);
        if (i == end) ++i;  // of an index or a quoted key
        if (i > end + 1) end = i;
      } else {
        ++i;
      }
    }
  }

  // Returns the position at which to continue.
  size_t Quoted(absl::string_view text, size_t at, absl::string_view gap,
                int nested) {
    size_t to = at + 1;
    while (to < text.size() && text[to] != text[at] && text[to] != '\n') {
      to += text[to] == '\\' ? 2 : 1;
    }
    if (to >= text.size() || text[to] != text[at]) return at + 1;
    const absl::string_view inside = text.substr(at + 1, to - at - 1);
    if (IsKey(inside) && inside.find('.') != inside.npos &&
        inside.find('/') == inside.npos && !Joins(gap, {"", true, false})) {
      // A whole path in quotes.
      Begin();
      for (const absl::string_view name : absl::StrSplit(inside, '.')) {
        if (!name.empty()) Take({std::string(name), true, false});
      }
    } else if (IsKey(inside)) {
      Add(gap, {std::string(inside), true, false});
    } else {
      if (inside.size() <= kLongestName && Compares(gap)) {
        TakeValue({std::string(inside), true, false});
      }
      if (nested < kMostNested) Scan(inside, nested + 1);
      Begin();
    }
    return to + 1;
  }

  // A key in brackets without quotes, as patches have it: `[example.org/x]`.
  size_t Bracketed(absl::string_view text, size_t at) {
    const size_t to = text.find_first_of("]\n\"'", at);
    if (to == text.npos || text[to] != ']') return at;
    const absl::string_view inside = text.substr(at + 1, to - at - 1);
    if (!IsKey(inside) || inside.find('/') == inside.npos) return at;
    Take({std::string(inside), false, false});
    return to + 1;
  }

  std::vector<std::string> current_;  // the path that the last word ended
  size_t path_ = 0;                   // its number
  bool last_quoted_ = false;
  std::map<std::string, size_t> numbers_;
  std::vector<SpelledPath> paths_;
};

}  // namespace

std::vector<SpelledPath> SpelledPaths(const Struct& input) {
  Scanner scanner;
  scanner.Scan(input);
  return scanner.TakePaths();
}

}  // namespace fncache::runner::probe
