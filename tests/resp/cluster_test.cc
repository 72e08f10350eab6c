// SPDX-License-Identifier: Apache-2.0
#include "resp/cluster.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "resp/parser.h"

namespace fncache::resp {
namespace {

Reply Read(absl::string_view bytes) {
  Parser parser;
  parser.Begin(1 << 20);
  EXPECT_EQ(parser.Feed(bytes), Parser::Result::kReply);
  return parser.reply();
}

// A range with one master: `endpoint` is a bulk string or nil, in RESP2.
std::string Range(int first, int last, const std::string& endpoint,
                  const std::string& metadata = "*0\r\n") {
  return absl::StrCat("*3\r\n:", first, "\r\n:", last, "\r\n*4\r\n", endpoint,
                      ":7000\r\n$2\r\nid\r\n", metadata);
}

TEST(ClusterTest, SlotsAreThoseOfTheSpecification) {
  EXPECT_EQ(SlotOf("123456789"), 0x31C3);
  EXPECT_EQ(SlotOf("foo"), 12182);
  EXPECT_EQ(SlotOf("{user1000}.following"), SlotOf("user1000"));
  EXPECT_EQ(SlotOf("foo{}{bar}"), SlotOf("foo{}{bar}"));
  EXPECT_NE(SlotOf("foo{}{bar}"), SlotOf("bar"));
  EXPECT_EQ(SlotOf("foo{{bar}}zap"), SlotOf("{bar"));
  EXPECT_EQ(SlotOf("foo{bar}{zap}"), SlotOf("bar"));
  EXPECT_EQ(SlotOf("{"), SlotOf("{"));
}

TEST(ClusterTest, RedirectionsAreRead) {
  const auto moved = ParseRedirection("MOVED 3999 127.0.0.1:6381");
  ASSERT_TRUE(moved);
  EXPECT_FALSE(moved->ask);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->to.host, "127.0.0.1");
  EXPECT_EQ(moved->to.port, 6381);
  EXPECT_EQ(moved->to.name, "");
  const auto ask = ParseRedirection("ASK 0 node-1.example:1");
  ASSERT_TRUE(ask);
  EXPECT_TRUE(ask->ask);
  EXPECT_EQ(ask->to.name, "node-1.example");
  const auto six = ParseRedirection("MOVED 1 2001:db8::1:6379");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->to.host, "2001:db8::1");
  EXPECT_EQ(six->to.port, 6379);
  const auto same = ParseRedirection("MOVED 1 :6379");
  ASSERT_TRUE(same);
  EXPECT_EQ(same->to.host, "");
}

TEST(ClusterTest, OtherWordsAreNoRedirection) {
  for (const char* words :
       {"", "MOVED", "MOVED 1", "MOVED 16384 a:1", "MOVED -1 a:1",
        "MOVED x a:1", "MOVED 1 a", "MOVED 1 a:", "MOVED 1 a:0",
        "MOVED 1 a:65536", "MOVED 1 a:1 b", "moved 1 a:1", "ASKED 1 a:1",
        "MOVED 1 ?:1", "MOVED 1 a/b:1", "MOVED 1 u@b:1", "ERR MOVED 1 a:1"}) {
    EXPECT_FALSE(ParseRedirection(words)) << words;
  }
  EXPECT_FALSE(ParseRedirection("MOVED 1 " + std::string(300, 'a') + ":1"));
}

TEST(ClusterTest, SlotsWithEndpointsAndAnnouncedNames) {
  const auto ranges = ParseSlots(Read(absl::StrCat(
      "*5\r\n", Range(0, 9, "$9\r\n127.0.0.1\r\n"), Range(10, 10, "$-1\r\n"),
      Range(11, 12, "$0\r\n\r\n"), Range(20, 29, "$6\r\nname-a\r\n"),
      Range(30, 39, "$3\r\n::1\r\n",
            "*2\r\n$8\r\nhostname\r\n$3\r\nb.c\r\n"))));
  ASSERT_EQ(ranges.size(), 5);
  EXPECT_EQ(ranges[0].first, 0);
  EXPECT_EQ(ranges[0].last, 9);
  EXPECT_EQ(ranges[0].master.host, "127.0.0.1");
  EXPECT_EQ(ranges[0].master.port, 7000);
  EXPECT_EQ(ranges[0].master.name, "");
  EXPECT_EQ(ranges[1].master.host, "");
  EXPECT_EQ(ranges[2].master.host, "");
  EXPECT_EQ(ranges[3].master.name, "name-a");
  EXPECT_EQ(ranges[4].master.host, "::1");
  EXPECT_EQ(ranges[4].master.name, "b.c");
}

TEST(ClusterTest, RangesThatAreNoneAreLeftOut) {
  EXPECT_TRUE(ParseSlots(Read("+OK\r\n")).empty());
  EXPECT_TRUE(ParseSlots(Read("*2\r\n:1\r\n*0\r\n")).empty());
  for (const std::string& range :
       {Range(-1, 5, "$1\r\na\r\n"), Range(5, 4, "$1\r\na\r\n"),
        Range(0, 16384, "$1\r\na\r\n"), Range(0, 1, "$1\r\n?\r\n"),
        Range(0, 1, ":1\r\n")}) {
    EXPECT_TRUE(ParseSlots(Read("*1\r\n" + range)).empty()) << range;
  }
}

TEST(ClusterTest, RangesHaveNoMoreSlotsThanThereAre) {
  const std::string all = Range(0, 16383, "$1\r\na\r\n");
  EXPECT_EQ(ParseSlots(Read("*3\r\n" + all + all + all)).size(), 1);
}

}  // namespace
}  // namespace fncache::resp
