// SPDX-License-Identifier: Apache-2.0
#include "common/yaml.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = YamlNode::Kind;

YamlNode Parsed(const std::string& text) {
  auto node = ParseYaml(text, "f");
  EXPECT_TRUE(node.ok()) << node.status() << "\n" << text;
  return node.ok() ? *std::move(node) : YamlNode();
}

// Returns the error message, which is one line that starts with the location.
std::string Refused(const std::string& text) {
  const auto node = ParseYaml(text, "f");
  EXPECT_FALSE(node.ok()) << text;
  if (node.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(node.status()));
  const std::string message(node.status().message());
  EXPECT_THAT(message, StartsWith("f:"));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  return message;
}

TEST(YamlTest, NothingIsNull) {
  for (const char* text : {"", "\n", "# only\n", "~", "---\n", "null"}) {
    EXPECT_EQ(Parsed(text).kind, Kind::kNull) << text;
  }
  EXPECT_EQ(ParseYaml(absl::string_view(), "f")->kind, Kind::kNull);
}

TEST(YamlTest, KnowsWhereEverythingStands) {
  const YamlNode root = Parsed("# c\na: 1\nb:\n  - x\n  - {c: 'y'}\n");
  ASSERT_EQ(root.kind, Kind::kMap);
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].key, "a");
  EXPECT_EQ(root.entries[0].line, 2);
  EXPECT_EQ(root.entries[0].column, 1);
  EXPECT_EQ(root.entries[0].value.column, 4);
  const YamlNode* const list = root.Find("b");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->kind, Kind::kList);
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[0].line, 4);
  EXPECT_EQ(list->items[0].column, 5);
  const YamlEntry& inner = list->items[1].entries.at(0);
  EXPECT_EQ(inner.line, 5);
  EXPECT_EQ(inner.column, 6);
  EXPECT_EQ(inner.value.scalar, "y");
  EXPECT_EQ(root.Find("c"), nullptr);
}

TEST(YamlTest, QuotesMakeText) {
  const YamlNode root = Parsed("- 5\n- '5'\n- \"5\"\n- |\n 5\n");
  ASSERT_EQ(root.items.size(), 4u);
  EXPECT_FALSE(root.items[0].quoted);
  EXPECT_TRUE(root.items[1].quoted);
  EXPECT_TRUE(root.items[2].quoted);
  for (const YamlNode& item : root.items) {
    EXPECT_EQ(item.scalar.substr(0, 1), "5");
  }
}

TEST(YamlTest, ReadsWhatOtherEditorsWrite) {
  for (const char* text :
       {"a: 1\r\nb: 2\r\n",
        "\xef\xbb\xbf"
        "a: 1\nb: 2",
        "---\na: 1\nb: 2\n...\n", "{a: 1, b: 2}", "a: 1 # c\n\n\nb: 2"}) {
    const YamlNode root = Parsed(text);
    ASSERT_EQ(root.entries.size(), 2u) << text;
    EXPECT_EQ(root.entries[0].key, "a") << text;
    EXPECT_EQ(root.entries[1].value.scalar, "2") << text;
  }
}

TEST(YamlTest, SaysWhatIsWrongAndWhere) {
  const struct {
    const char* text;
    const char* place;
    const char* why;
  } kCases[] = {
      {"a: 1\na: 2", "f:2:", "\"a\" is already on line 1"},
      {"b: {a: 1,\n a: 2}", "f:2:", "\"a\" is already on line 1"},
      {"a: &x 1", "f:1:", "anchors"},
      {"\na: *x", "f:2:", "anchors"},
      {"a: &x 1\nb: *x", "f:1:", "anchors"},
      {"a: !!str 1", "f:1:", "tags"},
      {"a: !mine {}", "f:1:", "tags"},
      {"[a]: b", "f:1:", "key must be text"},
      {"{a: b}: c", "f:1:", "key must be text"},
      {"? [a]\n: b", "f:1:", "key must be text"},
      {": b", "f:1:", "a key, or less indentation, is missing"},
      {"a: 1\n---\nb: 2", "f:2:", "more than one document"},
      {"a: [[[[[", "f:1:", "] is missing"},
      {"a: {b", "f:1:", "} is missing"},
      {"a: ]", "f:1:", "closes what was not opened"},
      {"\na: \"b", "f:2:", "quoted text is not closed"},
      {"a: b: c", "f:1:", "needs quotes"},
      {"ttl:\n\tmax: 1h", "f:2:", "indentation"},
      {"a: @b",
       "f:1:", "reserves @ at the start of a text: it needs quotes, \"@b\""},
      {"a:\n- x\n- @b\n", "f:3:", "reserves @"},
      {"a: [x, @b, y]", "f:1:", "quotes, \"@b\""},
      {"a: `b", "f:1:", "reserves `"},
      {"a: \"\\q\"", "f:1:", "escape"},
      {"a: \"\\ud800\"", "f:1:", "escape"},
      {"a: \"\\x4\"", "f:1:", "escape"},
      {"a: [b,\n c\n", "f:1:", "] is missing"},
      {"a: 'b\n\nc: d\n", "f:1:", "quoted text is not closed"},
      {"a: 1\nb\nc: 2\n", "f:2:", "a key without a colon"},
      {"a: 1\n- b\n", "f:2:", "key, or less indentation"},
      {"- a\nb: 1\n", "f:2:", "`- `, or less indentation"},
      {"\"a\"\nb: 1\n", "f:2:", "more than one document"},
      {"a: [,]", "f:1:", "value is missing"},
      {"a: %b", "f:1:", "needs quotes"},
      {"a: !b!c d", "f:1:", "tags"},
      {"a: ! b", "f:1:", "tags"},
      {"~: b", "f:1:", "key is missing"},
      {"x: \xc3\xa9\na: \xc3\xa9 @b\nc: @d", "f:3:", "quotes, \"@d\""},
      {"\xef\xbb\xbf"
       "a: @b",
       "f:1:", "quotes, \"@b\""},
      {"a: b\xef\xbb\xbf", "f:1:", "control character"},
      {"a: \x7f", "f:1:", "control character"},
      {"a: \xc2\x80", "f:1:", "control character"},
      {"x: y\na: \x01", "f:2:", "control character"},
      {"x: y\n\na: \xff", "f:3:", "not UTF-8"},
      {"\xed\xa0\x80", "f:1:", "not UTF-8"},
  };
  for (const auto& test : kCases) {
    const std::string message = Refused(test.text);
    EXPECT_THAT(message, StartsWith(test.place)) << test.text;
    EXPECT_THAT(message, HasSubstr(test.why)) << test.text;
  }
  EXPECT_THAT(Refused(std::string("a: \0", 4)), HasSubstr("control"));
  EXPECT_THAT(Refused(std::string("a\0:\0 \0", 6)), HasSubstr("control"));
}

TEST(YamlTest, BoundsNesting) {
  const auto nested = [](int depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(Parsed(nested(kMaxYamlDepth)).kind, Kind::kList);
  EXPECT_THAT(Refused(nested(kMaxYamlDepth + 1)), HasSubstr("nested deeper"));
  for (const char* part : {"[", "{a: ", "- ", "? ", "a:\n ", "[{"}) {
    std::string text;
    while (text.size() < 500'000) text += part;
    EXPECT_NE(Refused(text), "") << part;
  }
  std::string stairs;
  for (int i = 0; i < 1000; ++i) stairs += std::string(i, ' ') + "a:\n";
  EXPECT_THAT(Refused(stairs), HasSubstr("nested deeper"));
}

TEST(YamlTest, BoundsSize) {
  const std::string most = "a: " + std::string(kMaxYamlBytes - 3, 'x');
  EXPECT_EQ(Parsed(most).entries.at(0).value.scalar.size(), kMaxYamlBytes - 3);
  EXPECT_THAT(Refused(most + "x"), HasSubstr("over 1 MiB"));
  std::string keys;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&keys, "k", i, ": v\n");
  EXPECT_EQ(Parsed(keys).entries.size(), 1000u);
  EXPECT_THAT(Refused(keys + "k: v\n"), HasSubstr("1000 keys"));
}

TEST(YamlTest, ScalarsReadBackAsThemselves) {
  for (const char* text : {"",
                           "a",
                           "null",
                           "~",
                           "true",
                           "5",
                           "-",
                           "- a",
                           "a: b",
                           "a #b",
                           "#",
                           "\"",
                           "\\",
                           "'",
                           "a\nb",
                           "\t",
                           " a ",
                           "[a]",
                           "{a}",
                           "&a",
                           "*a",
                           "!a",
                           "%a",
                           "@a",
                           "`a",
                           "|",
                           ">",
                           "?",
                           ":",
                           "a:",
                           "---",
                           "...",
                           "\x7f",
                           "\xc2\x80",
                           "\xc2\x85",
                           "\xef\xbf\xbe",
                           "\xe2\x80\xa8",
                           "\xef\xbb\xbf",
                           "\xef\xbb\xbfx",
                           "\xf0\x9f\x98\x80",
                           "0.0.0.0:9443",
                           "[::]:0",
                           "dns:///a:1"}) {
    const YamlNode root =
        Parsed(absl::StrCat("k: ", YamlScalar(text), "  # c\n"));
    ASSERT_EQ(root.entries.size(), 1u);
    EXPECT_EQ(root.entries[0].value.kind, Kind::kScalar) << text;
    EXPECT_EQ(root.entries[0].value.scalar, text);
  }
  // Plain where people would write it plain.
  for (const char* text : {"a", "1h30m", "0.0.0.0:9443", "/cache", "x@y"}) {
    EXPECT_EQ(YamlScalar(text), text);
  }
}

TEST(YamlTest, RandomScalarsReadBackAsThemselves) {
  std::mt19937 random(3);
  const char* const kParts[] = {
      "a", "b", " ", "\n", ":",   "#",  "\"", "\\", "'",        "-",
      "[", "]", "{", "}",  ",",   "\t", "\r", "?",  "\xc3\xa9", "\xe2\x80\xa9",
      "*", "&", "!", "%",  "\x1b"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t i = random() % 8; i > 0; --i) text += kParts[random() % 25];
    const std::string yaml = YamlScalar(text);
    const YamlNode root = Parsed(absl::StrCat("k: [", yaml, ", z]"));
    ASSERT_EQ(root.entries.size(), 1u) << yaml;
    ASSERT_EQ(root.entries[0].value.items.size(), 2u) << yaml;
    ASSERT_EQ(root.entries[0].value.items[0].scalar, text) << yaml;
  }
}

// Cut and changed files: read, or refused in one line.
TEST(YamlTest, DamageIsRefusedInOneLine) {
  const std::string whole =
      "insecure: true\nttl: {max: 1h, min: '1s'}\nmask:\n- \"a\\u00e9b\"\n"
      "functions:\n- name: a\n  listen: h:1\n";
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    const auto node = ParseYaml(whole.substr(0, cut), "f");
    if (!node.ok()) Refused(whole.substr(0, cut));
    for (const char c : {'[', '{', '"', ':', '\t', '\n', '\0', '\xff'}) {
      std::string changed = whole;
      if (cut < whole.size()) changed[cut] = c;
      if (!ParseYaml(changed, "f").ok()) Refused(changed);
    }
  }
}

}  // namespace
}  // namespace fncache
