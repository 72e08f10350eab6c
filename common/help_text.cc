// SPDX-License-Identifier: Apache-2.0
#include "common/help_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace fncache {
namespace {

constexpr size_t kTextColumn = 34;

// The text with a capital letter first, unless it begins with a value or a
// file: `auto: ...`, `tls.crt, ...`.
std::string Capitalized(absl::string_view text) {
  std::string capitalized(text);
  for (const char c : text.substr(0, text.find_first_of(" \n"))) {
    if (!absl::ascii_isalpha(c)) return capitalized;
  }
  if (!text.empty()) capitalized[0] = absl::ascii_toupper(capitalized[0]);
  return capitalized;
}

}  // namespace

std::string FlagUsage(const std::vector<std::string>& names,
                      absl::string_view argument) {
  const bool only_long =
      names.size() == 1 && absl::StartsWith(names.front(), "--");
  return absl::StrCat("  ", only_long ? "    " : "", absl::StrJoin(names, ", "),
                      argument.empty() ? "" : " ", argument);
}

void AppendHelpRow(absl::string_view left, absl::string_view text,
                   std::string* out) {
  std::string line(left);
  if (line.size() >= kTextColumn) {
    absl::StrAppend(out, line, "\n");
    line.clear();
  }
  line.resize(kTextColumn, ' ');
  const std::string capitalized = Capitalized(text);
  bool first = true;
  for (const absl::string_view word :
       absl::StrSplit(capitalized, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (!first && line.size() + 1 + word.size() > kHelpColumns) {
      absl::StrAppend(out, line, "\n");
      line.assign(kTextColumn, ' ');
      first = true;
    }
    absl::StrAppend(&line, first ? "" : " ", word);
    first = false;
  }
  absl::StrAppend(out, absl::StripTrailingAsciiWhitespace(line), "\n");
}

}  // namespace fncache
