// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/wire.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace fncache::cache::wire {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

TEST(Wire, VarintsRoundTrip) {
  for (int bit = 0; bit < 64; ++bit) {
    for (uint64_t value : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1,
                           std::numeric_limits<uint64_t>::max() >> bit}) {
      std::string bytes;
      AppendVarint(&bytes, value);
      EXPECT_EQ(bytes.size(), VarintSize(value));
      Cursor in(bytes);
      uint64_t read;
      ASSERT_TRUE(in.ReadVarint(&read));
      EXPECT_EQ(read, value);
      EXPECT_TRUE(in.done());
      // Cut anywhere, it is none.
      for (size_t size = 0; size < bytes.size(); ++size) {
        Cursor cut(absl::string_view(bytes).substr(0, size));
        EXPECT_FALSE(cut.ReadVarint(&read));
      }
    }
  }
}

TEST(Wire, LengthsStayWithinTheBytes) {
  absl::string_view bytes;
  const std::string two = "\x02gh";
  EXPECT_TRUE(Cursor(two).ReadBytes(&bytes));
  EXPECT_EQ(bytes, "gh");
  EXPECT_FALSE(Cursor("\x03gh"s).ReadBytes(&bytes));
  EXPECT_FALSE(Cursor("\xff\xff\xff\xff\x07gh"s).ReadBytes(&bytes));
  EXPECT_FALSE(Cursor("\x80\x80\x80\x80\x80\x00"s).ReadBytes(&bytes));
  const std::string none = "\x80\x80\x80\x80\x00"s;
  EXPECT_TRUE(Cursor(none).ReadBytes(&bytes));
  EXPECT_EQ(bytes, "");
}

TEST(Wire, TagsOfFiveBytesAreTakenModulo32Bits) {
  uint32_t tag;
  EXPECT_TRUE(Cursor("\xfa\xff\xff\xff\x0f"s).ReadTag(&tag));
  EXPECT_EQ(TagNumber(tag), (1u << 29) - 1);
  EXPECT_EQ(TagType(tag), WireType::kBytes);
  EXPECT_TRUE(Cursor("\x8a\x80\x80\x80\x70"s).ReadTag(&tag));
  EXPECT_EQ(tag, MakeTag(1, WireType::kBytes));
  EXPECT_FALSE(Cursor("\x8a\x80\x80\x80\x80\x00"s).ReadTag(&tag));
}

TEST(Wire, SkipFindsTheEndOfAGroup) {
  // Groups 10 { 11 { varint } fixed64 } and a byte after.
  const std::string bytes = "\x5b\x08\x05\x5c\x51\1\2\3\4\5\6\7\x08\x54!"s;
  Cursor in(bytes);
  EXPECT_TRUE(in.Skip(0x53, 2));
  EXPECT_EQ(in.remaining(), 1);
  EXPECT_FALSE(Cursor(bytes).Skip(0x53, 1));
  EXPECT_FALSE(Cursor(bytes).Skip(0x5b, 2));
  EXPECT_FALSE(Cursor(bytes).Skip(0x03, 2));
}

TEST(Wire, FixedValuesAreLittleEndian) {
  uint64_t wide;
  uint32_t narrow;
  EXPECT_TRUE(Cursor("\1\0\0\0\0\0\0\2"s).ReadFixed64(&wide));
  EXPECT_EQ(wide, 0x0200000000000001u);
  EXPECT_TRUE(Cursor("\1\0\0\2"s).ReadFixed32(&narrow));
  EXPECT_EQ(narrow, 0x02000001u);
  EXPECT_FALSE(Cursor("\1\0\0\0\0\0\0"s).ReadFixed64(&wide));
  EXPECT_FALSE(Cursor("\1\0\0"s).ReadFixed32(&narrow));
}

}  // namespace
}  // namespace fncache::cache::wire
