// SPDX-License-Identifier: Apache-2.0
#include "common/field_path.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace fncache {

bool NeedsQuotes(char c) {
  return c == '.' || c == '"' || c == '\\' || c == '*' || c == '[' ||
         c == ']' || absl::ascii_isspace(c) || absl::ascii_iscntrl(c);
}

bool IsAllDigits(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

std::string QuoteKey(absl::string_view key) {
  std::string out = "\"";
  for (const char c : key) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
  return out;
}

std::string SpellKey(absl::string_view key) {
  const bool bare = !key.empty() && !IsAllDigits(key) &&
                    std::none_of(key.begin(), key.end(), NeedsQuotes);
  return bare ? std::string(key) : QuoteKey(key);
}

std::string PathBelow(absl::string_view path, absl::string_view key) {
  return path.empty() ? SpellKey(key) : absl::StrCat(path, ".", SpellKey(key));
}

std::string PathOfElement(absl::string_view path, size_t index) {
  return absl::StrCat(path, "[", index, "]");
}

absl::StatusOr<std::string> TakeQuoted(absl::string_view* text) {
  std::string key;
  for (size_t at = 1; at < text->size(); ++at) {
    char c = (*text)[at];
    if (c == '"') {
      text->remove_prefix(at + 1);
      return key;
    }
    if (c == '\\') {
      c = ++at < text->size() ? (*text)[at] : '\0';
      if (c != '"' && c != '\\') {
        return absl::InvalidArgumentError(
            "a backslash in quotes stands before a quote or another backslash "
            "only");
      }
    }
    key += c;
  }
  return absl::InvalidArgumentError("a quote is not closed");
}

}  // namespace fncache
