// SPDX-License-Identifier: Apache-2.0
#include "common/background_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

std::string DroppedLine(uint64_t count) {
  return absl::StrCat("dropped ", count, "\n");
}

// Reads until what it has ends so.
std::string ReadUntil(int fd, absl::string_view end) {
  std::string text;
  char buffer[4096];
  while (!absl::EndsWith(text, end)) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

TEST(BackgroundWriterTest, WritesWhatItIsGivenInOrder) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  // It has no end, by design, and neither has this.
  auto* const writer = new BackgroundWriter(ends[1], &DroppedLine);
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string line = absl::StrCat("line ", i, "\n");
    writer->Write(line);
    all += line;
  }
  writer->Flush(absl::InfiniteDuration());
  EXPECT_EQ(ReadUntil(ends[0], "line 99\n"), all);
}

TEST(BackgroundWriterTest, APipeThatNobodyReadsHoldsNobodyUp) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  auto* const writer = new BackgroundWriter(ends[1], &DroppedLine);
  const std::string line = std::string(1023, 'x') + "\n";
  constexpr size_t kLines = 4096;  // four times of what may wait
  for (size_t i = 0; i < kLines; ++i) writer->Write(line);
  const absl::Time before = absl::Now();
  writer->Flush(absl::Milliseconds(50));
  EXPECT_GE(absl::Now() - before, absl::Milliseconds(50));
  // When it is read again the rest comes, and where lines are missing one that
  // counts them. (Where the writer took what waited in between, at two places.)
  std::string text;
  size_t kept = 0;
  size_t dropped = 0;
  while (kept + dropped < kLines) {
    const size_t begin = text.size();
    text += ReadUntil(ends[0], "\n");
    ASSERT_GT(text.size(), begin);
    for (const absl::string_view one : absl::StrSplit(
             absl::string_view(text).substr(begin), '\n', absl::SkipEmpty())) {
      absl::string_view count = one;
      if (absl::ConsumePrefix(&count, "dropped ")) {
        size_t here = 0;
        ASSERT_TRUE(absl::SimpleAtoi(count, &here));
        dropped += here;
      } else {
        ASSERT_EQ(one.size() + 1, line.size());
        ++kept;
      }
    }
  }
  EXPECT_EQ(kept + dropped, kLines);
  EXPECT_GT(dropped, 0u);
  const size_t at = text.find("dropped ");
  EXPECT_GE(at, BackgroundWriter::kMostBytes - line.size());
}

}  // namespace
}  // namespace fncache
