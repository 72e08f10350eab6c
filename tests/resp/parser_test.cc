// SPDX-License-Identifier: Apache-2.0
#include "resp/parser.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fncache::resp {
namespace {

using Result = Parser::Result;

constexpr size_t kPlenty = 1 << 20;

Reply Read(absl::string_view bytes) {
  Parser parser;
  parser.Begin(kPlenty);
  EXPECT_EQ(parser.Feed(bytes), Result::kReply) << bytes;
  return parser.reply();
}

Result Feed(absl::string_view bytes, size_t max_bytes = kPlenty) {
  Parser parser;
  parser.Begin(max_bytes);
  return parser.Feed(bytes);
}

TEST(ParserTest, EachKindOfReplyIsRead) {
  EXPECT_EQ(Read("+OK\r\n").kind, Reply::Kind::kStatus);
  EXPECT_EQ(Read("+OK\r\n").text, "OK");
  EXPECT_EQ(Read("-ERR no\r\n").kind, Reply::Kind::kError);
  EXPECT_EQ(Read("-ERR no\r\n").text, "ERR no");
  EXPECT_EQ(Read(":-12\r\n").kind, Reply::Kind::kInteger);
  EXPECT_EQ(Read(":-12\r\n").integer, -12);
  EXPECT_EQ(Read("$3\r\na\r\n\r\n").kind, Reply::Kind::kText);
  EXPECT_EQ(Read("$3\r\na\r\n\r\n").text, "a\r\n");
  EXPECT_EQ(Read("$0\r\n\r\n").text, "");
  EXPECT_EQ(Read("$-1\r\n").kind, Reply::Kind::kNil);
  EXPECT_EQ(Read("*-1\r\n").kind, Reply::Kind::kNil);
  EXPECT_EQ(Read("*0\r\n").kind, Reply::Kind::kArray);
  const Reply array = Read("*3\r\n:1\r\n*2\r\n$-1\r\n+a\r\n$1\r\nb\r\n");
  ASSERT_EQ(array.elements.size(), 3);
  EXPECT_EQ(array.elements[0].integer, 1);
  ASSERT_EQ(array.elements[1].elements.size(), 2);
  EXPECT_EQ(array.elements[1].elements[1].text, "a");
  EXPECT_EQ(array.elements[2].text, "b");
}

TEST(ParserTest, AReplyInPiecesIsTheSame) {
  const std::string bytes = "*2\r\n*1\r\n$3\r\nabc\r\n:7\r\n";
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    Parser parser;
    parser.Begin(kPlenty);
    ASSERT_EQ(parser.Feed(bytes.substr(0, cut)), Result::kMore);
    ASSERT_EQ(parser.Feed(bytes.substr(cut)), Result::kReply);
    EXPECT_EQ(parser.reply().elements[0].elements[0].text, "abc");
    EXPECT_EQ(parser.reply().elements[1].integer, 7);
  }
}

TEST(ParserTest, OneReplyAfterTheOther) {
  Parser parser;
  for (int i = 0; i < 3; ++i) {
    parser.Begin(100);
    ASSERT_EQ(parser.Feed(absl::StrCat(":", i, "\r\n")), Result::kReply);
    EXPECT_EQ(parser.reply().integer, i);
  }
}

TEST(ParserTest, BytesAfterAReplyBreakIt) {
  EXPECT_EQ(Feed(":1\r\n:2\r\n"), Result::kBroken);
  EXPECT_EQ(Feed("$1\r\na\r\n$"), Result::kBroken);
}

TEST(ParserTest, NoResp2IsBroken) {
  for (const char* bytes :
       {"HTTP/1.1 400\r\n", "%1\r\n", "_\r\n", ":x\r\n", "$x\r\n", "$-2\r\n",
        "*-2\r\n", "$3\r\nabcde", "$9223372036854775807\r\n", ":\r\n",
        "*2147483648\r\n", "*1\r\nx\r\n"}) {
    Parser parser;
    parser.Begin(kPlenty);
    Result result = parser.Feed(bytes);
    if (result == Result::kMore) result = parser.Feed("more\r\n");
    // An announced length beyond all memory never gets its bytes.
    if (absl::string_view(bytes) == "$9223372036854775807\r\n") continue;
    EXPECT_EQ(result, Result::kBroken) << bytes;
    EXPECT_FALSE(parser.why().empty());
  }
}

TEST(ParserTest, SevenArraysNestAndNotMore) {
  std::string bytes;
  for (int i = 0; i < 7; ++i) bytes += "*1\r\n";
  EXPECT_EQ(Feed(bytes + ":1\r\n"), Result::kReply);
  for (int i = 0; i < 1000; ++i) bytes += "*1\r\n";
  EXPECT_EQ(Feed(bytes), Result::kBroken);
}

TEST(ParserTest, BytesAndElementsAreBounded) {
  const std::string text = "$10\r\n0123456789\r\n";
  EXPECT_EQ(Feed(text, text.size()), Result::kReply);
  EXPECT_EQ(Feed(text, text.size() - 1), Result::kBroken);
  std::string array = "*3\r\n";
  for (int i = 0; i < 3; ++i) array += ":1\r\n";
  EXPECT_EQ(Feed(array, array.size() + 3 * sizeof(Reply)), Result::kReply);
  EXPECT_EQ(Feed(array, array.size() + 3 * sizeof(Reply) - 1), Result::kBroken);
}

TEST(ParserTest, AnAnnouncedLengthTakesNoMemory) {
  for (const char* bytes : {"*2147483647\r\n", "$2147483647\r\nabc",
                            "*1\r\n*2147483647\r\n:1\r\n"}) {
    Parser parser;
    parser.Begin(kPlenty);
    EXPECT_EQ(parser.Feed(bytes), Result::kMore);
    EXPECT_LE(parser.reply().elements.capacity(), 1);
    EXPECT_LT(parser.reply().text.capacity(), 100);
  }
}

}  // namespace
}  // namespace fncache::resp
