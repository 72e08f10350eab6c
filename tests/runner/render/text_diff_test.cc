// SPDX-License-Identifier: Apache-2.0
#include "runner/render/text_diff.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace fncache::runner::render {
namespace {

std::string Lines(int from, int to) {
  std::string text;
  for (int i = from; i <= to; ++i) absl::StrAppend(&text, i, "\n");
  return text;
}

TEST(TextDiffTest, EqualTextsHaveNone) {
  EXPECT_EQ(TextDiff("", "", "a", "b"), "");
  EXPECT_EQ(TextDiff("x\ny\n", "x\ny\n", "a", "b"), "");
  EXPECT_EQ(TextDiff("x\ny", "x\ny\n", "a", "b"), "");
}

TEST(TextDiffTest, ShowsThreeLinesAroundAChange) {
  EXPECT_EQ(TextDiff(Lines(1, 9), Lines(1, 4) + "five\n" + Lines(6, 9),
                     "old.yaml", "new.yaml"),
            "--- old.yaml\n+++ new.yaml\n@@ -2,7 +2,7 @@\n"
            " 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(TextDiffTest, MissingTextsAreAllOfTheOther) {
  EXPECT_EQ(TextDiff("", "x\ny\n", "a", "b"),
            "--- a\n+++ b\n@@ -0,0 +1,2 @@\n+x\n+y\n");
  EXPECT_EQ(TextDiff("x\n", "", "a", "b"), "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
}

TEST(TextDiffTest, ChangesFarApartAreHunksOfTheirOwn) {
  const std::string diff =
      TextDiff(Lines(1, 30), "zero\n" + Lines(1, 15) + Lines(17, 30), "a", "b");
  EXPECT_EQ(diff,
            "--- a\n+++ b\n@@ -1,3 +1,4 @@\n+zero\n 1\n 2\n 3\n"
            "@@ -13,7 +14,6 @@\n 13\n 14\n 15\n-16\n 17\n 18\n 19\n");
}

// The text that patch(1) would make of it.
std::string Patched(const std::string& before, const std::string& diff) {
  if (diff.empty()) return before;
  std::vector<std::string> old = absl::StrSplit(before, '\n');
  old.pop_back();
  std::vector<std::string> made;
  size_t next = 0;
  const std::vector<std::string> lines = absl::StrSplit(diff, '\n');
  for (size_t i = 2; i + 1 < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line[0] == '@') {
      const std::string range = line.substr(4, line.find(' ', 4) - 4);
      int start = std::atoi(range.c_str());
      if (range.find(",0") == std::string::npos) --start;
      for (; next < static_cast<size_t>(start); ++next) {
        made.push_back(old[next]);
      }
      continue;
    }
    if (line[0] != '+') {
      EXPECT_EQ(old[next++], line.substr(1));
    }
    if (line[0] != '-') made.push_back(line.substr(1));
  }
  for (; next < old.size(); ++next) made.push_back(old[next]);
  return made.empty() ? "" : absl::StrJoin(made, "\n") + "\n";
}

TEST(TextDiffTest, PatchingOneTextGivesTheOther) {
  unsigned state = 1;
  const auto random = [&state](unsigned below) {
    state = state * 1103515245 + 12345;
    return ((state >> 16) & 0x7fff) % below;
  };
  for (int round = 0; round < 500; ++round) {
    std::string texts[2];
    for (std::string& text : texts) {
      const unsigned count = random(25);
      for (unsigned i = 0; i < count; ++i) {
        absl::StrAppend(&text, random(4), "\n");
      }
    }
    const std::string diff = TextDiff(texts[0], texts[1], "a", "b");
    EXPECT_EQ(Patched(texts[0], diff), texts[1]) << diff;
  }
}

TEST(TextDiffTest, LargeTextsTakeBoundedMemory) {
  std::string before;
  std::string after;
  for (int i = 0; i < 9000; ++i) {
    absl::StrAppend(&before, "a", i, "\n");
    absl::StrAppend(&after, "b", i, "\n");
  }
  EXPECT_EQ(Patched(before, TextDiff(before, after, "a", "b")), after);
}

}  // namespace
}  // namespace fncache::runner::render
