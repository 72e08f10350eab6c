// SPDX-License-Identifier: Apache-2.0
#include "text/quoted.h"

#include "gtest/gtest.h"

namespace fncache::text {
namespace {

// The right-hand sides are what Go's fmt prints with %q.
TEST(QuotedTest, IsAsGoQuotes) {
  EXPECT_EQ(Quoted(""), R"("")");
  EXPECT_EQ(Quoted("render-buckets"), R"("render-buckets")");
  EXPECT_EQ(Quoted(R"(a "b" c\d)"), R"("a \"b\" c\\d")");
  EXPECT_EQ(Quoted("it's <a> & b"), R"("it's <a> & b")");
  EXPECT_EQ(Quoted("\a\b\t\n\v\f\r"), R"("\a\b\t\n\v\f\r")");
  EXPECT_EQ(Quoted(absl::string_view("\0\x01\x1F\x7F", 4)),
            R"("\x00\x01\x1f\x7f")");
}

TEST(QuotedTest, KeepsWhatPrintsBeyondAscii) {
  EXPECT_EQ(Quoted("gr\u00fc\u00dfe"), "\"gr\u00fc\u00dfe\"");
  EXPECT_EQ(Quoted("\u6771\u4eac"), "\"\u6771\u4eac\"");
  EXPECT_EQ(Quoted("\U0001F600"), "\"\U0001F600\"");
  EXPECT_EQ(Quoted("\uFFFD"), "\"\uFFFD\"");
}

TEST(QuotedTest, EscapesWhatDoesNotPrint) {
  EXPECT_EQ(Quoted("\u0085"), R"("\u0085")");
  EXPECT_EQ(Quoted("a\u00a0b\u00adc"), R"("a\u00a0b\u00adc")");
  EXPECT_EQ(Quoted("\u200b\u2028\u3000\ufeff"),
            R"("\u200b\u2028\u3000\ufeff")");
  EXPECT_EQ(Quoted("\ue000"), R"("\ue000")");
  EXPECT_EQ(Quoted("\U00100000"), R"("\U00100000")");
}

TEST(QuotedTest, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(Quoted("a\xFF\xC3z\x80"), R"("a\xff\xc3z\x80")");
  EXPECT_EQ(Quoted("\xED\xA0\x80"), R"("\xed\xa0\x80")");
}

}  // namespace
}  // namespace fncache::text
