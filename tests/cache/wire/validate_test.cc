// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/validate.h"

#include <string>

#include "cache/wire/schema.h"
#include "cache/wire/wire.h"
#include "common/utf8.h"
#include "google/protobuf/io/coded_stream.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache::wire {
namespace {

namespace pb = google::protobuf;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

bool Parses(const std::string& bytes, int depth = kMaxDepth) {
  RunFunctionRequest request;
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                              static_cast<int>(bytes.size()));
  in.SetRecursionLimit(depth);
  return request.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

bool Valid(const std::string& bytes) {
  return Validate(kRunFunctionRequestType, bytes);
}

std::string Field(uint32_t number, absl::string_view bytes) {
  std::string out;
  AppendBytesField(&out, number, bytes);
  return out;
}

TEST(Validate, AgreesWithProtobufOnOddBytes) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  const std::string in_context[] = {
      ""s,
      // A map entry without key, without value, empty, with unknown fields.
      Field(1, ""),
      Field(1, Field(1, "k")),
      Field(1, Field(2, "")),
      Field(1, Field(1, "k") + Field(2, "") + Field(3, "\xff")),
      Field(1, Field(2, "") + Field(1, "k")),
      // Keys and strings that are no UTF-8, and unknown bytes that need not be.
      Field(1, Field(1, "\xff")),
      Field(1, Field(2, Field(3, "\xc0\x80"))),
      Field(1, Field(1, "\xff") + Field(1, "k")),
      Field(9, "\xff"),
      Field(1, Field(2, Field(3, "\xed\xa0\x80"))),
      Field(1, Field(2, Field(3, "\xf0\x9f\x98\x80"))),
      // The wrong wire type.
      "\x08\x01"s,
      "\x0d\x01\x02\x03\x04"s,
      "\x09\1\2\3\4\5\6\7\x08"s,
      // Field number 0, wire types 6 and 7, tags that end nothing.
      "\x02\x00"s,
      "\x00"s,
      "\x00\x00"s,
      "\x01\1\2\3\4\5\6\7\x08"s,
      "\x05\1\2\3\4"s,
      "\x0e"s,
      "\x0f"s,
      "\x0c"s,
      "\x04"s,
      "\x03\x04"s,
      // Groups: whole, of another number, open, nested, crossing.
      "\x53\x54"s,
      "\x53\x5c"s,
      "\x53"s,
      "\x53\x5b\x08\x01\x5c\x54"s,
      "\x53\x5b\x54\x5c"s,
      "\x0b\x0c"s,
      // Long tags, lengths and varints; too long ones.
      "\x8a\x00\x00"s,
      "\x8a\x80\x80\x80\x00\x00"s,
      "\x8a\x80\x80\x80\x80\x00\x00"s,
      "\x8a\x80\x80\x80\x70\x00"s,
      "\x80\x80\x80\x80\x10\x00"s,
      "\x0a\x80\x00"s,
      "\x0a\x80\x80\x80\x80\x00"s,
      "\x0a\x80\x80\x80\x80\x80\x00"s,
      "\x0a\x80\x80\x80\x80\x10"s,
      "\x0a\xff\xff\xff\xff\x07"s,
      "\x0a\xff\xff\xff\xff\x0f"s,
      "\x50\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"s,
      "\x50\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f"s,
      "\x50\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"s,
      "\xfa\xff\xff\xff\x0f\x00"s,
      "\xf8\xff\xff\xff\xff\x01"s,
      // Cut short.
      "\x0a"s,
      "\x0a\x01"s,
      "\x50"s,
      "\x50\x80"s,
      "\x51\1\2\3"s,
      "\x55\1\2\3"s,
      "\x8a"s,
      "\x0a\x80"s,
  };
  int valid = 0;
  int number = 0;
  for (const std::string& bytes : in_context) {
    SCOPED_TRACE(number++);
    for (const std::string& whole :
         {Field(5, bytes), bytes, Field(5, bytes) + bytes}) {
      EXPECT_EQ(Valid(whole), Parses(whole));
      valid += Valid(whole) ? 1 : 0;
    }
  }
  EXPECT_GT(valid, 20);
}

TEST(Validate, PackedAndUnpackedVarints) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  for (const std::string& meta :
       {"\x12\x00"s, "\x12\x02\x01\x02"s, "\x10\x01\x10\x02"s, "\x12\x01\x80"s,
        "\x12\x02\x80\x80\x10\x01"s, "\x12\x02\x81\x00"s,
        "\x12\x03\x01\x80\x80"s + Field(3, std::string(40, '\1')),
        "\x12\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"s,
        "\x12\x28"s + std::string(39, '\1') + "\x81"s,
        "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s}) {
    const std::string bytes = Field(1, meta);
    EXPECT_EQ(Valid(bytes), Parses(bytes)) << testing::PrintToString(meta);
  }
  EXPECT_TRUE(Valid(Field(1, "\x12\x02\x01\x02")));
  EXPECT_FALSE(Valid(Field(1, "\x12\x02\x01\x82")));
}

// `levels` messages below the outermost, each in the one before.
std::string NestedJson(int levels) {
  // From the inside out: Struct in Value in entry in Struct...
  std::string bytes;
  const uint32_t numbers[] = {5, 2, 1};  // struct_value, entry value, fields
  // The outermost field is `context`, a Struct.
  for (int level = levels - 1; level >= 1; --level) {
    // Level 1 is an entry in the context Struct.
    const uint32_t number = numbers[(3 - level % 3) % 3];
    bytes = Field(number, bytes);
  }
  return Field(5, bytes);
}

std::string NestedGroups(int levels) {
  std::string bytes;
  for (int i = 0; i < levels; ++i) bytes += '\x53';
  for (int i = 0; i < levels; ++i) bytes += '\x54';
  return bytes;
}

TEST(Validate, DepthIsProtobufs) {
  for (int levels : {1, 2, 3, 4, 5, 99, 100, 101, 998, 999, 1000, 1001, 1002,
                     1003, 1004, 20000}) {
    SCOPED_TRACE(levels);
    EXPECT_EQ(Valid(NestedJson(levels)), Parses(NestedJson(levels)));
    EXPECT_EQ(Valid(NestedJson(levels)), levels <= 1000);
    EXPECT_EQ(Valid(NestedGroups(levels)), Parses(NestedGroups(levels)));
    EXPECT_EQ(Valid(NestedGroups(levels)), levels <= 1000);
    // A group within messages, and within a map entry.
    const std::string mixed =
        Field(5, Field(1, NestedGroups(levels) + Field(1, "k")));
    EXPECT_EQ(Valid(mixed), Parses(mixed));
    EXPECT_EQ(Valid(mixed), levels <= 998);
  }
}

TEST(Validate, DepthCanBeSet) {
  EXPECT_TRUE(Validate(kRunFunctionRequestType, NestedJson(100), 100));
  EXPECT_FALSE(Validate(kRunFunctionRequestType, NestedJson(101), 100));
  EXPECT_TRUE(Parses(NestedJson(100), 100));
  EXPECT_FALSE(Parses(NestedJson(101), 100));
}

TEST(Validate, ResponsesToo) {
  RunFunctionResponse response;
  response.mutable_meta()->mutable_ttl()->set_seconds(60);
  response.add_results()->set_message("caf\xc3\xa9");
  auto& selector = (*response.mutable_requirements()->mutable_resources())["r"];
  (*selector.mutable_match_labels()->mutable_labels())["a"] = "b";
  std::string bytes = response.SerializeAsString();
  EXPECT_TRUE(Validate(kRunFunctionResponseType, bytes));
  const size_t at = bytes.find('\xc3');
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'x';
  EXPECT_FALSE(Validate(kRunFunctionResponseType, bytes));
  // match_labels' values are strings, checked in the map entry.
  const std::string labels =
      Field(5, Field(2, Field(2, Field(4, Field(1, Field(2, "\xff"))))));
  EXPECT_FALSE(RunFunctionResponse().ParseFromString(labels));
  EXPECT_FALSE(Validate(kRunFunctionResponseType, labels));
}

TEST(Validate, TextIsUtf8AsProtobufChecksItInEverySequenceOfUpToThreeBytes) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      for (int c : {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
                    0xed, 0xf4, 0xff}) {
        const char text[] = {static_cast<char>(a), static_cast<char>(b),
                             static_cast<char>(c)};
        for (size_t size : {1, 2, 3}) {
          ASSERT_EQ(IsUtf8({text, size}),
                    pb::internal::IsStructurallyValidUTF8({text, size}))
              << a << ' ' << b << ' ' << c << ' ' << size;
        }
      }
    }
  }
}

TEST(Validate, TextIsUtf8AsProtobufChecksItInFourBytesAtEveryOffset) {
  for (int a = 0xee; a < 0x100; ++a) {
    for (int b = 0x70; b < 0xd0; ++b) {
      for (int c : {0x41, 0x7f, 0x80, 0xbf, 0xc0}) {
        for (int d : {0x41, 0x7f, 0x80, 0xbf, 0xc0}) {
          for (size_t before : {0, 1, 7, 8, 9}) {
            std::string text(before, 'x');
            for (int byte : {a, b, c, d}) text += static_cast<char>(byte);
            ASSERT_EQ(IsUtf8(text),
                      pb::internal::IsStructurallyValidUTF8(text));
            text += "tail of some length";
            ASSERT_EQ(IsUtf8(text),
                      pb::internal::IsStructurallyValidUTF8(text));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace fncache::cache::wire
