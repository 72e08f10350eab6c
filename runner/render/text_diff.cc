// SPDX-License-Identifier: Apache-2.0
#include "runner/render/text_diff.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fncache::runner::render {
namespace {

using Lines = std::vector<absl::string_view>;

// Unchanged lines that are shown around a change.
constexpr size_t kContext = 3;
// The table that finds common lines has a cell for each pair of lines. Beyond
// this number of cells (64 MB) all lines count as changed.
constexpr size_t kMostCells = size_t{16} << 20;

struct Line {
  char mark;  // ' ', '-' or '+'
  absl::string_view text;
};

Lines LinesOf(absl::string_view text) {
  if (text.empty()) return {};
  if (text.back() == '\n') text.remove_suffix(1);
  return absl::StrSplit(text, '\n');
}

// Appends the lines of a[from_a, end_a) and b[from_b, end_b), those that a
// longest common subsequence has once.
void Merge(const Lines& a, size_t from_a, size_t end_a, const Lines& b,
           size_t from_b, size_t end_b, std::vector<Line>* out) {
  const size_t rows = end_a - from_a;
  const size_t columns = end_b - from_b;
  std::vector<uint32_t> table;
  const bool fits =
      rows == 0 || columns == 0 || (rows + 1) <= kMostCells / (columns + 1);
  size_t i = 0;
  size_t j = 0;
  if (fits) {
    // The length for what follows row i and column j.
    table.assign((rows + 1) * (columns + 1), 0);
    const auto at = [&](size_t row, size_t column) -> uint32_t& {
      return table[row * (columns + 1) + column];
    };
    for (size_t row = rows; row-- > 0;) {
      for (size_t column = columns; column-- > 0;) {
        at(row, column) =
            a[from_a + row] == b[from_b + column]
                ? at(row + 1, column + 1) + 1
                : std::max(at(row + 1, column), at(row, column + 1));
      }
    }
    while (i < rows && j < columns) {
      if (a[from_a + i] == b[from_b + j]) {
        out->push_back({' ', a[from_a + i]});
        ++i;
        ++j;
      } else if (at(i + 1, j) >= at(i, j + 1)) {
        out->push_back({'-', a[from_a + i++]});
      } else {
        out->push_back({'+', b[from_b + j++]});
      }
    }
  }
  for (; i < rows; ++i) out->push_back({'-', a[from_a + i]});
  for (; j < columns; ++j) out->push_back({'+', b[from_b + j]});
}

std::vector<Line> Compare(const Lines& a, const Lines& b) {
  const size_t shorter = std::min(a.size(), b.size());
  size_t head = 0;
  while (head < shorter && a[head] == b[head]) ++head;
  size_t tail = 0;
  while (tail < shorter - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<Line> lines;
  for (size_t i = 0; i < head; ++i) lines.push_back({' ', a[i]});
  Merge(a, head, a.size() - tail, b, head, b.size() - tail, &lines);
  for (size_t i = a.size() - tail; i < a.size(); ++i) {
    lines.push_back({' ', a[i]});
  }
  return lines;
}

// `-12,3`: the first line's number and how many there are, as diff(1) has it.
std::string Range(char mark, size_t before, size_t count) {
  return absl::StrCat(std::string(1, mark), count == 0 ? before : before + 1,
                      count == 1 ? "" : absl::StrCat(",", count));
}

}  // namespace

std::string TextDiff(absl::string_view before, absl::string_view after,
                     absl::string_view before_name,
                     absl::string_view after_name) {
  const Lines a = LinesOf(before);
  const Lines b = LinesOf(after);
  if (a == b) return "";
  const std::vector<Line> lines = Compare(a, b);
  std::string out =
      absl::StrCat("--- ", before_name, "\n+++ ", after_name, "\n");
  size_t line_a = 0;  // lines of each before lines[i]
  size_t line_b = 0;
  size_t i = 0;
  const auto pass = [&](const Line& line) {
    if (line.mark != '+') ++line_a;
    if (line.mark != '-') ++line_b;
  };
  while (i < lines.size()) {
    size_t change = i;
    while (change < lines.size() && lines[change].mark == ' ') ++change;
    if (change == lines.size()) break;
    const size_t first = change - std::min(kContext, change - i);
    for (; i < first; ++i) pass(lines[i]);
    // The hunk continues while changes are no farther apart than their context.
    size_t end = change;
    size_t quiet = 0;
    for (size_t k = change; k < lines.size() && quiet <= 2 * kContext; ++k) {
      quiet = lines[k].mark == ' ' ? quiet + 1 : 0;
      if (quiet == 0) end = k + 1;
    }
    end = std::min(lines.size(), end + kContext);
    const size_t start_a = line_a;
    const size_t start_b = line_b;
    std::string hunk;
    for (; i < end; ++i) {
      pass(lines[i]);
      absl::StrAppend(&hunk, std::string(1, lines[i].mark), lines[i].text,
                      "\n");
    }
    absl::StrAppend(&out, "@@ ", Range('-', start_a, line_a - start_a), " ",
                    Range('+', start_b, line_b - start_b), " @@\n", hunk);
  }
  return out;
}

}  // namespace fncache::runner::render
