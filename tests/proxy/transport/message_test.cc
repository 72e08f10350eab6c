// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/message.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace fncache::proxy::transport {
namespace {

using State = MessageCollector::State;

std::string Framed(const std::string& text, bool compressed = false) {
  return std::string(MessagePrefix(compressed, text.size()).bytes()) + text;
}

TEST(MessageTest, AnySplitCollectsTheSameMessage) {
  const std::string text = "a message of some bytes";
  const std::string framed = Framed(text, /*compressed=*/true);
  for (size_t step = 1; step <= framed.size(); ++step) {
    MessageCollector collector(100);
    for (size_t i = 0; i < framed.size(); i += step) {
      EXPECT_EQ(collector.state(), State::kNone);
      collector.Take(framed.substr(i, step));
    }
    ASSERT_EQ(collector.state(), State::kWhole) << step;
    const Message message = collector.Release();
    EXPECT_EQ(message.bytes(), text);
    EXPECT_TRUE(message.compressed());
  }
}

TEST(MessageTest, AnEmptyMessageIsOne) {
  MessageCollector collector(0);
  EXPECT_EQ(collector.Take(Framed("")), State::kWhole);
  const Message message = collector.Release();
  EXPECT_TRUE(message.valid());
  EXPECT_EQ(message.size(), 0u);
  EXPECT_FALSE(Message().valid());
}

TEST(MessageTest, WhatIsNoSingleMessageIsTold) {
  EXPECT_EQ(MessageCollector(10).Take(Framed("0123456789x")), State::kTooLarge);
  EXPECT_EQ(MessageCollector(10).Take(Framed("a") + Framed("b")),
            State::kSecond);
  EXPECT_EQ(MessageCollector(10).Take("\2"
                                      "abcd"),
            State::kBroken);
}

TEST(MessageTest, NoMoreIsHeldThanHasCome) {
  MessageCollector collector(~size_t{0});
  collector.Take(std::string("\0\xff\xff\xff\xff", 5));
  EXPECT_EQ(collector.held(), 0u);
  EXPECT_EQ(collector.missing(), 0xffffffffu);
}

// Bytes that may not come yet take no memory; bytes that may come have capacity
// at once.
TEST(MessageTest, RoomIsMadeForWhatIsBelievedOrExpected) {
  const std::string text(100'000, 'x');
  const std::string framed = Framed(text);
  MessageCollector collector(1 << 20, /*believed=*/1000);
  collector.Take(framed.substr(0, 10));
  EXPECT_GE(collector.room(), 1000u);
  EXPECT_LT(collector.room(), 4000u);
  collector.Take(framed.substr(10, 5000));
  EXPECT_LT(collector.room(), 20'000u);
  collector.Expect();
  EXPECT_GE(collector.room(), text.size());
  EXPECT_EQ(collector.Take(framed.substr(5010)), State::kWhole);
  EXPECT_EQ(collector.Release().bytes(), text);
}

// The bytes that a window of 64 KiB lets in need no more capacity than that.
TEST(MessageTest, AWholeWindowHasNoRoomForMore) {
  const std::string framed = Framed(std::string(1 << 20, 'x'));
  MessageCollector collector(1 << 20, /*believed=*/63 << 10);
  for (size_t i = 0; i < 64 << 10; i += 16 << 10) {
    collector.Take(framed.substr(i, 16 << 10));
  }
  EXPECT_EQ(collector.held(), (64u << 10) - kMessagePrefix);
  EXPECT_LT(collector.room(), 66'000u);
}

TEST(MessageTest, PassingMessagesAreCounted) {
  const std::string all = Framed("first") + Framed("") + Framed("third one");
  for (size_t step = 1; step <= all.size(); ++step) {
    MessageCounter counter;
    for (size_t i = 0; i < all.size(); i += step) {
      counter.Take(all.substr(i, step));
    }
    EXPECT_EQ(counter.begun(), 3u) << step;
  }
}

}  // namespace
}  // namespace fncache::proxy::transport
