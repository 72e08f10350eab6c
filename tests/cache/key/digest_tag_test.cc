// SPDX-License-Identifier: Apache-2.0
// `key: tag` and `key_hash: sha256`, sentence by sentence (DESIGN's key
// contract). The contract as a whole is digest_property_test's.
#include <sys/mman.h>

#include <set>
#include <string>
#include <vector>

#include "cache/key/digest.h"
#include "cache/key/tag_fields.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/request_data.h"

namespace fncache::cache::key {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

// As Crossplane writes it: SHA-256 in hex.
const char* const kTagA =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const char* const kTagB =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b856";

Digester MakeDigester(KeySource source, KeyHash hash = KeyHash::kXxh3) {
  return Digester(TestSeed(), {"f", "m", "g", source, hash}, MaskSet());
}

// The key in hex, or "none".
std::string KeyOf(const Digester& digester, absl::string_view bytes) {
  DigestScratch scratch;
  const Digest digest = digester.Compute({bytes}, &scratch);
  return digest.keyed ? digest.key.Hex() : "none";
}
std::string TagKey(absl::string_view bytes) {
  return KeyOf(MakeDigester(KeySource::kTag), bytes);
}
std::string ContentKey(absl::string_view bytes) {
  return KeyOf(MakeDigester(KeySource::kContent), bytes);
}

std::string Field(uint32_t number, absl::string_view bytes) {
  std::string out;
  wire::AppendBytesField(&out, number, bytes);
  return out;
}
std::string Entry(absl::string_view key, absl::string_view value) {
  return Field(1, Field(1, key) + Field(2, value));
}
std::string MapEntry(uint32_t number, absl::string_view key,
                     absl::string_view value) {
  return Field(number, Field(1, key) + Field(2, value));
}
std::string Text(absl::string_view text) { return Field(3, text); }
std::string Tag(absl::string_view tag) { return Field(1, tag); }
std::string Meta(absl::string_view tag, absl::string_view more = "") {
  return Field(1, Tag(tag) + std::string(more));
}

struct Difference {
  const char* what;
  std::string a;  // behind meta with kTagA
  std::string b;
};

TEST(TagKey, WhatTheTagStandsForDoesNotCount) {
  const Difference pairs[] = {
      {"observed", Field(2, Field(1, "")), Field(2, "")},
      {"observed or none", Field(2, Field(1, "")), ""},
      {"desired", Field(3, Field(1, "")), Field(3, "")},
      {"input", Field(4, Entry("a", Text("1"))),
       Field(4, Entry("a", Text("2")))},
      {"credentials", MapEntry(7, "a", ""), MapEntry(7, "b", "")},
      {"credentials or none", MapEntry(7, "a", ""), ""},
  };
  for (const Difference& pair : pairs) {
    const std::string a = Meta(kTagA) + pair.a;
    const std::string b = Meta(kTagA) + pair.b;
    EXPECT_EQ(TagKey(a), TagKey(b)) << pair.what;
    EXPECT_NE(TagKey(a), "none") << pair.what;
    EXPECT_NE(ContentKey(a), ContentKey(b)) << pair.what;
  }
}

TEST(TagKey, EverythingElseCounts) {
  const std::string resources = Field(1, Field(1, Entry("a", Text("1"))));
  const std::string other = Field(1, Field(1, Entry("a", Text("2"))));
  const Difference pairs[] = {
      {"context", Field(5, Entry("a", Text("1"))),
       Field(5, Entry("a", Text("2")))},
      {"context or none", Field(5, ""), ""},
      {"extra_resources", MapEntry(6, "a", resources), MapEntry(6, "a", other)},
      {"extra_resources' names", MapEntry(6, "a", ""), MapEntry(6, "b", "")},
      {"extra_resources or none", MapEntry(6, "a", ""), ""},
      {"required_resources", MapEntry(8, "a", resources),
       MapEntry(8, "a", other)},
      {"required_resources or none", MapEntry(8, "a", ""), ""},
      {"extra and required", MapEntry(6, "a", ""), MapEntry(8, "a", "")},
      {"required_schemas",
       MapEntry(9, "a", Field(1, Entry("type", Text("object")))),
       MapEntry(9, "a", Field(1, Entry("type", Text("array"))))},
      {"required_schemas or none", MapEntry(9, "a", ""), ""},
      {"capabilities", Field(1, "\x12\x01\x01"s), Field(1, "\x12\x01\x02"s)},
      {"capabilities or none", Field(1, "\x12\x01\x01"s), ""},
      {"capability 0 or none", Field(1, "\x12\x01\x00"s), ""},
      {"capabilities' order", Field(1, "\x12\x02\x01\x02"s),
       Field(1, "\x12\x02\x02\x01"s)},
      {"an unknown field of meta", Field(1, "\x50\x01"s), ""},
      {"its value", Field(1, "\x50\x01"s), Field(1, "\x50\x02"s)},
      {"a tag of another wire type", Field(1, "\x08\x01"s), ""},
      {"an unknown field", Field(10, "u"), ""},
      {"its number", Field(10, "u"), Field(11, "u")},
      {"its wire type", "\x50\x01"s, "\x52\x01\x01"s},
      {"its value, of many bytes", Field(2000, std::string(9000, 'u')),
       Field(2000, std::string(8999, 'u') + "v")},
      {"an unknown group", "\x53\x54"s, ""},
      {"what is in it", "\x53\x12\x00\x54"s, "\x53\x12\x01u\x54"s},
      {"unknown fields of one number in order", "\x50\x01\x50\x02"s,
       "\x50\x02\x50\x01"s},
      {"observed of another wire type", "\x10\x01"s, ""},
      {"desired of another wire type", "\x1d\x01\0\0\0"s, "\x1d\x02\0\0\0"s},
      {"input of another wire type", "\x23\x24"s, ""},
      {"credentials of another wire type", "\x39\x01\0\0\0\0\0\0\0"s, ""},
      {"meta of another wire type", "\x08\x01"s, ""},
      {"context of another wire type", "\x28\x01"s, "\x28\x02"s},
  };
  const std::string bulk = Field(2, Field(1, Field(1, Entry("k", Text("v")))));
  for (const Difference& pair : pairs) {
    for (const std::string& front : {std::string(), bulk}) {
      const std::string a = Meta(kTagA) + front + pair.a;
      const std::string b = Meta(kTagA) + front + pair.b;
      EXPECT_NE(TagKey(a), TagKey(b)) << pair.what;
      EXPECT_NE(TagKey(a), "none") << pair.what;
      EXPECT_NE(TagKey(b), "none") << pair.what;
    }
  }
}

TEST(TagKey, DifferentTagsAreNeverTakenAsOne) {
  std::set<std::string> keys;
  std::string upper = kTagA;
  upper[0] = 'E';
  for (const std::string& tag :
       {std::string(kTagA), std::string(kTagB), upper, std::string(64, '0'),
        std::string(64, 'f'), std::string(64, 'F')}) {
    EXPECT_TRUE(IsHexTag(tag));
    EXPECT_TRUE(keys.insert(TagKey(Meta(tag))).second) << tag;
    // Nor with what they stand for swapped.
    EXPECT_EQ(TagKey(Meta(tag) + Field(2, "")), TagKey(Meta(tag)));
  }
}

TEST(TagKey, ATagThatIsNot64HexDigitsFallsBackToContent) {
  std::set<std::string> keys;
  const std::string observed = Field(2, Field(1, ""));
  for (const std::string& tag :
       {""s, "fee"s, std::string(63, 'a'), std::string(65, 'a'),
        std::string(128, 'a'), std::string(63, 'a') + "g",
        std::string(63, 'a') + " ", std::string(63, 'a') + "\0"s,
        "-" + std::string(63, 'a'), "0x" + std::string(62, 'a'),
        std::string(62, 'a') + "\xc3\xa9", std::string(63, 'a') + "`",
        std::string(63, 'a') + "@", std::string(63, 'a') + ":",
        std::string(63, 'a') + "/", std::string(63, 'a') + "G"}) {
    EXPECT_FALSE(IsHexTag(tag)) << tag;
    const std::string bytes = Meta(tag) + observed;
    // As `key: content` would have it: all counts but the tag...
    EXPECT_EQ(TagKey(bytes), TagKey(Field(1, "") + observed)) << tag;
    EXPECT_NE(TagKey(bytes), TagKey(Meta(tag))) << tag;
    EXPECT_NE(TagKey(bytes), "none") << tag;
    // ... but under its own setting.
    EXPECT_NE(TagKey(bytes), ContentKey(bytes)) << tag;
    EXPECT_NE(TagKey(bytes), TagKey(Meta(kTagA) + observed)) << tag;
    keys.insert(TagKey(bytes));
  }
  EXPECT_EQ(keys.size(), 1);
  // Without meta, too.
  EXPECT_NE(TagKey(observed), TagKey(""));
  EXPECT_NE(TagKey(observed), TagKey(Field(1, "") + observed));
  // A fallback reads the whole request.
  EXPECT_EQ(TagKey(Meta("fee") + Field(2, "\x09")), "none");
  EXPECT_NE(TagKey(Meta(kTagA) + Field(2, "\x09")), "none");
}

TEST(TagKey, EverySettingHasItsOwnKeys) {
  std::set<std::string> keys;
  for (const KeySource source : {KeySource::kContent, KeySource::kTag}) {
    for (const KeyHash hash : {KeyHash::kXxh3, KeyHash::kSha256}) {
      const Digester digester = MakeDigester(source, hash);
      for (const std::string& bytes : {""s, Meta("fee"), Meta(kTagA)}) {
        // By content, the tags make no difference.
        const bool again =
            bytes == Meta(kTagA) && source == KeySource::kContent;
        EXPECT_NE(keys.insert(KeyOf(digester, bytes)).second, again);
      }
      // The same settings again: what was filled under them is found.
      EXPECT_EQ(KeyOf(MakeDigester(source, hash), Meta(kTagA)),
                KeyOf(digester, Meta(kTagA)));
    }
  }
  EXPECT_EQ(keys.size(), 10);
}

TEST(TagKey, EqualMessagesHaveOneKeyWhateverTheirEncoding) {
  const std::string caps = "\x12\x02\x01\x02"s;
  const std::string context =
      Field(5, Entry("a", Text("1")) + Entry("b", Text("2")));
  const std::string bulk = Field(2, Field(1, "")) + Field(3, "");
  const std::string key = TagKey(Meta(kTagA, caps) + bulk + context);
  const struct {
    const char* what;
    std::string bytes;
  } cases[] = {
      {"maps in another order",
       Meta(kTagA, caps) + bulk +
           Field(5, Entry("b", Text("2")) + Entry("a", Text("1")))},
      {"out of order", context + bulk + Meta(kTagA, caps)},
      {"bulk behind it", Meta(kTagA, caps) + context + bulk},
      {"bulk between the parts of a section",
       Meta(kTagA, caps) + Field(5, Entry("a", Text("1"))) + bulk +
           Field(5, Entry("b", Text("2")))},
      {"a map's key twice, the last one wins",
       Meta(kTagA, caps) + bulk + Field(5, Entry("a", Text("x"))) + context},
      {"meta in parts", Field(1, caps) + bulk + Field(1, Tag(kTagA)) + context},
      {"capabilities in parts",
       Field(1, "\x10\x01"s) + Meta(kTagA, "\x10\x02"s) + bulk + context},
      {"the last tag wins",
       Meta(kTagB, Tag("fee") + Tag(kTagA)) + Field(1, caps) + bulk + context},
      {"also of metas", Meta(kTagB, caps) + bulk + Meta(kTagA) + context},
      {"the tag behind the capabilities",
       Field(1, caps + Tag(kTagA)) + context + bulk},
      {"long varints", "\x8a\x80\x00\xc6\x80\x80\x00"s + Tag(kTagA) + caps +
                           bulk + "\xaa\x00"s + context.substr(1)},
      {"long varints of what is skipped",
       Meta(kTagA, caps) + "\x92\x80\x80\x00\x82\x80\x80\x80\x00\x0a\x00"s +
           context},
      {"a tag's upper bits do not count",
       Meta(kTagA, caps) + "\x92\x80\x80\x80\x70\x01x"s + context},
  };
  EXPECT_NE(key, "none");
  for (const auto& test : cases) {
    EXPECT_EQ(TagKey(test.bytes), key) << test.what;
  }
  // Unknown fields in order of their numbers, wherever they were.
  EXPECT_EQ(TagKey(Meta(kTagA) + "\x58\x02\x50\x01"s),
            TagKey("\x50\x01"s + Meta(kTagA) + Field(2, "") + "\x58\x02"s));
  EXPECT_EQ(TagKey(Meta(kTagA) + "\x53\x58\x01\x60\x02\x54"s),
            TagKey(Meta(kTagA) + "\x53\x60\x02\x58\x01\x54"s));
}

TEST(TagKey, TheLastTagCountsAndNoOther) {
  EXPECT_EQ(TagKey(Meta(kTagA) + Meta(kTagB)), TagKey(Meta(kTagB)));
  EXPECT_EQ(TagKey(Meta(kTagB, Tag(kTagA))), TagKey(Meta(kTagA)));
  // One that is no tag to go by, last: content, of which the bulk is.
  EXPECT_EQ(TagKey(Meta(kTagA) + Meta("fee") + Field(2, "")),
            TagKey(Meta("fee") + Field(2, "")));
  EXPECT_NE(TagKey(Meta(kTagA) + Meta("fee") + Field(2, "")),
            TagKey(Meta(kTagA) + Meta("fee")));
  EXPECT_EQ(TagKey(Meta(kTagA) + Meta("") + Field(2, "")),
            TagKey(Meta("") + Field(2, "")));
  // A later meta without one leaves it.
  EXPECT_EQ(TagKey(Meta(kTagA) + Field(1, "")), TagKey(Meta(kTagA)));
}

TEST(TagKey, TheCallersTagIsYielded) {
  DigestScratch scratch;
  const Digester digester = MakeDigester(KeySource::kTag);
  const auto tag = [&](const std::string& bytes) {
    return std::string(digester.Compute({bytes}, &scratch).tag);
  };
  EXPECT_EQ(tag(Meta(kTagA) + Field(2, "")), kTagA);
  EXPECT_EQ(tag(Field(5, "") + Meta(kTagB, Tag(kTagA))), kTagA);
  EXPECT_EQ(tag(Meta("fee") + Field(2, "")), "fee");
  EXPECT_EQ(tag(Field(2, "")), "");
  EXPECT_EQ(tag(Meta(kTagA) + "\x2a\x05"s), "");
}

TEST(TagKey, WhatIsReadMustBeWhatProtobufTakes) {
  const std::string meta = Meta(kTagA);
  for (const std::string& more :
       {"\x2a\x05"s, "\x12\x05"s, "\x12"s, "\x12\x80"s, "\x00"s, "\x00\x00"s,
        "\x54"s, "\x53"s, "\x53\x5c"s, "\x53\x58"s, "\x56"s, "\x57\x01"s,
        "\x50"s, "\x50\x80"s, "\x51\x01"s, "\x55\x01"s, "\x52\x05x"s,
        // Lengths and tags of more than five bytes, varints of more than ten.
        "\x12\x80\x80\x80\x80\x80\x00"s, "\x92\x80\x80\x80\x80\x00\x00"s,
        "\x12\xff\xff\xff\xff\x0f"s, "\x12\xf0\xff\xff\xff\x07"s,
        "\x50"s + std::string(10, '\x80') + "\x00"s,
        Field(1, Tag("\xff") + Tag(kTagA)), Field(1, "\x12\x01\x80"s),
        Field(1, "\x0a"s), Field(5, Entry("\xff", "")),
        Field(5, Entry("a", Text("\xed\xa0\x80"))), Field(5, "\x0a\x05"s),
        MapEntry(6, "\xff", ""), MapEntry(8, "a", "\x0a\x01"s),
        MapEntry(9, "a", Field(1, Entry("\xc0\xaf", "")))}) {
    EXPECT_EQ(TagKey(meta + more), "none") << ::testing::PrintToString(more);
    EXPECT_EQ(TagKey(meta + Field(2, "") + more), "none")
        << ::testing::PrintToString(more);
    google::protobuf::LogSilencer silence;
    apiextensions::fn::proto::v1::RunFunctionRequest request;
    EXPECT_FALSE(request.ParseFromString(meta + more))
        << ::testing::PrintToString(more);
  }
}

TEST(TagKey, WhatIsSkippedMayHoldAnything) {
  const std::string key = TagKey(Meta(kTagA));
  std::string nested;
  for (int level = 0; level < 20000; ++level) nested = Field(1, nested);
  for (const uint32_t number : {2, 3, 4, 7}) {
    for (const std::string& bytes :
         {"\xff"s, "\x00"s, "\x0a\x05"s, Field(1, "\xff"), nested,
          std::string(3 << 20, '\x53'), std::string(127, '\xff'),
          std::string(128, '\xff')}) {
      EXPECT_EQ(TagKey(Meta(kTagA) + Field(number, bytes)), key) << number;
      EXPECT_EQ(ContentKey(Meta(kTagA) + Field(number, bytes)), "none");
    }
  }
}

TEST(TagKey, WhatIsReadIsKeyedAThousandLevelsDeepAndNoMore) {
  const auto groups = [](int levels) {
    return std::string(levels, '\x53') + std::string(levels, '\x54');
  };
  const auto required = [](int levels) {
    // required_resources, entry, Resources, items...: the innermost bytes are
    // an unknown group of the Resource.
    const int above = 3;
    return MapEntry(8, "a",
                    Field(1, std::string(levels - above, '\x53') +
                                 std::string(levels - above, '\x54')));
  };
  for (const int levels : {500, 999, 1000}) {
    EXPECT_NE(TagKey(Meta(kTagA) + groups(levels)), "none") << levels;
    EXPECT_NE(TagKey(Meta(kTagA) + required(levels)), "none") << levels;
    // By the slow path.
    EXPECT_EQ(TagKey(groups(levels) + Meta(kTagA)),
              TagKey(Meta(kTagA) + groups(levels)));
  }
  for (const int levels : {1001, 1002, 20000, 3000000}) {
    EXPECT_EQ(TagKey(Meta(kTagA) + groups(levels)), "none") << levels;
    EXPECT_EQ(TagKey(groups(levels) + Meta(kTagA)), "none") << levels;
    EXPECT_EQ(TagKey(Meta(kTagA) + required(levels)), "none") << levels;
  }
}

TEST(TagKey, SlicesAreOneRequest) {
  const std::string bytes =
      Meta(kTagA, "\x12\x02\x01\x02"s) + Field(2, std::string(200, '\xff')) +
      Field(5, Entry("a", Text("b"))) + MapEntry(7, "x", "\xff") +
      "\x53\x58\x01\x54\x51"s + "8 bytes." + "\x55"s + "four" +
      Field(2000, "unknown");
  DigestScratch scratch;
  const Digester digester = MakeDigester(KeySource::kTag);
  const Digest whole = digester.Compute({bytes}, &scratch);
  ASSERT_TRUE(whole.keyed);
  const Key key = whole.key;
  const absl::string_view view = bytes;
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const Digest digest =
        digester.Compute({view.substr(0, cut), "", view.substr(cut)}, &scratch);
    EXPECT_TRUE(digest.keyed);
    EXPECT_EQ(digest.key, key);
    EXPECT_EQ(digest.tag, kTagA);
    if (cut < bytes.size()) {
      // The loss of the cut bytes is noticed, unless they were whole fields.
      std::string front;
      const bool fields = AppendTagFields({view.substr(0, cut)}, &front);
      apiextensions::fn::proto::v1::RunFunctionRequest request;
      EXPECT_EQ(digester.Compute({view.substr(0, cut)}, &scratch).keyed,
                fields && request.ParseFromString(front));
    }
  }
  std::vector<absl::string_view> bytewise;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytewise.push_back(view.substr(i, 1));
  }
  EXPECT_EQ(digester.Compute(bytewise, &scratch).key, key);
  EXPECT_EQ(digester.Compute({}, &scratch).key.Hex(), TagKey(""));
  EXPECT_EQ(digester.Compute({"", ""}, &scratch).key.Hex(), TagKey(""));
}

TEST(TagKey, TheSkippedBytesAreNotRead) {
  constexpr size_t kSize = 1 << 20;
  void* const pages =
      mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  // Reading any of these bytes would end the test.
  const absl::string_view unreadable(static_cast<const char*>(pages), kSize);
  std::string head = Meta(kTagA);
  wire::AppendVarint(&head, wire::MakeTag(2, wire::WireType::kBytes));
  wire::AppendVarint(&head, unreadable.size() + 5);
  head += "front";
  const std::string tail = Field(5, Entry("a", ""));
  DigestScratch scratch;
  const Digest digest =
      MakeDigester(KeySource::kTag).Compute({head, unreadable, tail}, &scratch);
  EXPECT_TRUE(digest.keyed);
  EXPECT_EQ(digest.key.Hex(), TagKey(Meta(kTagA) + tail));
  munmap(pages, kSize);
}

TEST(TagKey, TheScratchServesLargeAndSmallRequestsInTurn) {
  DigestScratch scratch;
  const Digester digester = MakeDigester(KeySource::kTag, KeyHash::kSha256);
  const std::string unknown = Field(2000, std::string(6 << 20, 'u'));
  const std::string large = Meta(kTagA) + unknown;
  const std::string large_slow = unknown + Meta(kTagA);
  const std::string large_content = Meta("of the large one") + unknown;
  const std::string small = Meta(kTagB) + Field(2, "x");
  const std::string large_key = KeyOf(digester, large);
  const std::string content_key = KeyOf(digester, large_content);
  const std::string small_key = KeyOf(digester, small);
  for (int i = 0; i < 3; ++i) {
    Digest digest = digester.Compute({large}, &scratch);
    EXPECT_EQ(digest.key.Hex(), large_key);
    EXPECT_EQ(digest.tag, kTagA);
    digest = digester.Compute({large_slow}, &scratch);
    EXPECT_EQ(digest.key.Hex(), large_key);
    EXPECT_EQ(digest.tag, kTagA);
    digest = digester.Compute({large_content}, &scratch);
    EXPECT_EQ(digest.key.Hex(), content_key);
    EXPECT_EQ(digest.tag, "of the large one");
    digest = digester.Compute({small}, &scratch);
    EXPECT_EQ(digest.key.Hex(), small_key);
    EXPECT_EQ(digest.tag, kTagB);
  }
}

TEST(TagKey, RecordedRequestsTellApartWhatTheirTagsDo) {
  std::set<std::string> keys;
  std::set<std::string> tags;
  const std::vector<std::string> requests =
      RequestsBelow(std::filesystem::path(FNCACHE_SOURCE_DIR) / "tests" /
                    "data" / "recorded");
  ASSERT_GE(requests.size(), 12);
  for (const std::string& bytes : requests) {
    DigestScratch scratch;
    const Digest digest =
        MakeDigester(KeySource::kTag).Compute({bytes}, &scratch);
    EXPECT_TRUE(digest.keyed);
    EXPECT_TRUE(IsHexTag(digest.tag)) << digest.tag;
    tags.insert(std::string(digest.tag));
    keys.insert(digest.key.Hex());
  }
  EXPECT_GE(keys.size(), tags.size());
  EXPECT_GT(tags.size(), 5);
}

TEST(TagKey, TheSkippedFieldsAreThoseOfTheContract) {
  for (size_t i = 0; i < wire::kRunFunctionRequestType.field_count; ++i) {
    const wire::FieldType& field = wire::kRunFunctionRequestType.fields[i];
    const std::set<absl::string_view> skipped = {"observed", "desired", "input",
                                                 "credentials"};
    EXPECT_EQ(
        IsSkippedByTag(wire::MakeTag(field.number, wire::WireType::kBytes)),
        skipped.count(field.name) == 1)
        << field.name;
    for (const wire::WireType type :
         {wire::WireType::kVarint, wire::WireType::kFixed64,
          wire::WireType::kStartGroup, wire::WireType::kEndGroup,
          wire::WireType::kFixed32}) {
      EXPECT_FALSE(IsSkippedByTag(wire::MakeTag(field.number, type)))
          << field.name;
    }
  }
}

TEST(Sha256Key, IsUnderTheSeed) {
  Seed other = TestSeed();
  ++other[31];
  const KeyScope scope = {"f", "m", "g", KeySource::kContent, KeyHash::kSha256};
  EXPECT_NE(KeyOf(Digester(other, scope, MaskSet()), ""),
            KeyOf(Digester(TestSeed(), scope, MaskSet()), ""));
}

TEST(Sha256Key, KeepsTheContract) {
  const Digester digester = MakeDigester(KeySource::kContent, KeyHash::kSha256);
  const std::string ab =
      Field(5, Entry("a", Text("1")) + Entry("b", Text("2")));
  const std::string ba =
      Field(5, Entry("b", Text("2")) + Entry("a", Text("1")));
  EXPECT_EQ(KeyOf(digester, Meta("x") + ab), KeyOf(digester, Meta("y") + ba));
  EXPECT_NE(KeyOf(digester, ab), KeyOf(digester, ba + "\x50\x01"s));
  EXPECT_EQ(KeyOf(digester, "\x2a\x05"s), "none");
  const Digester masked(TestSeed(),
                        {"f", "m", "g", KeySource::kContent, KeyHash::kSha256},
                        *MaskSet::Parse({"context.b"}));
  EXPECT_EQ(KeyOf(masked, ab), KeyOf(masked, Field(5, Entry("a", Text("1")))));
}

}  // namespace
}  // namespace fncache::cache::key
