// SPDX-License-Identifier: Apache-2.0
#include "common/field_path.h"

#include "gtest/gtest.h"

namespace fncache {
namespace {

TEST(FieldPathTest, QuotesOnlyKeysThatAreNotPlain) {
  for (const char* const plain :
       {"spec", "resource-version", "example_org/zone", "a1", "@versions"}) {
    EXPECT_EQ(SpellKey(plain), plain);
  }
  EXPECT_EQ(SpellKey("example.org/zone"), R"("example.org/zone")");
  EXPECT_EQ(SpellKey(""), R"("")");
  EXPECT_EQ(SpellKey("42"), R"("42")");
  EXPECT_EQ(SpellKey("*"), R"("*")");
  EXPECT_EQ(SpellKey("a[0]"), R"("a[0]")");
  EXPECT_EQ(SpellKey("a b"), R"("a b")");
  EXPECT_EQ(SpellKey(R"(a"b\c)"), R"("a\"b\\c")");
}

TEST(FieldPathTest, WhatIsSpelledInQuotesIsReadBack) {
  for (const char* const key :
       {"", ".", "a.b", R"(")", R"(\)", R"(\\")", "\n", "42"}) {
    const std::string path = QuoteKey(key) + ".rest";
    absl::string_view rest = path;
    const absl::StatusOr<std::string> read = TakeQuoted(&rest);
    ASSERT_TRUE(read.ok()) << path;
    EXPECT_EQ(*read, key);
    EXPECT_EQ(rest, ".rest");
  }
}

TEST(FieldPathTest, AQuoteMustBeClosedAndEscapeNothingElse) {
  for (const char* const text :
       {R"(")", R"("a)", R"("a\")", R"("a\)", R"("a\n")", R"("a\.")"}) {
    absl::string_view rest = text;
    EXPECT_FALSE(TakeQuoted(&rest).ok()) << text;
  }
}

TEST(FieldPathTest, PathsGrowByKeysAndElements) {
  EXPECT_EQ(PathBelow("", "spec"), "spec");
  EXPECT_EQ(PathBelow("spec", "a.b"), R"(spec."a.b")");
  EXPECT_EQ(PathOfElement("spec.zones", 2), "spec.zones[2]");
}

}  // namespace
}  // namespace fncache
