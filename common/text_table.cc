// SPDX-License-Identifier: Apache-2.0
#include "common/text_table.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace fncache {

std::string TextTable(const std::vector<std::vector<std::string>>& rows,
                      const std::vector<bool>& right) {
  std::vector<size_t> widths(right.size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&line, "  ", right[i] ? pad : "", row[i],
                      right[i] ? "" : pad);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace fncache
