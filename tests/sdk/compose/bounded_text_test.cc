// SPDX-License-Identifier: Apache-2.0
#include "sdk/compose/bounded_text.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fncache::sdk {
namespace {

TEST(BoundedText, IsCutAfterAWholeItem) {
  EXPECT_EQ(Bounded("of: ", {"a", "b"}, ", "), "of: a, b");
  EXPECT_EQ(Bounded("", {}, ", "), "");
  EXPECT_EQ(Bounded("", {"aaaaaaaa", "bbbbbbbb", "cc"}, "; ", 24),
            "aaaaaaaa; bbbbbbbb; cc");
  EXPECT_EQ(Bounded("", {"aaaaaaaa", "bbbbbbbb", "cccccc"}, "; ", 24),
            "aaaaaaaa; and 2 more");
}

TEST(BoundedText, AnItemThatDoesNotFitAloneIsCut) {
  EXPECT_EQ(Bounded("", {std::string(30, 'a')}, "; ", 20),
            std::string(17, 'a') + "...");
  EXPECT_EQ(Bounded("", {std::string(30, 'a'), "b"}, "; ", 30),
            std::string(15, 'a') + "...; and 1 more");
}

TEST(BoundedText, IsCutAfterAWholeCharacter) {
  EXPECT_EQ(Clip("aéé", 5), "aéé");
  EXPECT_EQ(Clip("aééé", 6), "aé...");
  EXPECT_EQ(Clip("ééé", 5), "é...");
}

TEST(BoundedText, TheGraphIsCutBeforeTheWaits) {
  const std::string item(900, 'i');
  EXPECT_EQ(BoundedWaits({"a waits"}, {"b -> a", "c -> a"}),
            "a waits; graph: b -> a, c -> a");
  EXPECT_EQ(BoundedWaits({}, {"b -> a"}), "graph: b -> a");
  EXPECT_EQ(BoundedWaits({"a"}, {}), "a");
  EXPECT_EQ(BoundedWaits({item}, {std::string(80, 'e'), std::string(80, 'f')}),
            item + "; graph: " + std::string(80, 'e') + "; and 1 more");
  EXPECT_EQ(BoundedWaits({item}, {std::string(120, 'e')}),
            item + "; and 1 more");
  EXPECT_EQ(BoundedWaits({item, std::string(120, 'j')}, {"e"}),
            item + "; and 1 more");
  EXPECT_EQ(BoundedWaits({item, item}, {"e"}), item + "; and 1 more");
}

}  // namespace
}  // namespace fncache::sdk
