// SPDX-License-Identifier: Apache-2.0
#include "cache/response.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "cache/wire/wire.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/response_properties.h"
#include "tests/common/test_data.h"

namespace fncache::cache {
namespace {

using Random = std::mt19937_64;

std::string BytesField(uint32_t number, absl::string_view bytes) {
  std::string out;
  wire::AppendBytesField(&out, number, bytes);
  return out;
}

std::string VarintField(uint32_t number, uint64_t value) {
  std::string out;
  wire::AppendVarintField(&out, number, value);
  return out;
}

std::string Ttl(int64_t seconds, int64_t nanos) {
  return VarintField(1, static_cast<uint64_t>(seconds)) +
         VarintField(2, static_cast<uint64_t>(nanos));
}

std::string MetaOf(absl::string_view tag, absl::string_view ttl) {
  return BytesField(1, BytesField(1, tag) + BytesField(2, ttl));
}

ResponseView Read(absl::string_view bytes) {
  absl::StatusOr<ResponseView> view = ReadResponse(bytes);
  EXPECT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(CheckResponse(bytes, /*duplicates=*/true).wrong, "");
  return view.ok() ? *std::move(view) : ResponseView();
}

TEST(ReadResponseTest, AnEmptyResponseHasNothing) {
  const ResponseView view = Read("");
  EXPECT_FALSE(view.facts.ttl.has_value());
  EXPECT_FALSE(view.facts.fatal);
  EXPECT_FALSE(view.facts.secrets);
  EXPECT_TRUE(view.body.empty());
  EXPECT_EQ(view.tag, "");
  EXPECT_EQ(view.meta_rest, "");
}

TEST(ReadResponseTest, TtlIsReadToTheNanosecond) {
  EXPECT_EQ(Read(MetaOf("t", Ttl(60, 7))).facts.ttl,
            absl::Seconds(60) + absl::Nanoseconds(7));
}

TEST(ReadResponseTest, APresentButEmptyTtlIsZero) {
  EXPECT_EQ(Read(MetaOf("t", "")).facts.ttl, absl::ZeroDuration());
  EXPECT_FALSE(Read(BytesField(1, "")).facts.ttl.has_value());
}

TEST(ReadResponseTest, NegativeInvalidAndOverflowingTtlsCountAsNone) {
  for (const std::string& ttl :
       {Ttl(-1, 0), Ttl(0, -1), Ttl(-1, 1), Ttl(1, -1), Ttl(0, 1'000'000'000),
        Ttl(0, INT32_MAX), Ttl(INT64_MAX, 0), Ttl(INT64_MIN, 0),
        Ttl(315'576'000'001, 0), Ttl(9'223'372'037, 0),
        Ttl(9'223'372'036, 854'775'808)}) {
    EXPECT_FALSE(Read(MetaOf("t", ttl)).facts.ttl.has_value());
  }
  EXPECT_EQ(Read(MetaOf("t", Ttl(9'223'372'036, 854'775'807))).facts.ttl,
            absl::Nanoseconds(INT64_MAX));
}

TEST(ReadResponseTest, ATtlThatIsNotValidPassesUntouchedInAHit) {
  const ResponseView view = Read(MetaOf("t", Ttl(-5, 3)));
  v1::RunFunctionResponse message;
  ASSERT_TRUE(message.ParseFromString(
      MakeMeta("other", absl::nullopt, view.meta_rest)));
  EXPECT_EQ(message.meta().tag(), "other");
  EXPECT_EQ(message.meta().ttl().seconds(), -5);
  EXPECT_EQ(message.meta().ttl().nanos(), 3);
}

TEST(ReadResponseTest, SplitMetaAndSplitTtlMerge) {
  const std::string bytes =
      BytesField(1, BytesField(1, "a") + BytesField(2, VarintField(1, 60))) +
      BytesField(2, "") +
      BytesField(1, BytesField(2, VarintField(2, 5)) + BytesField(1, "b") +
                        BytesField(2, VarintField(1, 61)));
  const ResponseView view = Read(bytes);
  EXPECT_EQ(view.facts.ttl, absl::Seconds(61) + absl::Nanoseconds(5));
  EXPECT_EQ(view.tag, "b");
  ASSERT_EQ(view.body.size(), 1u);
  EXPECT_EQ(view.body[0], BytesField(2, ""));
}

TEST(ReadResponseTest, UnknownFieldsOfMetaAndOfItsTtlAreKept) {
  const std::string bytes =
      BytesField(1, VarintField(9, 1) + BytesField(1, "t") +
                        BytesField(2, VarintField(1, 60) + VarintField(8, 2)) +
                        BytesField(10, "x"));
  const ResponseView view = Read(bytes);
  EXPECT_EQ(view.meta_rest, VarintField(9, 1) + BytesField(10, "x") +
                                BytesField(2, VarintField(8, 2)));
}

TEST(ReadResponseTest, AMetaOfAnotherWireTypeIsAnUnknownField) {
  const std::string bytes = VarintField(1, 5) + MetaOf("t", Ttl(60, 0));
  const ResponseView view = Read(bytes);
  ASSERT_EQ(view.body.size(), 1u);
  EXPECT_EQ(view.body[0], VarintField(1, 5));
}

TEST(ReadResponseTest, BodyKeepsEveryOtherByteInOrder) {
  const std::string a = BytesField(3, VarintField(1, 2)) + VarintField(99, 1);
  const std::string b = BytesField(4, "");
  const std::string meta = MetaOf("t", "");
  const std::string bytes = meta + a + meta + meta + b + meta;
  const ResponseView view = Read(bytes);
  ASSERT_EQ(view.body.size(), 2u);
  EXPECT_EQ(view.body[0], a);
  EXPECT_EQ(view.body[1], b);
}

TEST(ReadResponseTest, AnyFatalResultCounts) {
  const auto result = [](uint64_t severity) {
    return BytesField(3, VarintField(1, severity));
  };
  EXPECT_TRUE(Read(result(3) + result(1) + result(2)).facts.fatal);
  EXPECT_FALSE(Read(result(3) + result(2) + result(0)).facts.fatal);
  // Cut to an int32, as protobuf does with enums.
  EXPECT_TRUE(Read(result((uint64_t{1} << 32) + 1)).facts.fatal);
}

TEST(ReadResponseTest, WithinOneResultTheLastSeverityCounts) {
  EXPECT_FALSE(
      Read(BytesField(3, VarintField(1, 1) + VarintField(1, 2))).facts.fatal);
  EXPECT_TRUE(
      Read(BytesField(3, VarintField(1, 2) + VarintField(1, 1))).facts.fatal);
}

TEST(ReadResponseTest, SecretsAreConnectionDetailsAnywhereInDesired) {
  const std::string details =
      BytesField(2, BytesField(1, "password") + BytesField(2, "x"));
  const std::string resource =
      BytesField(2, BytesField(1, "db") + BytesField(2, details));
  EXPECT_TRUE(Read(BytesField(2, BytesField(1, details))).facts.secrets);
  EXPECT_TRUE(Read(BytesField(2, resource)).facts.secrets);
  EXPECT_TRUE(Read(BytesField(2, "") + BytesField(2, resource)).facts.secrets);
  EXPECT_TRUE(Read(BytesField(2, resource) + BytesField(2, "")).facts.secrets);
  EXPECT_TRUE(
      Read(BytesField(2, BytesField(1, BytesField(2, "")))).facts.secrets);
  const std::string plain =
      BytesField(2, BytesField(1, "db") + BytesField(2, VarintField(3, 1)));
  EXPECT_FALSE(Read(BytesField(2, plain)).facts.secrets);
}

TEST(ReadResponseTest, SecretsUnderARepeatedMapKeyCountToo) {
  const std::string details = BytesField(2, BytesField(1, "password"));
  const std::string with =
      BytesField(2, BytesField(1, "db") + BytesField(2, details));
  const std::string without =
      BytesField(2, BytesField(1, "db") + BytesField(2, ""));
  EXPECT_TRUE(Read(BytesField(2, with + without)).facts.secrets);
}

TEST(ReadResponseTest, WhatProtobufRefusesIsRefused) {
  const std::string cases[] = {
      "\xff",                                // no tag
      BytesField(2, "abc").substr(0, 3),     // cut
      BytesField(1, BytesField(1, "\xff")),  // a tag that is not UTF-8
      BytesField(1, BytesField(2, "\x08")),  // a TTL cut short
      BytesField(3, BytesField(2, "\xc0\x80")),
      BytesField(2, BytesField(2, BytesField(1, "\xed\xa0\x80"))),
      std::string(1, '\0'),
      "\x0c",  // an end of group
  };
  for (const std::string& bytes : cases) {
    EXPECT_EQ(ReadResponse(bytes).status().code(),
              absl::StatusCode::kInvalidArgument);
    const ResponseOutcome outcome = CheckResponse(bytes, true);
    EXPECT_EQ(outcome.wrong, "");
    EXPECT_FALSE(outcome.readable);
  }
}

TEST(ReadResponseTest, AThousandLevelsAreReadAndMoreRefused) {
  // context: Struct, then alternately fields entry and Value and Struct.
  const auto nested = [](int levels) {
    std::string bytes;
    for (int i = 0; i < levels; ++i) bytes = BytesField(10, bytes);
    std::string group;
    for (int i = 0; i < levels; ++i) group += "\x5b";
    for (int i = 0; i < levels; ++i) group += "\x5c";
    return BytesField(1, group);
  };
  for (const int levels : {10, 998, 999, 1000, 1001, 20'000}) {
    const ResponseOutcome outcome = CheckResponse(nested(levels), true);
    EXPECT_EQ(outcome.wrong, "") << levels;
    EXPECT_EQ(outcome.readable, levels < 1000) << levels;
  }
}

TEST(ReadResponseTest, DepthOfStructsAndListsCountsAsProtobufCountsIt) {
  int readable = 0, refused = 0;
  for (int levels = 300; levels < 360; ++levels) {
    // Three messages a level: Struct, its entry, Value.
    std::string structs = BytesField(3, "x");
    for (int i = 0; i < levels; ++i) {
      structs = BytesField(5, BytesField(1, BytesField(2, structs)));
    }
    const ResponseOutcome outcome = CheckResponse(
        BytesField(4, BytesField(1, BytesField(2, structs))), false);
    EXPECT_EQ(outcome.wrong, "") << levels;
    ++(outcome.readable ? readable : refused);
  }
  for (int levels = 480; levels < 520; ++levels) {
    // Two: ListValue and Value; at the end a group more.
    for (const std::string& end : {std::string(), std::string("\x5b\x5c")}) {
      std::string lists = end;
      for (int i = 0; i < levels; ++i)
        lists = BytesField(6, BytesField(1, lists));
      const ResponseOutcome outcome = CheckResponse(
          BytesField(4, BytesField(1, BytesField(2, lists))), false);
      EXPECT_EQ(outcome.wrong, "") << levels;
      ++(outcome.readable ? readable : refused);
    }
  }
  EXPECT_GT(readable, 20);
  EXPECT_GT(refused, 20);
}

TEST(MakeMetaTest, WritesNothingThatWasNotGiven) {
  EXPECT_EQ(MakeMeta("", absl::nullopt, ""), std::string("\x0a\x00", 2));
  EXPECT_EQ(MakeMeta("t", absl::nullopt, ""),
            BytesField(1, BytesField(1, "t")));
  EXPECT_EQ(MakeMeta("", absl::ZeroDuration(), ""),
            BytesField(1, BytesField(2, "")));
  EXPECT_EQ(
      MakeMeta("t", absl::Seconds(60), VarintField(9, 1)),
      BytesField(1, BytesField(1, "t") + BytesField(2, VarintField(1, 60)) +
                        VarintField(9, 1)));
  EXPECT_EQ(MakeMeta("", absl::Nanoseconds(1), ""),
            BytesField(1, BytesField(2, VarintField(2, 1))));
}

TEST(MakeMetaTest, TagsOfAnyLengthAndTheLongestTtl) {
  for (const size_t size : {127, 128, 16'383, 16'384, 3'000'000}) {
    const std::string tag(size, 't');
    v1::RunFunctionResponse message;
    ASSERT_TRUE(message.ParseFromString(
        MakeMeta(tag, absl::Nanoseconds(INT64_MAX), "")));
    EXPECT_EQ(message.meta().tag(), tag);
    EXPECT_EQ(message.meta().ttl().seconds(), 9'223'372'036);
    EXPECT_EQ(message.meta().ttl().nanos(), 854'775'807);
  }
}

// ---- Properties, over generated responses in legal and less legal encodings.

// Writes a random message of the schema's `type` in a random encoding.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string Response() { return Message(wire::kRunFunctionResponseType, 0); }

  size_t Below(size_t n) { return random_() % n; }

 private:
  bool OneIn(size_t n) { return Below(n) == 0; }

  void Varint(uint64_t value, int most, std::string* out) {
    wire::AppendVarint(out, value);
    while (OneIn(12) && VarintsLastSize(*out) < most) {
      out->back() = static_cast<char>(out->back() | 0x80);
      out->push_back('\0');
    }
  }
  static int VarintsLastSize(const std::string& out) {
    int size = 1;
    while (size < static_cast<int>(out.size()) &&
           (out[out.size() - 1 - size] & 0x80) != 0) {
      ++size;
    }
    return size;
  }

  void Tag(uint32_t number, wire::WireType type, std::string* out) {
    Varint(wire::MakeTag(number, type), 5, out);
  }
  void Bytes(uint32_t number, absl::string_view bytes, std::string* out) {
    Tag(number, wire::WireType::kBytes, out);
    Varint(bytes.size(), 5, out);
    out->append(bytes.data(), bytes.size());
  }

  uint64_t Number() {
    switch (Below(6)) {
      case 0:
        return random_();
      case 1:
        return static_cast<uint64_t>(-static_cast<int64_t>(Below(100)));
      case 2:
        return (random_() << 32) | Below(4);
      case 3:
        return 1'000'000'000 - 1 + Below(2);
      default:
        return Below(5);
    }
  }

  std::string Text() {
    static const char* const kTexts[] = {
        "", "a", "b", "key", "\xc3\xa9", "a longer text, of some length"};
    if (OneIn(400)) return "\xff";
    return kTexts[Below(6)];
  }

  void Unknown(std::string* out) {
    const uint32_t number = 20 + Below(3);
    switch (Below(5)) {
      case 0:
        Tag(number, wire::WireType::kVarint, out);
        Varint(Number(), 10, out);
        break;
      case 1:
        Tag(number, wire::WireType::kFixed32, out);
        out->append("1234");
        break;
      case 2:
        Tag(number, wire::WireType::kFixed64, out);
        out->append("12345678");
        break;
      case 3:
        Bytes(number, Text(), out);
        break;
      default:
        Tag(number, wire::WireType::kStartGroup, out);
        if (OneIn(2)) Unknown(out);
        Tag(number, wire::WireType::kEndGroup, out);
        break;
    }
  }

  void Value(const wire::FieldType& field, uint32_t number, int depth,
             std::string* out) {
    switch (field.kind) {
      case wire::FieldKind::kString:
      case wire::FieldKind::kBytes:
        Bytes(number, Text(), out);
        break;
      case wire::FieldKind::kMessage:
        Bytes(number, Message(*field.message, depth + 1), out);
        break;
      case wire::FieldKind::kDouble:
        Tag(number, wire::WireType::kFixed64, out);
        out->append("\0\0\0\0\0\0\x45\x40", 8);
        break;
      default:
        Tag(number, wire::WireType::kVarint, out);
        Varint(Number(), 10, out);
        break;
    }
  }

  void Entry(const wire::FieldType& field, int depth, std::string* out) {
    std::string entry;
    const int parts = OneIn(4) ? 3 : 2;
    for (int i = 0; i < parts; ++i) {
      if (OneIn(2)) {
        Bytes(1, Text(), &entry);
      } else {
        Value(field, 2, depth + 1, &entry);
      }
    }
    if (OneIn(20)) Unknown(&entry);
    Bytes(field.number, entry, out);
  }

  // Fields in any order, any number of times: split messages, repeated scalars,
  // repeated map keys.
  std::string Message(const wire::MessageType& type, int depth) {
    std::string out;
    const size_t fields = depth > 8 ? Below(2) : Below(depth == 0 ? 8 : 4);
    for (size_t i = 0; i < fields; ++i) {
      if (OneIn(12)) Unknown(&out);
      const wire::FieldType& field = type.fields[Below(type.field_count)];
      if (OneIn(60)) {  // of another wire type
        Tag(field.number, wire::WireType::kFixed32, &out);
        out.append("abcd");
      } else if (field.label == wire::FieldLabel::kMap) {
        Entry(field, depth, &out);
      } else {
        Value(field, field.number, depth, &out);
      }
    }
    return out;
  }

  Random random_;
};

TEST(ResponsePropertiesTest, HoldForGeneratedResponses) {
  int readable = 0;
  constexpr int kCases = 60'000;
  for (int seed = 0; seed < kCases; ++seed) {
    const std::string bytes = Generator(seed).Response();
    const ResponseOutcome outcome = CheckResponse(bytes, /*duplicates=*/true);
    ASSERT_EQ(outcome.wrong, "") << "seed " << seed;
    readable += outcome.readable;
  }
  // Most are, so that there was something to compare.
  EXPECT_GT(readable, kCases * 9 / 10);
  EXPECT_LT(readable, kCases);
}

TEST(ResponsePropertiesTest, HoldForProtobufsOwnEncodings) {
  // Without repeated map keys: the check for secrets must be exact.
  int secrets = 0, plain = 0;
  for (int seed = 0; seed < 20'000; ++seed) {
    v1::RunFunctionResponse message;
    if (!ParseAsProtobufDoes(Generator(seed).Response(), &message)) continue;
    const std::string bytes = Deterministic(&message);
    ASSERT_EQ(CheckResponse(bytes, /*duplicates=*/false).wrong, "")
        << "seed " << seed;
    ++(HasSecrets(message) ? secrets : plain);
  }
  EXPECT_GT(secrets, 100);
  EXPECT_GT(plain, 100);
}

TEST(ResponsePropertiesTest, HoldForDamagedResponses) {
  int readable = 0, refused = 0;
  for (int seed = 0; seed < 40'000; ++seed) {
    Generator generator(seed);
    std::string bytes = generator.Response();
    if (bytes.empty()) continue;
    for (size_t flips = 1 + generator.Below(3); flips > 0; --flips) {
      bytes[generator.Below(bytes.size())] ^=
          static_cast<char>(1 << generator.Below(8));
    }
    if (generator.Below(4) == 0) bytes.resize(generator.Below(bytes.size()));
    const ResponseOutcome outcome = CheckResponse(bytes, /*duplicates=*/true);
    ASSERT_EQ(outcome.wrong, "") << "seed " << seed;
    ++(outcome.readable ? readable : refused);
  }
  EXPECT_GT(readable, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(ResponsePropertiesTest, HoldForEveryRecordedResponse) {
  const std::filesystem::path data = ::fncache::testing::DataFolder();
  if (!std::filesystem::exists(data / "recorded")) {
    GTEST_SKIP() << "no recordings in " << data;
  }
  int responses = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(data)) {
    const std::string name = file.path().filename();
    if (name.size() < 8 || name.substr(name.size() - 8) != ".rsp.bin") continue;
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const ResponseOutcome outcome = CheckResponse(bytes, /*duplicates=*/false);
    EXPECT_EQ(outcome.wrong, "") << file.path();
    EXPECT_TRUE(outcome.readable) << file.path();
    ++responses;
  }
  EXPECT_GT(responses, 0);
}

}  // namespace
}  // namespace fncache::cache
