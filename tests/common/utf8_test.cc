// SPDX-License-Identifier: Apache-2.0
#include "common/utf8.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace fncache {
namespace {

// The form of RFC 3629, by its definition.
std::string Encode(uint32_t point) {
  std::string out;
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | point >> 6);
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | point >> 12);
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | point >> 18);
    out += static_cast<char>(0x80 | (point >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  }
  return out;
}

TEST(Utf8Test, EveryCharacterIsOneAndNoSurrogateIs) {
  for (uint32_t point = 0; point < 0x1fffff; ++point) {
    const std::string text = Encode(point);
    const bool good = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    ASSERT_EQ(Utf8CharacterBytes(text), good ? text.size() : 0u) << point;
    ASSERT_EQ(IsUtf8(text), good) << point;
    if (good) {
      ASSERT_EQ(Utf8CodePoint(text), point);
    }
  }
}

// All strings of up to three bytes: well-formed if and only if they are made of
// characters as Encode writes them.
TEST(Utf8Test, NoOtherBytesAreACharacter) {
  std::string three[1 << 16];  // by the first two bytes: which thirds fit
  for (uint32_t point = 0x800; point < 0x10000; ++point) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    const std::string text = Encode(point);
    three[static_cast<unsigned char>(text[0]) << 8 |
          static_cast<unsigned char>(text[1])] += text[2];
  }
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string& fit = three[first << 8 | second];
      const bool two =
          first >= 0xc2 && first <= 0xdf && second >= 0x80 && second <= 0xbf;
      for (int third = 0; third < 256; ++third) {
        const char text[] = {static_cast<char>(first),
                             static_cast<char>(second),
                             static_cast<char>(third)};
        size_t expected = 0;
        if (first < 0x80) {
          expected = 1;
        } else if (two) {
          expected = 2;
        } else if (fit.find(text[2]) != std::string::npos) {
          expected = 3;
        }
        ASSERT_EQ(Utf8CharacterBytes({text, 3}), expected)
            << first << " " << second << " " << third;
      }
    }
  }
}

TEST(Utf8Test, CutCharactersAreNone) {
  EXPECT_EQ(Utf8CharacterBytes(""), 0u);
  EXPECT_TRUE(IsUtf8(""));
  for (const uint32_t point : {0xe9u, 0x20acu, 0x1f600u}) {
    const std::string text = Encode(point);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      EXPECT_FALSE(IsUtf8(text.substr(0, cut)));
      EXPECT_FALSE(IsUtf8("a" + text.substr(0, cut)));
      EXPECT_FALSE(IsUtf8(text.substr(cut)));
    }
    EXPECT_TRUE(IsUtf8("a" + text + "b" + text));
  }
}

// IsUtf8 looks at many bytes at once, so that it matters where a character
// stands.
TEST(Utf8Test, WhatIsWellFormedDoesNotDependOnWhereItStands) {
  for (int first = 0xc0; first < 0x100; ++first) {
    for (int second = 0x70; second < 0xd0; ++second) {
      for (const int third : {0x41, 0x7f, 0x80, 0xbf, 0xc0}) {
        for (const int fourth : {0x41, 0x7f, 0x80, 0xbf, 0xc0}) {
          std::string text;
          for (const int byte : {first, second, third, fourth}) {
            text += static_cast<char>(byte);
          }
          absl::string_view rest = text;
          while (const size_t bytes = Utf8CharacterBytes(rest)) {
            rest.remove_prefix(bytes);
          }
          for (const size_t before : {0, 1, 7, 8, 9, 15, 16}) {
            const std::string moved = std::string(before, 'x') + text;
            ASSERT_EQ(IsUtf8(moved), rest.empty());
            ASSERT_EQ(IsUtf8(moved + "tail of some length"), rest.empty());
          }
        }
      }
    }
  }
}

TEST(Utf8Test, OverLongFormsAreNone) {
  EXPECT_FALSE(IsUtf8("\xc0\x80"));
  EXPECT_FALSE(IsUtf8("\xc1\xbf"));
  EXPECT_FALSE(IsUtf8("\xe0\x9f\xbf"));
  EXPECT_FALSE(IsUtf8("\xf0\x8f\xbf\xbf"));
  EXPECT_FALSE(IsUtf8("\xf4\x90\x80\x80"));
  EXPECT_FALSE(IsUtf8("\xf8\x88\x80\x80\x80"));
}

TEST(Utf8Test, EachByteThatIsNotUtf8IsReplaced) {
  EXPECT_EQ(WellFormedUtf8(""), "");
  EXPECT_EQ(WellFormedUtf8("a\xC3\xA9\xF0\x9F\x98\x80"),
            "a\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(WellFormedUtf8("a\xFF\xE2\x82z"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST(Utf8Test, PrintableBreaksNoLineAndObeysNoOne) {
  EXPECT_EQ(Printable("caf\xc3\xa9 \"\\"), "caf\xc3\xa9 \"\\");
  EXPECT_EQ(Printable("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(Printable("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b\xff\xc3"), "\\xc2\\x9b\\xff\\xc3");
  EXPECT_EQ(Printable(absl::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(Printable("\xc2\xa0"), "\xc2\xa0");
}

TEST(Utf8Test, OnlyTheBeginningOfALongTextIsPrinted) {
  EXPECT_EQ(PrintableStart("a\nb"), "a\\nb");
  const std::string most(100, 'a');
  EXPECT_EQ(PrintableStart(most), most);
  EXPECT_EQ(PrintableStart(most + "b"), most + "...");
  EXPECT_EQ(PrintableStart(std::string(20'000, '\xff')).size(), 100 * 4 + 3u);
  // No character is cut in two.
  EXPECT_EQ(PrintableStart(most.substr(1) + "\u00e9\u00e9"),
            most.substr(1) + "...");
}

TEST(Utf8Test, NothingThatReordersTextIsPrinted) {
  const std::set<uint32_t> kReordering = {
      0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c,
      0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069,
  };
  for (uint32_t point = 0x80; point < 0x11000; ++point) {
    if (point >= 0xd800 && point < 0xe000) continue;
    const std::string text = Encode(point);
    const bool reorders = kReordering.count(point) > 0;
    EXPECT_EQ(HasBidiControl("a" + text), reorders) << point;
    EXPECT_EQ(WithoutBidiControls("a" + text) != "a" + text, reorders) << point;
    if (point < 0xa0) continue;  // controls
    EXPECT_EQ(Printable(text) != text,
              reorders || point == 0x2028 || point == 0x2029)
        << point;
  }
  EXPECT_FALSE(HasBidiControl(""));
  EXPECT_EQ(WithoutBidiControls("\xc3\xa9\xd8\x9c\xff\xe2\x80\xaez"),
            "\xc3\xa9\\u061c\xff\\u202ez");
  EXPECT_EQ(Printable("\xe2\x80\xa8\xe2\x81\xa6\xf0\x9f\x98\x80"),
            "\\u2028\\u2066\xf0\x9f\x98\x80");
}

}  // namespace
}  // namespace fncache
