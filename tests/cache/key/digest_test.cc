// SPDX-License-Identifier: Apache-2.0
#include "cache/key/digest.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cache/key/canonical_walk.h"
#include "cache/key/reencode.h"
#include "cache/wire/wire.h"
#include "common/method.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/request_data.h"

namespace fncache::cache::key {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

Digester MakeDigester(const std::vector<std::string>& masks = {}) {
  return Digester(TestSeed(), {"function", kRunFunctionV1, "none"},
                  *MaskSet::Parse(masks, MaskRules::kAnyPath));
}

// The key in hex, or "none".
std::string KeyOf(const Digester& digester, absl::string_view bytes) {
  DigestScratch scratch;
  const Digest digest = digester.Compute({bytes}, &scratch);
  return digest.keyed ? digest.key.Hex() : "none";
}
std::string KeyOf(absl::string_view bytes) {
  return KeyOf(MakeDigester(), bytes);
}

bool TakesFastPath(const std::string& bytes) {
  CanonicalWalk walk;
  absl::string_view tag;
  std::string out(CanonicalWalk::Capacity(bytes.size()), '\0');
  return walk.Run(bytes, nullptr, wire::kMaxDepth, nullptr, out.data(), &tag) !=
         nullptr;
}

std::string Field(uint32_t number, absl::string_view bytes) {
  std::string out;
  wire::AppendBytesField(&out, number, bytes);
  return out;
}

// A request whose context has these bytes.
std::string Context(absl::string_view bytes) { return Field(5, bytes); }
// An entry of a Struct.
std::string Entry(absl::string_view key, absl::string_view value) {
  return Field(1, Field(1, key) + Field(2, value));
}
std::string Text(absl::string_view text) { return Field(3, text); }

// Each folder below `root` holds one message as several encoders wrote it.
int CheckEncodings(const std::filesystem::path& root) {
  std::map<std::string, std::string> folder_of;
  int files = 0;
  for (const auto& folder : std::filesystem::directory_iterator(root)) {
    std::set<std::string> keys;
    for (const std::string& bytes : RequestsBelow(folder.path())) {
      keys.insert(KeyOf(bytes));
      EXPECT_TRUE(TakesFastPath(bytes)) << folder.path();
      ++files;
    }
    EXPECT_EQ(keys.size(), 1) << folder.path();
    if (keys.empty()) continue;
    EXPECT_EQ(keys.count("none"), 0) << folder.path();
    EXPECT_TRUE(folder_of.emplace(*keys.begin(), folder.path()).second)
        << folder.path() << " and " << folder_of[*keys.begin()];
  }
  return files;
}

TEST(Digest, EveryEncodersFormOfAMessageHasOneKeyAndNoTwoMessagesShareOne) {
  EXPECT_GE(CheckEncodings(std::filesystem::path(FNCACHE_SOURCE_DIR) / "tests" /
                           "data" / "encodings"),
            44);
}

// Messages with empty keys and values, as Go, Java, Rust (prost), Python,
// protobufjs and ts-proto write them.
TEST(Digest, EveryEncoderTakesTheFastPathWithWhatItLeavesOutOrWritesAnyway) {
  EXPECT_GE(CheckEncodings(std::filesystem::path(FNCACHE_SOURCE_DIR) / "tests" /
                           "data" / "encoders"),
            29);
}

TEST(Digest, EveryEncodersFormInTheTestDataFolderToo) {
  for (const char* name : {"encodings", "encoders"}) {
    const std::filesystem::path root = DataFolder() / name;
    if (!std::filesystem::exists(root)) {
      GTEST_SKIP() << root << " is absent";
    }
    EXPECT_GE(CheckEncodings(root), 1);
  }
}

TEST(Digest, RecordedRequestsTakeTheFastPathAndSlowPathAgrees) {
  const std::vector<std::string> requests = RecordedRequests();
  if (requests.empty()) GTEST_SKIP() << DataFolder() << " is absent";
  for (const std::string& bytes : requests) {
    EXPECT_TRUE(TakesFastPath(bytes));
    std::string plain;
    ASSERT_TRUE(Reencode(bytes, &plain));
    EXPECT_EQ(KeyOf(plain), KeyOf(bytes));
  }
}

TEST(Digest, TheTagIsYieldedAndNotOfTheKey) {
  DigestScratch scratch;
  const Digester digester = MakeDigester();
  const std::string caps = "\x12\x02\x01\x02"s;
  const std::string a = Field(1, Field(1, "one") + caps);
  const std::string b = Field(1, Field(1, std::string(200, 't')) + caps);
  const std::string none = Field(1, caps);
  EXPECT_EQ(digester.Compute({a}, &scratch).tag, "one");
  EXPECT_EQ(digester.Compute({b}, &scratch).tag, std::string(200, 't'));
  EXPECT_EQ(digester.Compute({none}, &scratch).tag, "");
  EXPECT_EQ(KeyOf(a), KeyOf(b));
  EXPECT_EQ(KeyOf(a), KeyOf(none));
  // The message around it counts.
  EXPECT_NE(KeyOf(Field(1, "")), KeyOf(""));
  EXPECT_EQ(KeyOf(Field(1, Field(1, "t"))), KeyOf(Field(1, "")));
  // By the slow path: the last tag counts, wherever it is.
  const std::string split = Field(1, caps) + Field(5, "") +
                            Field(1, Field(1, "x") + Field(1, "last"));
  const Digest digest = digester.Compute({split}, &scratch);
  EXPECT_TRUE(digest.keyed);
  EXPECT_EQ(digest.tag, "last");
  EXPECT_EQ(digest.key.Hex(), KeyOf(none + Field(5, "")));
  // Masking meta does not hide the tag.
  EXPECT_EQ(MakeDigester({"meta"}).Compute({a}, &scratch).tag, "one");
  EXPECT_EQ(KeyOf(MakeDigester({"meta"}), a),
            KeyOf(MakeDigester({"meta"}), ""));
}

TEST(Digest, SlicesAreOneRequest) {
  const std::string bytes =
      Field(1, Field(1, "the tag")) + Context(Entry("a", Text("b")));
  DigestScratch scratch;
  const Digester digester = MakeDigester();
  const Key whole = digester.Compute({bytes}, &scratch).key;
  const absl::string_view view = bytes;
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const Digest digest =
        digester.Compute({view.substr(0, cut), "", view.substr(cut)}, &scratch);
    EXPECT_TRUE(digest.keyed);
    EXPECT_EQ(digest.key, whole);
    EXPECT_EQ(digest.tag, "the tag");
  }
  EXPECT_EQ(digester.Compute({}, &scratch).key.Hex(), KeyOf(""));
}

TEST(Digest, TheScopeIsOfTheKey) {
  const MaskSet none;
  const MaskSet mask = *MaskSet::Parse({"context.a"});
  const MaskSet masks = *MaskSet::Parse({"context.a", "context.b"});
  std::set<std::string> keys;
  const auto add = [&keys](const Seed& seed, const KeyScope& scope,
                           const MaskSet& set) {
    EXPECT_TRUE(keys.insert(KeyOf(Digester(seed, scope, set), "")).second);
  };
  Seed other = TestSeed();
  ++other[31];
  add(TestSeed(), {"f", "m", "g"}, none);
  add(other, {"f", "m", "g"}, none);
  add(TestSeed(), {"fm", "", "g"}, none);
  add(TestSeed(), {"f", "", "mg"}, none);
  add(TestSeed(), {"", "fm", "g"}, none);
  add(TestSeed(), {"g", "m", "f"}, none);
  add(TestSeed(), {"f", "m", "g"}, mask);
  add(TestSeed(), {"f", "m", "g"}, masks);
  // However the same masks are written.
  const MaskSet same =
      *MaskSet::Parse({"context.\"b\"", "context.a", "context.a.x"});
  EXPECT_FALSE(
      keys.insert(KeyOf(Digester(TestSeed(), {"f", "m", "g"}, same), ""))
          .second);
}

TEST(Digest, MasksThatLeftNothingOutAreKnown) {
  const MaskSet masks = *MaskSet::Parse(
      {"context.a.x", "context.*.y.*.z", "context.b", "context.c.z.*"},
      MaskRules::kAnyPath);
  const Digester digester(TestSeed(), {"f", "m", "g"}, masks);
  EXPECT_EQ(masks.Unmatched(), masks.canonical());
  KeyOf(digester, Context(Entry("a", Field(5, Entry("w", Text("1"))))));
  EXPECT_EQ(masks.Unmatched(), masks.canonical());
  KeyOf(digester, Context(Entry("a", Field(5, Entry("x", Text("1"))))));
  EXPECT_THAT(
      masks.Unmatched(),
      ::testing::ElementsAre("context.*.y.*.z", "context.b", "context.c.z.*"));
  // Below a name that another path has, and in a list.
  const std::string list = Field(6, Field(1, Field(5, Entry("z", Text("1")))));
  KeyOf(digester, Context(Entry("a", Field(5, Entry("y", list)))));
  const std::string texts = Field(6, Field(1, Text("1")));
  KeyOf(digester, Context(Entry("c", Field(5, Entry("z", texts)))));
  EXPECT_THAT(masks.Unmatched(), ::testing::ElementsAre("context.b"));
}

struct Pair {
  const char* what;
  std::string a;
  std::string b;
};

TEST(Digest, EqualMessagesHaveEqualKeys) {
  const std::string ab = Context(Entry("a", Text("1")) + Entry("b", Text("2")));
  const std::string meta12 = Field(1, "\x12\x02\x01\x02"s);
  const Pair pairs[] = {
      {"map order", ab, Context(Entry("b", Text("2")) + Entry("a", Text("1")))},
      {"repeated key: the last wins", ab,
       Context(Entry("a", Text("x")) + Entry("b", Text("2")) +
               Entry("a", Text("1")))},
      {"split message", ab,
       Context(Entry("a", Text("1"))) + Context(Entry("b", Text("2")))},
      {"value before key", ab,
       Context(Field(1, Field(2, Text("1")) + Field(1, "a")) +
               Entry("b", Text("2")))},
      {"unknown fields in a map entry are dropped", ab,
       Context(Field(1, Field(1, "a") + Field(2, Text("1")) + Field(7, "u")) +
               Entry("b", Text("2")))},
      {"no value is an empty value", Context(Entry("a", "")),
       Context(Field(1, Field(1, "a")))},
      {"no key is the empty key", Context(Entry("", Text("1"))),
       Context(Field(1, Field(2, Text("1"))))},
      {"an empty entry", Context(Entry("", "")), Context(Field(1, ""))},
      {"long length", Context(Entry("a", "")),
       "\x2a\x87\x80\x00"s + Entry("a", "")},
      {"long tag", Context(""), "\xaa\x80\x00\x00"s},
      {"last of a oneof", Context(Entry("a", Text("1"))),
       Context(Entry("a", "\x20\x01"s + Text("1")))},
      {"the messages of a oneof merge",
       Context(Entry("a", Field(5, Entry("x", "") + Entry("y", "")))),
       Context(
           Entry("a", Field(5, Entry("x", "")) + Field(5, Entry("y", ""))))},
      {"lists of a oneof join",
       Context(Entry("a", Field(6, Field(1, Text("1")) + Field(1, Text("2"))))),
       Context(Entry("a", Field(6, Field(1, Text("1"))) +
                              Field(6, Field(1, Text("2")))))},
      {"unpacked", meta12, Field(1, "\x10\x01\x10\x02"s)},
      {"both", meta12, Field(1, "\x12\x01\x01\x10\x02"s)},
      {"packed twice", meta12, Field(1, "\x12\x01\x01\x12\x00\x12\x01\x02"s)},
      {"packed with long varints", meta12,
       Field(1, "\x12\x05\x81\x00\x82\x80\x00"s)},
      {"enum modulo 32 bits", meta12,
       Field(1, "\x10\x01\x10\x82\x80\x80\x80\x10"s)},
      {"fields out of order", Field(2, "") + Field(3, ""),
       Field(3, "") + Field(2, "")},
      {"explicit default of a scalar", Field(2, Field(1, "")),
       Field(2, Field(1, "\x18\x00"s))},
      {"a bool is a bool", Context(Entry("a", "\x20\x01"s)),
       Context(Entry("a", "\x20\x80\x80\x80\x80\x10"s))},
      {"unknown fields in order of numbers", "\x50\x01\x58\x02"s,
       "\x58\x02\x50\x01"s},
      {"unknown fields behind known ones", Field(5, "") + "\x50\x01"s,
       "\x50\x01"s + Field(5, "")},
      {"unknown long varint", "\x50\x01"s, "\x50\x81\x00"s},
      {"unknown fields of a group in order", "\x53\x58\x01\x60\x02\x54"s,
       "\x53\x60\x02\x58\x01\x54"s},
      {"a wrong wire type is an unknown field", Field(5, "") + "\x10\x01"s,
       "\x10\x01"s + Field(5, "")},
      {"unknown fields of a value",
       Context(Entry("a", Text("1") + "\x50\x01"s)),
       Context(Entry("a", "\x50\x01"s + Text("1")))},
  };
  for (const Pair& pair : pairs) {
    EXPECT_EQ(KeyOf(pair.a), KeyOf(pair.b)) << pair.what;
    EXPECT_NE(KeyOf(pair.a), "none") << pair.what;
    EXPECT_TRUE(TakesFastPath(pair.a)) << pair.what;
  }
}

TEST(Digest, WhatEncodersWriteInTheirOwnWayTakesTheFastPath) {
  const std::string meta = Field(1, Field(1, "t") + "\x12\x01\x01"s);
  const std::string struct_of_a = Field(1, Entry("a", Text("1")));
  const std::string ready = "\x18\x01"s;
  const auto state = [](const std::string& entries) {
    return Field(2, entries);
  };
  const std::string a = Field(2, Field(1, "a") + Field(2, struct_of_a));
  const std::string b = Field(2, Field(1, "b") + Field(2, ""));
  const Pair pairs[] = {
      {"no value", state(b), state(Field(2, Field(1, "b")))},
      {"no key", state(Field(2, Field(1, "") + Field(2, struct_of_a))),
       state(Field(2, Field(2, struct_of_a)))},
      {"value before key", state(a),
       state(Field(2, Field(2, struct_of_a) + Field(1, "a")))},
      {"no bytes", Field(2, Field(1, Field(2, Field(1, "k") + Field(2, "")))),
       Field(2, Field(1, Field(2, Field(1, "k"))))},
      {"a default", Field(2, Field(1, struct_of_a)),
       Field(2, Field(1, struct_of_a + "\x18\x00"s))},
      {"an empty tag", Field(1, "\x12\x01\x01"s),
       Field(1, Field(1, "") + "\x12\x01\x01"s)},
      {"an empty list", Field(1, Field(1, "t")),
       Field(1, Field(1, "t") + Field(2, ""))},
      {"fields of the request", meta + state(a + b) + Field(5, ""),
       Field(5, "") + state(a + b) + meta},
      {"fields of messages in it",
       Field(1, Field(1, "t") + "\x12\x01\x01"s) +
           Field(2, Field(1, struct_of_a + ready)),
       Field(1, "\x12\x01\x01"s + Field(1, "t")) +
           Field(2, Field(1, ready + struct_of_a))},
      {"a map in pieces", Field(2, Field(1, struct_of_a) + a + b),
       Field(2, b + Field(1, struct_of_a) + a)},
      {"unknown fields before some that are out of order",
       Field(3, "") + Field(4, "") + Field(5, "") + Field(15, ""),
       Field(15, "") + Field(3, "") + Field(5, "") + Field(4, "")},
      {"unknown fields anywhere", meta + Field(5, "") + "\x50\x01\x58\x02"s,
       "\x58\x02"s + Field(5, "") + "\x50\x01"s + meta},
  };
  for (const Pair& pair : pairs) {
    EXPECT_EQ(KeyOf(pair.a), KeyOf(pair.b)) << pair.what;
    EXPECT_NE(KeyOf(pair.a), "none") << pair.what;
    EXPECT_TRUE(TakesFastPath(pair.a)) << pair.what;
    EXPECT_TRUE(TakesFastPath(pair.b)) << pair.what;
  }
  // Fields that have to be merged, or of which the last one counts, do not.
  for (const std::string& bytes :
       {meta + Field(5, "") + meta, Field(2, Field(1, ready + ready)),
        state(b + Field(2, Field(1, "b"))), Field(2, a + Field(1, "") + a)}) {
    EXPECT_NE(KeyOf(bytes), "none");
    EXPECT_FALSE(TakesFastPath(bytes)) << ::testing::PrintToString(bytes);
  }
}

TEST(Digest, DifferentMessagesHaveDifferentKeys) {
  const std::string zero = "\x11\0\0\0\0\0\0\0\0"s;
  const std::string minus_zero = "\x11\0\0\0\0\0\0\0\x80"s;
  const std::string nan = "\x11\0\0\0\0\0\0\xf8\x7f"s;
  const std::string other_nan = "\x11\1\0\0\0\0\0\xf8\x7f"s;
  const Pair pairs[] = {
      {"0.0 and -0.0", Context(Entry("a", zero)),
       Context(Entry("a", minus_zero))},
      {"NaNs", Context(Entry("a", nan)), Context(Entry("a", other_nan))},
      {"empty and absent message", Context(""), ""},
      {"empty and absent struct in a value", Context(Entry("a", Field(5, ""))),
       Context(Entry("a", ""))},
      {"null and no kind", Context(Entry("a", "\x08\x00"s)),
       Context(Entry("a", ""))},
      {"null and another", Context(Entry("a", "\x08\x00"s)),
       Context(Entry("a", "\x08\x01"s))},
      {"struct and list", Context(Entry("a", Field(5, ""))),
       Context(Entry("a", Field(6, "")))},
      {"empty string and no kind", Context(Entry("a", Text(""))),
       Context(Entry("a", ""))},
      {"false and no kind", Context(Entry("a", "\x20\x00"s)),
       Context(Entry("a", ""))},
      {"zero and no kind", Context(Entry("a", zero)), Context(Entry("a", ""))},
      {"key and no entry", Context(Entry("", "")), Context("")},
      {"key that goes on with a NUL", Context(Entry("a", "")),
       Context(Entry("a\0"s, ""))},
      {"list order",
       Context(Entry("a", Field(6, Field(1, Text("1")) + Field(1, Text("2"))))),
       Context(
           Entry("a", Field(6, Field(1, Text("2")) + Field(1, Text("1")))))},
      {"observed and desired", Field(2, ""), Field(3, "")},
      {"capabilities count", Field(1, "\x12\x01\x01"s),
       Field(1, "\x12\x01\x02"s)},
      {"capabilities' order", Field(1, "\x12\x02\x01\x02"s),
       Field(1, "\x12\x02\x02\x01"s)},
      {"capability 0 and none", Field(1, "\x12\x01\x00"s), Field(1, "")},
      {"unknown fields", "\x50\x01"s, ""},
      {"unknown values", "\x50\x01"s, "\x50\x02"s},
      {"unknown wire types", "\x50\x01"s, "\x52\x01\x01"s},
      {"unknown in order of one number", "\x50\x01\x50\x02"s,
       "\x50\x02\x50\x01"s},
      {"unknown group and bytes", "\x53\x58\x01\x54"s, "\x52\x02\x58\x01"s},
      {"unknown field within and behind", Context("\x50\x01"s),
       Context("") + "\x50\x01"s},
      {"ready", Field(2, Field(1, "\x18\x01"s)),
       Field(2, Field(1, "\x18\x02"s))},
      {"key and value boundary", Context(Entry("ab", Text("c"))),
       Context(Entry("a", Text("bc")))},
      {"credentials and extra resources",
       Field(7, Field(1, Field(1, "a") + Field(2, ""))),
       Field(6, Field(1, Field(1, "a") + Field(2, "")))},
      {"empty and absent credential data",
       Field(7, Field(1, "a") + Field(2, Field(1, ""))),
       Field(7, Field(1, "a") + Field(2, ""))},
  };
  for (const Pair& pair : pairs) {
    EXPECT_NE(KeyOf(pair.a), KeyOf(pair.b)) << pair.what;
    EXPECT_NE(KeyOf(pair.a), "none") << pair.what;
    EXPECT_NE(KeyOf(pair.b), "none") << pair.what;
  }
}

TEST(Digest, WhatProtobufRefusesIsNotKeyed) {
  for (const std::string& bytes :
       {"\x2a\x05"s, "\x00"s, "\x2c"s, "\x53"s, "\x54"s, "\x56"s, "\x2e"s,
        Field(1, Field(1, "\xff")), Context(Entry("\xff", "")),
        Context(Entry("a", Text("\xed\xa0\x80"))), Context(Entry("a", "\x08"s)),
        Context(Entry("a", "\x77"s)), Context(Entry("a", "\x20"s)),
        Context(Entry("a", "\x11\x01"s)),
        Field(1, Field(1, "\xff") + Field(1, "t")),
        Field(8, Field(1, "\xc0\xaf") + Field(2, ""))}) {
    EXPECT_EQ(KeyOf(bytes), "none") << ::testing::PrintToString(bytes);
    apiextensions::fn::proto::v1::RunFunctionRequest request;
    EXPECT_FALSE(request.ParseFromString(bytes));
  }
  // bytes fields hold anything.
  EXPECT_NE(
      KeyOf(Field(2, Field(1, Field(2, Field(1, "k") + Field(2, "\xff"))))),
      "none");
}

TEST(Digest, InvalidBytesUnderAMaskAreRefusedAllTheSame) {
  const Digester digester = MakeDigester({"context.a", "input", "meta.tag"});
  EXPECT_EQ(KeyOf(digester, Context(Entry("a", Text("\xff")))), "none");
  EXPECT_EQ(KeyOf(digester, Field(4, Entry("a", Text("\xff")))), "none");
  EXPECT_EQ(KeyOf(digester, Field(1, Field(1, "\xff"))), "none");
  EXPECT_NE(KeyOf(digester, Context(Entry("a", Text("f")))), "none");
}

// `levels` messages below the request, in `context`.
std::string NestedStructs(int levels) {
  std::string bytes;
  const uint32_t numbers[] = {5, 1, 2};
  for (int level = levels; level > 1; --level) {
    const uint32_t number = numbers[(level - 1) % 3];
    // Entries are plain only with their key before their value.
    const bool value = number == 2;
    if (level == levels && number == 1) bytes = Field(1, "") + Field(2, "");
    bytes = (value ? Field(1, "k") : std::string()) + Field(number, bytes);
  }
  return Field(5, bytes);
}

std::string NestedLists(int levels) {
  std::string bytes;
  for (int level = levels; level > 3; --level) {
    bytes = Field(level % 2 == 0 ? 6 : 1, bytes);
  }
  return Context(Field(1, Field(1, "k") + Field(2, bytes)));
}

std::string NestedGroups(int levels) {
  return std::string(levels, '\x53') + std::string(levels, '\x54');
}

TEST(Digest, AThousandLevelsAreKeyedAndNoMore) {
  for (const auto& nested : {NestedStructs, NestedLists, NestedGroups}) {
    for (int levels : {4, 100, 101, 500, 997, 998, 999, 1000}) {
      EXPECT_NE(KeyOf(nested(levels)), "none") << levels;
      // By the slow path too: `desired` behind it comes out of order.
      EXPECT_EQ(KeyOf(nested(levels) + Field(3, "")),
                KeyOf(Field(3, "") + nested(levels)))
          << levels;
    }
    for (int levels : {1001, 1002, 1003, 1004, 20000}) {
      apiextensions::fn::proto::v1::RunFunctionRequest request;
      EXPECT_FALSE(ParseRequest(nested(levels), &request));
      EXPECT_EQ(KeyOf(nested(levels)), "none") << levels;
      EXPECT_EQ(KeyOf(nested(levels) + Field(3, "")), "none") << levels;
      EXPECT_EQ(KeyOf(MakeDigester({"context.*.*.x"}), nested(levels)), "none");
    }
  }
}

TEST(Digest, AnEntryWithoutValueAtTheLastLevelIsKeyed) {
  // An entry at level 1,000 cannot have a value (that would be level 1,001); as
  // a message it has an empty one all the same.
  const auto nested = [](std::string bytes) {
    for (int level = 999; level > 3; --level) {
      if (level % 3 == 0) bytes = Field(5, bytes);
      if (level % 3 == 2) bytes = Field(1, "k") + Field(2, bytes);
      if (level % 3 == 1) bytes = Field(1, bytes);
    }
    return Field(2, Field(1, Field(1, bytes)));
  };
  const std::string without = nested(Field(1, Field(1, "last")));
  const std::string with = nested(Entry("last", ""));
  apiextensions::fn::proto::v1::RunFunctionRequest request;
  EXPECT_TRUE(ParseRequest(without, &request));
  EXPECT_FALSE(ParseRequest(with, &request));
  EXPECT_NE(KeyOf(without), "none");
  EXPECT_EQ(KeyOf(with), "none");
}

TEST(Digest, TheScratchServesLargeAndSmallRequestsInTurn) {
  DigestScratch scratch;
  const Digester digester = MakeDigester();
  std::string entries;
  for (int i = 0; i < 200000; ++i) {
    entries += Entry(std::to_string((i * 7919) % 200000), Text("some value"));
  }
  const std::string large =
      Field(1, Field(1, "of the large one")) + Context(entries);
  const std::string small = Field(1, Field(1, "t")) + Context(Entry("a", ""));
  const std::string large_key = KeyOf(large);
  const std::string small_key = KeyOf(small);
  for (int i = 0; i < 3; ++i) {
    Digest digest = digester.Compute({large}, &scratch);
    EXPECT_EQ(digest.key.Hex(), large_key);
    EXPECT_EQ(digest.tag, "of the large one");
    digest = digester.Compute({large, ""}, &scratch);
    EXPECT_EQ(digest.key.Hex(), large_key);
    EXPECT_EQ(digest.tag, "of the large one");
    digest = digester.Compute({small}, &scratch);
    EXPECT_EQ(digest.key.Hex(), small_key);
    EXPECT_EQ(digest.tag, "t");
  }
}

}  // namespace
}  // namespace fncache::cache::key
