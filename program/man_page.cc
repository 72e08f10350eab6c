// SPDX-License-Identifier: Apache-2.0
#include "program/man_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fncache::program {
namespace {

constexpr absl::string_view kUsage = "Usage: ";

// A line of text that troff would otherwise read as a request or an escape.
std::string Escaped(absl::string_view line) {
  std::string out;
  if (absl::StartsWith(line, ".") || absl::StartsWith(line, "'")) out = "\\&";
  for (const char c : line) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':  // else a hyphen, which a shell does not accept
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void Section(absl::string_view title, std::string* out) {
  absl::StrAppend(out, ".SH \"", Escaped(absl::AsciiStrToUpper(title)), "\"\n");
}

// Lines as they are, from the page's left edge on: a help text is 80 columns
// wide, and so may a page be.
void Verbatim(const std::vector<absl::string_view>& lines, std::string* out) {
  size_t first = 0;
  size_t end = lines.size();
  while (first < end && lines[first].empty()) ++first;
  while (end > first && lines[end - 1].empty()) --end;
  if (first == end) return;
  absl::StrAppend(out, ".in 0\n.nf\n");
  for (size_t i = first; i < end; ++i) {
    absl::StrAppend(out, lines[i].empty() ? ".sp" : Escaped(lines[i]), "\n");
  }
  absl::StrAppend(out, ".fi\n");
}

bool IsHeading(absl::string_view line) {
  return !line.empty() && !absl::ascii_isspace(line.front()) &&
         line.back() == ':' && line.size() < 40;
}

}  // namespace

std::string PrintManPage(const ManPage& page) {
  std::string out;
  absl::StrAppend(&out, ".TH ", Escaped(absl::AsciiStrToUpper(page.name)),
                  " 1 \"\" \"", Escaped(page.version), "\"\n");
  Section("Name", &out);
  absl::StrAppend(&out, Escaped(page.name), " \\- ", Escaped(page.purpose),
                  "\n");
  std::vector<absl::string_view> description;
  std::vector<absl::string_view> usage;
  std::string rest;
  std::vector<absl::string_view> lines;
  enum { kDescription, kSynopsis, kRest } part = kDescription;
  for (absl::string_view line : absl::StrSplit(page.help, '\n')) {
    if (part == kDescription && absl::ConsumePrefix(&line, kUsage)) {
      part = kSynopsis;
    }
    if (part == kSynopsis && line.empty()) part = kRest;
    if (part == kDescription) {
      description.push_back(line);
    } else if (part == kSynopsis) {
      usage.push_back(absl::StripLeadingAsciiWhitespace(line));
    } else if (IsHeading(line)) {
      Verbatim(lines, &rest);
      lines.clear();
      Section(line.substr(0, line.size() - 1), &rest);
    } else {
      lines.push_back(line);
    }
  }
  Verbatim(lines, &rest);
  Section("Synopsis", &out);
  Verbatim(usage, &out);
  Section("Description", &out);
  Verbatim(description, &out);
  absl::StrAppend(&out, rest);
  Section("See also", &out);
  absl::StrAppend(&out, Escaped(page.see_also), "\n");
  return out;
}

}  // namespace fncache::program
