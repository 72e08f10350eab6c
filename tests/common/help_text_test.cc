// SPDX-License-Identifier: Apache-2.0
#include "common/help_text.h"

#include <string>

#include "gtest/gtest.h"

namespace fncache {
namespace {

std::string Row(const std::string& left, const std::string& text) {
  std::string row;
  AppendHelpRow(left, text, &row);
  return row;
}

TEST(HelpTextTest, LongNamesStandBelowEachOther) {
  EXPECT_EQ(FlagUsage({"-o", "--output"}, "FILE"), "  -o, --output FILE");
  EXPECT_EQ(FlagUsage({"--output"}, "FILE"), "      --output FILE");
  EXPECT_EQ(FlagUsage({"--check"}, ""), "      --check");
  EXPECT_EQ(FlagUsage({"-q"}, "N"), "  -q N");
}

TEST(HelpTextTest, TextsShareAColumnAndBeginWithACapital) {
  const std::string column(34, ' ');
  EXPECT_EQ(Row("  --a", "says it"),
            "  --a" + std::string(29, ' ') + "Says it\n");
  EXPECT_EQ(Row("  --a-name-that-needs-all-of-it N", "says it"),
            "  --a-name-that-needs-all-of-it N Says it\n");
  EXPECT_EQ(Row("  --a-name-that-needs-more-than-it", "says it"),
            "  --a-name-that-needs-more-than-it\n" + column + "Says it\n");
  EXPECT_EQ(Row("  --a", ""), "  --a\n");
  // Values and files stay as they are.
  EXPECT_EQ(Row("", "tls.crt and tls.key"), column + "tls.crt and tls.key\n");
  EXPECT_EQ(Row("", "auto: on a terminal"), column + "auto: on a terminal\n");
}

TEST(HelpTextTest, LinesEndBeforeTheLastColumn) {
  const std::string column(34, ' ');
  const std::string word(22, 'w');
  EXPECT_EQ(Row("", word + " " + word + "w " + word),
            column + "W" + word.substr(1) + " " + word + "w\n" + column + word +
                "\n");
  // Lines of the caller are none of their own.
  EXPECT_EQ(Row("", "one\ntwo"), column + "One two\n");
  // A word that is too long stands alone.
  EXPECT_EQ(
      Row("", "a " + std::string(90, 'x') + " b"),
      column + "A\n" + column + std::string(90, 'x') + "\n" + column + "b\n");
}

}  // namespace
}  // namespace fncache
