// SPDX-License-Identifier: Apache-2.0
#include "common/nearest.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fncache {
namespace {

// More than any word that is compared has; longer texts resemble none.
constexpr size_t kLongest = 100;
constexpr size_t kMostSlips = 2;

// How many slips of the keyboard lie between the two: the distance of
// Damerau and Levenshtein, without changes inside of what changed places.
size_t Slips(absl::string_view a, absl::string_view b) {
  // The rows of the table for the prefixes of `a` that end at this character,
  // at the one before and at the one before that.
  std::vector<size_t> row(b.size() + 1);
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> two_before(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    two_before.swap(before);
    before.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min(
          {before[j] + 1, row[j - 1] + 1, before[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Nearest(absl::string_view text,
                    const std::vector<std::string>& words) {
  if (text.size() > kLongest) return "";
  std::string nearest;
  size_t least = kMostSlips + 1;
  for (const std::string& word : words) {
    const size_t slips = Slips(text, word);
    if (slips >= least || 3 * slips > word.size()) continue;
    least = slips;
    nearest = word;
  }
  return nearest;
}

std::string DidYouMean(absl::string_view text,
                       const std::vector<std::string>& words) {
  const std::string nearest = Nearest(text, words);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

}  // namespace fncache
